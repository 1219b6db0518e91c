"""Domains: the fabric domains of a set: which are requested, who uses them, when they are released, and their status."""
