"""Placement: how strictly a set wants the pods of each of its fabric domains kept together."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from resources.base import labels

REQUIRED_TERMS, PREFERRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
"""The fields of a pod affinity."""


class DomainPlacement(StrEnum):
    """The values of the annotation `labels.DOMAIN_PLACEMENT` of a set."""

    REQUIRED = "required"
    """Pods only run in the island of the other pods of their domain; otherwise they stay Pending."""
    PREFERRED = "preferred"
    """Pods run there if there is room, otherwise elsewhere."""


def placement_of(annotations: Mapping[str, Any]) -> DomainPlacement | None:
    """What the annotations of a set ask for; None if nothing, or if the value is invalid: admission may have been bypassed."""
    value = annotations.get(labels.DOMAIN_PLACEMENT)
    return next((placement for placement in DomainPlacement if placement == value), None)
