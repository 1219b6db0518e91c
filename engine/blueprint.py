"""Blueprint: the objects that one kind of root should have; Desired: its answer."""

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
    """The objects that a root should have now, and what users should know about them."""

    graph: Graph
    pending: tuple[Wait, ...] = ()
    """What the cluster has still to do before everything is as desired."""
    deferred: tuple[Wait, ...] = ()
    """What is due and not done now, besides the resources that the graph holds back."""
    problems: tuple[str, ...] = ()
    """Mistakes in what the user asked for. If there are any, nothing is planned."""
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    """What users must know although no operation of the plan reports it."""
    wake_at: datetime | None = None
    """When time alone changes this answer."""


class Blueprint(Protocol):
    """The objects that one kind of root should have. Pure."""

    @property
    def kind(self) -> Kind:
        """The kind of root."""
        ...

    def children(self, configuration: Any) -> tuple[Kind, ...]:
        """The kinds of objects that it may create under this configuration. Lists, watches and permissions are derived from it."""
        ...

    def references(self, configuration: Any) -> tuple[Kind, ...]:
        """The kinds of which it reads all objects, whoever owns them, under this configuration."""
        ...

    @property
    def selector(self) -> str:
        """The label selector that matches all its children."""
        ...

    def reads(self, configuration: Any) -> Mapping[str, frozenset[str]]:
        """Kind of child -> the kinds whose live objects it depends on: while one could not be listed, the child is left alone."""
        ...

    def policies(self, configuration: Any) -> Mapping[str, Policy]:
        """Kind of child -> the policy with the finalizers that we set and release on it; kinds without finalizers are absent."""
        ...

    def root_of(self, child: Live) -> ResourceId | None:
        """The root that the labels of the child name."""
        ...

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """The key of the slice (the part of the root) that the child belongs to."""
        ...

    def desire(self, observed: Observed, now: datetime, configuration: Any, memo: Memo) -> Desired:
        """All objects that should exist now."""
        ...


def root_of(blueprints: Sequence[Blueprint], child: Live) -> ResourceId | None:
    """The root, of any kind, that the labels of the child name."""
    return next((root for blueprint in blueprints if (root := blueprint.root_of(child))), None)


def incomplete_kinds(blueprint: Blueprint, incomplete: Iterable[str], configuration: Any) -> frozenset[str]:
    """Of the kinds that could not be listed completely, those that roots of this kind depend on."""
    kinds = (blueprint.kind, *blueprint.children(configuration), *blueprint.references(configuration))
    return frozenset(incomplete).intersection(kind.name for kind in kinds)
