"""The outside world: clusters, schedulers, fabrics, and a whole Kubernetes in memory."""
