"""Base: kinds, labels, names and the frame of manifests, which everything else builds on."""
