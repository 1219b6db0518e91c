"""Kinds: what the API server checks and fills in for each kind it serves."""
