"""Curation: what becomes of a claim, given what is held; rules decide, a model may be asked, kinds rule last."""
