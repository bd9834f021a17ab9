"""Measure recall without an LLM judge: add conversations, then search and build contexts.

`data` reads conversations with labelled evidence; `run` measures retrieval for several settings
variants, computing each embedding once. Nothing here prints.
"""
