"""Language models and embedders over HTTP: one client, one thin adapter per protocol.

Importing this package is cheap: httpx2 (extra `models`) loads at the first request.
"""
