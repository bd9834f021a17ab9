"""Faces: thin ways in. No logic lives here, only shapes."""
