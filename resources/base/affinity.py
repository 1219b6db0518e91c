"""Affinity: the fields of a pod spec that say on which nodes its pod may run, as other pods are there."""

from collections.abc import Mapping
from typing import Any, Final

from engine.resource import Body
from resources.base.fields import mapping

HOSTNAME: Final = "kubernetes.io/hostname"
"""The label of every node with its name."""
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def with_anti_affinity(spec: Body, identity: Mapping[str, str]) -> dict[str, Any]:
    """The pod spec with one more required term: no node may have two pods with these labels. Terms of the user are kept."""
    affinity = mapping(spec.get("affinity"))
    anti_affinity = mapping(affinity.get("podAntiAffinity"))
    term = {"labelSelector": {"matchLabels": dict(identity)}, "topologyKey": HOSTNAME}
    terms = [*(anti_affinity.get(REQUIRED) or ()), term]
    return {**spec, "affinity": {**affinity, "podAntiAffinity": {**anti_affinity, REQUIRED: terms}}}
