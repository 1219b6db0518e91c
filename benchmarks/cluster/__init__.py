"""Bring-up, scaling, updates and fleets on a real control plane, beside a client that only writes. `make bench-cluster`."""
