"""Base: kinds, labels, names and the common fields of manifests. It imports nothing else of `resources`."""
