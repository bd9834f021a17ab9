"""Parts of the recall benchmark: public data, baseline rankers, the peer and tables."""
