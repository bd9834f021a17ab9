"""Language models and embedders that are reached over HTTP: one wire, and one thin adapter for each way of speaking.

Importing this package is cheap and needs nothing: httpx2, the extra `models`, is loaded by the first request.
"""
