"""Names: the kinds, labels and annotations of NVIDIA's DRA driver, and the annotations by which sets request its domains."""

from typing import Final

from engine.ids import Kind
from resources.ports.fabric import GROUP_INDEX, INDEX, Annotation, Place

COMPUTE_DOMAIN: Final = Kind("resource.nvidia.com", "v1beta1", "ComputeDomain", "computedomains", status=True, newer=("v1beta2",))
"""Version v1beta2 has no `numNodes`. It is used where the cluster does not serve v1beta1."""
COMPUTE_DOMAIN_CLIQUE: Final = Kind(COMPUTE_DOMAIN.group, COMPUTE_DOMAIN.version, "ComputeDomainClique", "computedomaincliques")
"""The daemons of a domain in one NVLink clique. The driver has this kind since 25.12."""

AUTO: Final = "grove.io/auto-mnnvl"
"""Annotation of a set: whether each replica has a domain of its own."""
ENABLED, DISABLED = "enabled", "disabled"
GROUP: Final = "grove.io/mnnvl-group"
"""Annotation of a set, a scaling group or a clique, as in current Grove: the group of a replica's cliques that have a domain together."""
NO_GROUP: Final = "none"
"""The value of `GROUP` for cliques that are in no domain."""
NAMED: Final = "nvidia.com/computedomain"
"""Annotation of a clique: the name of the domain that its pods join."""
ANNOTATIONS: Final = (
    Annotation(AUTO, (Place.SET,), "automatic domains, and opting out of them, are for the whole set"),
    Annotation(NAMED, (Place.CLIQUE,)),
    Annotation(GROUP, (Place.SET, Place.GROUP, Place.CLIQUE)),
)
"""The annotations that sets request domains with, or opt out."""
GPU: Final = "nvidia.com/gpu"
"""The extended resource of GPUs."""
CLAIM: Final = "mnnvl-claim"
"""The name of the claim in the pod spec."""
FINALIZER: Final = "grove.io/computedomain-finalizer"
"""The engine's finalizer."""

DRIVER: Final = "compute-domain.nvidia.com"
"""The name under which the DRA driver publishes devices."""
DRIVER_FINALIZER: Final = "resource.nvidia.com/computeDomain"
"""The driver's finalizer, on domains and on all objects that it creates for them."""
COMPONENT_LABELS: Final = ("dra-driver-nvidia-gpu-component", "nvidia-dra-driver-gpu-component")
"""The label keys of the driver's components; the second one is of older releases."""
DAEMON_CONFIG: Final = "ComputeDomainDaemonConfig"
"""The parameters of the claims of the driver's own daemons."""
DOMAIN_LABEL: Final = "resource.nvidia.com/computeDomain"
"""Label of objects that serve a domain, and of the nodes in it: the uid of the domain."""
TARGET_LABEL: Final = "resource.nvidia.com/computeDomainTarget"
"""Label of a ResourceClaimTemplate that the driver created: who claims through it, pods of workloads or the driver's daemons."""
WORKLOAD: Final = "Workload"
"""The value of `TARGET_LABEL` on templates that pods of workloads claim; others are for the driver's daemons."""

CHANNEL: Final = "channel-0"
"""The device of a node that a pod in a domain gets. A node has one."""
CHANNEL_CLASS: Final = "compute-domain-default-channel.nvidia.com"
"""The DeviceClass of channels."""
GPU_LABEL: Final = "nvidia.com/gpu.present"
"""Label of a node with GPUs, `true`. The driver's kubelet plugin runs on such nodes."""
NVLINK_CLIQUE_LABEL: Final = "nvidia.com/gpu.clique"
"""Label of a node: the NVLink clique that it is in."""
MAX_NODES: Final = 18
"""The driver's limit for the nodes that a domain has in one NVLink clique."""


MODES: Final = f'must be "{ENABLED}" or "{DISABLED}"'
SWITCHED_OFF: Final = (
    "MNNVL is not enabled in the operator configuration. Either enable MNNVL globally or remove the {annotation} annotation. "
    "It is enabled by network.autoMNNVLEnabled: true in the file of --config, or without one in the configuration of the installation"
)
"""Why an annotation is refused while automatic domains are off."""
OFF: Final = SWITCHED_OFF.format(annotation=AUTO)
OPT_OUT: Final = (
    "automatic MNNVL injection is enabled for this PodCliqueSet replica; explicit ComputeDomain annotations require opting out of "
    'automatic injection (set grove.io/auto-mnnvl: "disabled"); the opt-out is for the whole set: an annotation of it, or of its graph'
)
NO_DOMAIN_NAME: Final = "the name of a ComputeDomain must not be empty"
INVALID_DOMAIN_NAME: Final = "the name of a ComputeDomain must be a DNS-1123 subdomain of at most 253 characters"
CLAIM_NAME_TAKEN: Final = f"the claim name {CLAIM} is needed for the ComputeDomain"
NO_SCALING_GROUP: Final = (
    f"{GROUP_INDEX} is the index of a scaling group's replica, and this clique is in no scaling group: "
    f"add it to one in spec.template.podCliqueScalingGroups, or use {INDEX}, the index of the set's replica"
)
UNREPORTED: Final = (
    "the driver reports none of its nodes: it leaves IMEX to the hosts, or the domain's daemons are gone; engine why says which. "
    "Whether they reach one another over NVLink is not known"
)
MISSING_CRD: Final = (
    "MNNVL is enabled but ComputeDomain CRD (computedomains.resource.nvidia.com) is not installed. Please install the NVIDIA DRA driver "
    "or disable MNNVL in the operator configuration (network.autoMNNVLEnabled: false)"
)
