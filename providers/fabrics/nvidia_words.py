"""Words: the kinds, keys and names of NVIDIA's DRA driver, and those by which workloads speak of its domains."""

from typing import Final

from engine.ids import Kind

COMPUTE_DOMAIN: Final = Kind("resource.nvidia.com", "v1beta1", "ComputeDomain", "computedomains", status=True)

AUTO: Final = "grove.io/auto-mnnvl"
ENABLED, DISABLED = "enabled", "disabled"
NAMED: Final = "nvidia.com/computedomain"
GPU: Final = "nvidia.com/gpu"
CLAIM: Final = "mnnvl-claim"
"""What the claim is called within a pod."""
DRIVER: Final = "compute-domain.nvidia.com"
DAEMON_CONFIG: Final = "ComputeDomainDaemonConfig"
"""What the claim of a daemon of the driver's says that it is for."""
DOMAIN_LABEL: Final = "resource.nvidia.com/computeDomain"
"""On a claim template of the driver's: the uid of the domain that it leads into."""
TARGET_LABEL: Final = "resource.nvidia.com/computeDomainTarget"
WORKLOAD: Final = "Workload"
FINALIZER: Final = "grove.io/computedomain-finalizer"
"""Ours."""

CLIQUE: Final = Kind(COMPUTE_DOMAIN.group, COMPUTE_DOMAIN.version, "ComputeDomainClique", "computedomaincliques")
"""The daemons of a domain in one NVLink clique: the driver has it since 25.12."""
RELEASED: Final = "resource.nvidia.com/computeDomain"
"""The driver's finalizer, on domains and on all that it makes for them."""
CHANNEL: Final = "channel-0"
"""The device that a node has for pods of domains: one, whatever its number suggests."""
CHANNEL_CLASS: Final = "compute-domain-default-channel.nvidia.com"
FABRIC_LABEL: Final = "nvidia.com/gpu.clique"
"""On nodes: the NVLink clique that a node is in."""
PARTS: Final = ("dra-driver-nvidia-gpu-component", "nvidia-dra-driver-gpu-component")
"""Labels by which the driver's own parts are told, the older one last."""
MOST_NODES: Final = 18
"""Nodes of one NVLink clique that a domain can have."""
