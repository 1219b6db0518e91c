"""Removal: which objects are deleted, and in which order: nothing is deleted while a pod still uses it."""
