"""Messages: the reasons of rejected PodCliqueSets, as webhooks and policies give them, and of a refused start."""

from typing import Final

from providers.fabrics.nvidia.names import CLAIM
from resources.ports.fabric import GROUP_INDEX, INDEX

OFF: Final = "MNNVL is not enabled in the operator configuration. Either enable MNNVL globally or remove the grove.io/auto-mnnvl annotation"
OPT_OUT: Final = (
    "automatic MNNVL injection is enabled for this PodCliqueSet replica; explicit ComputeDomain annotations require opting out of "
    'automatic injection (set grove.io/auto-mnnvl: "disabled"); the opt-out is an annotation of the PodCliqueSet and is for the whole set'
)
CLAIM_NAME_TAKEN: Final = f"the claim name {CLAIM} is needed for the ComputeDomain"
NO_SCALING_GROUP: Final = (
    f"{GROUP_INDEX} is the index of a scaling group's replica, and this clique is in no scaling group: "
    f"add it to one in spec.template.podCliqueScalingGroups, or use {INDEX}, the index of the set's replica"
)
MISSING_CRD: Final = (
    "MNNVL is enabled but ComputeDomain CRD (computedomains.resource.nvidia.com) is not installed. Please install the NVIDIA DRA driver "
    "or disable MNNVL in the operator configuration"
)
