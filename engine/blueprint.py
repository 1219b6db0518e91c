"""Blueprint: what one kind of root means; Desired: what it answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from engine.graph import Graph
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.plan import Alarm, Wait
from engine.resource import Policy


@dataclass(frozen=True, slots=True, eq=False)
class Desired:
    """What should be there now, and what is worth knowing with_foreign it."""

    graph: Graph
    pending: tuple[Wait, ...] = ()
    """What the cluster has still to do before all is as wanted."""
    deferred: tuple[Wait, ...] = ()
    """What is due and not done now, with_foreign what the graph holds."""
    problems: tuple[str, ...] = ()
    """Faults in what the user intended for."""
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    """What people must be told of, and what nothing that is done will tell."""
    wake_at: datetime | None = None


class Blueprint(Protocol):
    """What one kind of root means: which objects it should have. Pure."""

    @property
    def kind(self) -> Kind:
        """The kind of root."""
        ...

    def children(self, configuration: Any) -> tuple[Kind, ...]:
        """Every kind that it may make, as things are configured: what is listed, watched and allowed is computed from it."""
        ...

    def references(self, configuration: Any) -> tuple[Kind, ...]:
        """Kinds of which it reads all objects, whosever they are, as things are configured."""
        ...

    @property
    def selector(self) -> str:
        """The label selector that all its children carry."""
        ...

    def reads(self, configuration: Any) -> Mapping[str, frozenset[str]]:
        """Kind of child -> the kinds whose live objects shape it: if those were not seen completely, it is not judged."""
        ...

    def policies(self, configuration: Any) -> Mapping[str, Policy]:
        """Kind of child -> the finalizers that we put on it, and that only we take off; nothing for a kind that has none."""
        ...

    def root_of(self, child: Live) -> ResourceId | None:
        """The root that a child names as its own, by its labels."""
        ...

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """The part of the root that a child belongs to: the key of its slice."""
        ...

    def desire(self, observed: Observed, now: datetime, configuration: Any, memo: Memo) -> Desired:
        """Everything that should be there now."""
        ...


def root_of(blueprints: Sequence[Blueprint], child: Live) -> ResourceId | None:
    """The root that a child names as its own, of whichever kind."""
    return next((root for blueprint in blueprints if (root := blueprint.root_of(child))), None)


def holes(blueprint: Blueprint, incomplete: Iterable[str], configuration: Any) -> frozenset[str]:
    """Of the kinds that were not seen completely, those that matter to roots of this kind."""
    kinds = (blueprint.kind, *blueprint.children(configuration), *blueprint.references(configuration))
    return frozenset(incomplete).intersection(kind.name for kind in kinds)
