"""Benchmarks: `python -m benchmarks.<name>`; each prints one JSON line for each figure. Nothing here asserts a time."""
