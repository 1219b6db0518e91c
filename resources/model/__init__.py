"""Model: a workload as it is specified and as it is observed."""
