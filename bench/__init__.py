"""Benchmarks: programs that compare within one run, and print what they found."""
