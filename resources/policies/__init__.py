"""Policies: time and progress, as pure functions from facts to answers."""
