"""Base: kinds, labels, names, field paths and the common fields of manifests. It imports nothing else of `resources`."""
