"""Domains: fabric domains of workloads: which are requested, who uses them, when they are released, how they are doing."""
