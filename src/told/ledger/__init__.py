"""The ledger: commit (the only writer), consume, history, verify, transfer and erase."""
