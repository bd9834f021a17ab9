"""The Python API: the verb specification, the clients generated from it, and serialisation."""
