"""Labels and names of the driver, besides those that the product knows."""

from typing import Final

from grove_sandbox.product import nvidia

DAEMON: Final = "Daemon"
"""The target of the claim templates of the driver's daemons."""
CLIQUE_ID: Final = nvidia.DOMAIN_LABEL + ".cliqueID"
"""The label of daemons' pods and of cliques with the NVLink clique."""

DAEMON_CLASS: Final = "compute-domain-daemon.nvidia.com"
CONFIG_VERSION: Final = nvidia.COMPUTE_DOMAIN.api_version
CHANNEL_CONFIG: Final = "ComputeDomainChannelConfig"
CONTROLLER: Final = "compute-domain-controller"
"""The Deployment of the driver's controller, in the driver's namespace."""
CHART_LABELS: Final = {"app.kubernetes.io/name": "dra-driver-nvidia-gpu", "app.kubernetes.io/instance": "dra-driver-nvidia-gpu"}
"""The labels of the objects of the driver's chart."""
CONTROLLER_LABELS: Final = {"dra-driver-nvidia-gpu-component": "controller"}
"""The labels of the controller's pods. Its Deployment does not have them."""
ACCOUNT: Final = "compute-domain-daemon-service-account"
