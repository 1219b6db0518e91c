"""ClusterModel: how everything else in a cluster answers to what the engine writes, as a forecast assumes."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

from engine.forecast.store import ForecastStore
from engine.ids import ResourceId
from engine.observed import Live
from engine.operation import Operation


class Level(Struct, frozen=True):
    """How many members of an object are ready: before the first operation, at the lowest, and at the end."""

    id: ResourceId
    before: int
    lowest: int
    after: int
    minimum: int
    """Below this number it does not work. 0 if it has no minimum."""
    unit: str = "pods"
    """What its members are, in the plural."""

    @property
    def falls_below(self) -> bool:
        """Whether it had its minimum before and has not at the lowest."""
        return self.lowest < self.minimum <= self.before


class Effects(Struct, frozen=True):
    """What happens to the pods and domains of one workload."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """What happens, e.g. `pods restarted`, `GPUs restarted`, `domains removed` -> how often; without zeros."""
    levels: tuple[Level, ...] = ()
    """The members that lose readiness on the way, the worst first."""


def worst_first(levels: Iterable[Level]) -> tuple[Level, ...]:
    """The levels, those below their minimum first."""
    return tuple(sorted(levels, key=lambda level: (not level.falls_below, level.lowest - level.minimum, level.id)))


class Assumption(StrEnum):
    """What a forecast takes for granted about the cluster. The value is a sentence for people."""

    CAPACITY = "every new pod is scheduled and becomes ready"
    ROOM = "nodes, and what others run on them, stay as they are; new pods that fit are scheduled and become ready"
    NEW_NODES = "nodes are added for new pods that have no room; every new pod is scheduled and becomes ready"
    FAILURES_STAY = "pods that have failed, are failing or cannot be scheduled stay so"
    REFERENCES = "Secrets, ConfigMaps, claims and whatever else pods refer to exist, as far as that is not known"
    DELETION = "deleted pods terminate"
    KUBERNETES = "Kubernetes' controllers and other programs do their part"
    GATES = "other programs remove the scheduling gates of pods that are not the engine's"
    FABRIC = "the driver of the fabric serves its domains"


class ClusterModel(Protocol):
    """A cluster in one forecast. It has a state: what it has still to do."""

    def is_graceful(self, live: Live) -> bool:
        """Whether the object is marked when it is deleted, and removed by `answer`; otherwise it goes at once."""
        ...

    def begin(self, store: ForecastStore) -> None:
        """Take note of the objects as they are before the first operation."""
        ...

    def sent(self, root: ResourceId, operation: Operation, existing: Live | None) -> None:
        """Take note of an operation that is executed now; `existing` is the object before it."""
        ...

    def answer(self, store: ForecastStore) -> frozenset[Assumption]:
        """Change the store as the cluster does between two passes. Returns the assumptions that this relies on; none if nothing changed."""
        ...

    def is_known(self, store: ForecastStore) -> bool:
        """Whether the model knows the programs of all these objects. If not, an end where something is left may not be one."""
        ...

    def effects(self) -> Mapping[ResourceId, Effects]:
        """What all operations so far mean for the workloads, by root. Roots whose pods and domains are not touched are absent."""
        ...
