"""Effects: what the operations of a forecast mean for one workload."""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from engine.ids import ResourceId


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
