"""Placement: the predicates of the scheduler: what a pod requires of a node, what a node provides, and where pods may be beside others."""
