"""Readers of images that run on this machine; told finds them through the entry points of `told.readers`."""
