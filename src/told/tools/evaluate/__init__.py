"""Recall measured without a model as a judge: conversations go in by `add`, questions through `search` and `context`.

`data` reads conversations whose evidence is known, `measure` holds what was offered against what was wanted, `vectors`
computes each embedding once, and `run` does it all for several variants of the settings. Nothing here prints.
"""
