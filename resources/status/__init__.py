"""Statuses: the desired status of each of our kinds, computed from what is observed."""
