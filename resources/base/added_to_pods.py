"""What the engine adds to pods of every kind: the security context of its containers, and terms of affinity."""

from collections.abc import Mapping
from typing import Any, Final

from engine.resource import Body
from resources.base.fields import mapping

HOSTNAME: Final = "kubernetes.io/hostname"
"""The label of every node with its name."""
RESTRICTED: Final[dict[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What the pod security standard `restricted` asks of a container, besides `NON_ROOT`. A pod for Windows may have none of it."""
NON_ROOT: Final = {"runAsNonRoot": True}
"""The user is that of the image, by its number, or the one that the cluster chooses."""
NOBODY: Final = 65534
"""The user of a container whose image may have root, or a user without a number, which a kubelet cannot tell from root."""

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def with_anti_affinity(spec: Body, identity: Mapping[str, str]) -> dict[str, Any]:
    """The pod spec with one more required term: no node may have two pods with these labels. Terms of the user are kept."""
    affinity = mapping(spec.get("affinity"))
    anti_affinity = mapping(affinity.get("podAntiAffinity"))
    term = {"labelSelector": {"matchLabels": dict(identity)}, "topologyKey": HOSTNAME}
    terms = [*(anti_affinity.get(REQUIRED) or ()), term]
    return {**spec, "affinity": {**affinity, "podAntiAffinity": {**anti_affinity, REQUIRED: terms}}}
