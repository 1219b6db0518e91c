"""Annotations that a plug-in reads: their keys, and the places of a PodCliqueSet in which they have an effect."""

from enum import StrEnum
from typing import Protocol, runtime_checkable

from msgspec import Struct


class Place(StrEnum):
    """A place for annotations in a PodCliqueSet, as users write it."""

    SET = "metadata.annotations"
    GROUP = "spec.template.podCliqueScalingGroups[].annotations"
    CLIQUE = "spec.template.cliques[].annotations"


class Annotation(Struct, frozen=True):
    """An annotation that a plug-in reads."""

    key: str
    places: tuple[Place, ...] = (Place.CLIQUE,)
    """Where it is read from."""
    hint: str = ""
    """What users should know who wrote it somewhere else, e.g. `an opt-out is for the whole set`."""


@runtime_checkable
class AnnotatedFabric(Protocol):
    """A `Fabric` that names the annotations that it reads. `engine status` and `engine why` report those that users add to PodCliques."""

    @property
    def annotations(self) -> tuple[Annotation, ...]:
        """The annotations that it reads from a PodCliqueSet."""
        ...
