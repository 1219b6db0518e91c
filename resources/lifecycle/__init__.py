"""Policies: availability, termination, rollout and start order, as pure functions of a replica's observed state."""
