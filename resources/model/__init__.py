"""Model: a workload as it is specified and as it is observed, in the terms the rules are written in."""
