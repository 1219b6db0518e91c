"""Security: the security context of containers that we add to pods: what the pod security standard `restricted` asks of each."""

from typing import Any, Final

RESTRICTED: Final[dict[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What the standard asks of a container, besides `NON_ROOT`. A pod for Windows may have none of it."""
NON_ROOT: Final = {"runAsNonRoot": True}
"""The user is that of the image, by its number, or the one that the cluster chooses."""
NOBODY: Final = 65534
"""The user of a container whose image may have root, or a user without a number, which a kubelet cannot tell from root."""
