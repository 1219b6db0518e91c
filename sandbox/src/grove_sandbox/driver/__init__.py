"""Driver: NVIDIA's DRA driver for ComputeDomains, as actors: its controller, its node plugins, and its daemons."""
