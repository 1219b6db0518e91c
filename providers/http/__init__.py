"""Serving: HTTP and HTTPS servers of `engine run`: admission, probes, metrics, the pending plan."""
