"""Removal: what is deleted, and in which order, so that nothing is taken from under a pod that still runs."""
