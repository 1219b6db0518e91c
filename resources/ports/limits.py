"""Limits: how large one PodCliqueSet may be, and all of a namespace together."""

from typing import Final

from msgspec import Struct


class SizeLimits(Struct, frozen=True):
    """The most of each measure that is admitted."""

    replicas: int
    """Replicas of PodCliqueSets."""
    pods: int
    """Pods, with as many of each clique and scaling group as their autoscalers may ask for."""
    cliques: int
    """PodCliques, counted alike."""
    bytes: int
    """Of one set: the JSON of its spec, and the pod references of one of its PodGangs, of which an API server stores no more in one object.
    Of a namespace: all of these together."""


SET_LIMITS: Final = SizeLimits(replicas=10_000, pods=100_000, cliques=10_000, bytes=1_500_000)
NAMESPACE_LIMITS: Final = SizeLimits(replicas=10_000, pods=100_000, cliques=10_000, bytes=32_000_000)
"""With so many pods and PodCliques `engine run` holds 900 MiB: 5.6 KiB for each pod, 26 KiB for each PodClique with its PodGang and
Service. Two namespaces may have the 150 000 pods of the largest cluster that Kubernetes supports."""


class WorkloadLimits(Struct, frozen=True):
    """The limits of an installation."""

    of_set: SizeLimits = SET_LIMITS
    of_namespace: SizeLimits = NAMESPACE_LIMITS
