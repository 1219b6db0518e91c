"""Parts: the ordered table of what a replica is made of. A new kind of child is one file and one line here."""

from resources import autoscaler, fabric, pod, podclique, podgang, resource_claim, scaling_group, service

PARTS = (service, fabric, scaling_group, podclique, autoscaler, podgang, resource_claim, pod)
"""Each module has `render(view)`, which yields the resources of its kind for one replica."""
