"""NVIDIA: multi-node NVLink through the ComputeDomains of NVIDIA's DRA driver."""
