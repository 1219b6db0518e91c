"""An in-memory Kubernetes for demo and tests: its API, its HTTP face, and the actors that bring it to life."""
