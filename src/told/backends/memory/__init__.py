"""The in-memory store: the storage ports in plain Python, as short as they can be."""
