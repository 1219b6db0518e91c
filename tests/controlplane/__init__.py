"""A real Kubernetes control plane: how it is built, started and handed to the tests."""
