"""Installation: the objects that the installation of NVIDIA's DRA driver creates."""
