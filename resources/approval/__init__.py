"""How approvals recognise the objects of workloads."""
