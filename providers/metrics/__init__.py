"""Metrics: what `engine run` counts and measures, in Prometheus' format."""
