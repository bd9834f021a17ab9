"""What only the benchmark of recall needs: the public data, the plain rankers, the peer and the
tables.
"""
