"""The sleep path: consumers that think about what is remembered."""
