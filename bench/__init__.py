"""Benchmarks: programs that compare contenders within one run and print the results."""
