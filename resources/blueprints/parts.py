"""Parts: the ordered table of what a replica is made of. A new kind of child is one file and one line here."""

from resources.children import autoscaler, pod, podclique, podgang, resource_claim, scaling_group, service
from resources.domains import replica_domains

PARTS = (service, replica_domains, scaling_group, podclique, autoscaler, podgang, resource_claim, pod)
"""Each module has `render(view)`, which yields the resources of its kind for one replica."""
