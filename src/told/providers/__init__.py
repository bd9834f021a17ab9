"""Adapters for models and services: HTTP providers, local models, OCR and the vault."""
