"""Pods: the pod spec of one role of a service, from its defaults, what its user set, and what its framework needs."""
