"""Statuses: from what is observed to what our kinds say of themselves."""
