"""Parts: the table of the child kinds of a replica. A new kind is one module and one entry here."""

from resources.children import autoscaler, pod, podclique, podgang, resource_claim, scaling_group, scheduler_gang, service
from resources.domains import replica_domains

CHILD_KINDS = (service, replica_domains, scaling_group, podclique, autoscaler, podgang, scheduler_gang, resource_claim, pod)
"""Modules with `render(view)`, which yields the desired objects of one kind in one replica."""
