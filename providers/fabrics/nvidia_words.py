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
DOMAIN_LABEL: Final = "resource.nvidia.com/computeDomain"
"""On a claim template of the driver's: the uid of the domain that it leads into."""
TARGET_LABEL: Final = "resource.nvidia.com/computeDomainTarget"
WORKLOAD: Final = "Workload"
FINALIZER: Final = "grove.io/computedomain-finalizer"
"""Ours."""
