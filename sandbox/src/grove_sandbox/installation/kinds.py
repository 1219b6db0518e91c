"""Kinds, labels and names of the driver, and the built-in kinds that only it uses."""

from typing import Final

from grove_sandbox.product import Kind

GROUP: Final = "resource.nvidia.com"
COMPUTE_DOMAIN: Final = Kind(GROUP, "v1beta1", "ComputeDomain", "computedomains", status=True)
CLIQUE: Final = Kind(GROUP, "v1beta1", "ComputeDomainClique", "computedomaincliques")
"""The daemons of one domain in one NVLink clique; named `<uid of the domain>.<clique>`, in the driver's namespace."""

DAEMON_SET: Final = Kind("apps", "v1", "DaemonSet", "daemonsets", status=True)
DEVICE_CLASS: Final = Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)
RESOURCE_SLICE: Final = Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)

DRIVER: Final = "compute-domain.nvidia.com"
DOMAIN: Final = "resource.nvidia.com/computeDomain"
"""The label with the uid of a domain, on its children and on the nodes in it; also the name of the driver's finalizer."""
TARGET: Final = DOMAIN + "Target"
"""The label of claim templates that says for which pods they are."""
DAEMON, WORKLOAD = "Daemon", "Workload"
CLIQUE_ID: Final = DOMAIN + ".cliqueID"
"""The label of daemons' pods and of cliques with the NVLink clique."""
FABRIC: Final = "nvidia.com/gpu.clique"
"""The label of nodes with their NVLink clique. A node without it has no fabric."""

CHANNEL_CLASS: Final = "compute-domain-default-channel.nvidia.com"
DAEMON_CLASS: Final = "compute-domain-daemon.nvidia.com"
CONFIG_VERSION: Final = GROUP + "/v1beta1"
CHANNEL_CONFIG, DAEMON_CONFIG = "ComputeDomainChannelConfig", "ComputeDomainDaemonConfig"
CONTROLLER: Final = "compute-domain-controller"
"""The Deployment of the driver's controller, in the driver's namespace."""
CHART_LABELS: Final = {"app.kubernetes.io/name": "dra-driver-nvidia-gpu", "app.kubernetes.io/instance": "dra-driver-nvidia-gpu"}
"""The labels of the objects of the driver's chart."""
CONTROLLER_LABELS: Final = {"dra-driver-nvidia-gpu-component": "controller"}
"""The labels of the controller's pods. Its Deployment does not have them."""
ACCOUNT: Final = "compute-domain-daemon-service-account"
