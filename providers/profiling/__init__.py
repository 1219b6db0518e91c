"""Profiling: where the time of `engine run` goes."""
