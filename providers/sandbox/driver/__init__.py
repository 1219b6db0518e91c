"""What NVIDIA's DRA driver for ComputeDomains brings to a cluster, as data: kinds, definitions, device classes and devices."""
