"""Text processing without I/O."""
