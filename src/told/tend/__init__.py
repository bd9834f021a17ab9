"""The sleep path: consumers that think."""
