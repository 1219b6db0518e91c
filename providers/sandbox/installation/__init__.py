"""Installation: what installing NVIDIA's DRA driver puts into a cluster."""
