"""Blueprint: the objects that one kind of root should have; Desired: its answer."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from engine.graph import Graph
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Unlisted, World
from engine.operation import Trial
from engine.plan import Alarm, Wait
from engine.resource import Body, Policy


class Desired(Struct, frozen=True, eq=False):
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
    trials: tuple[Trial, ...] = ()
    """The creates that the API server must have accepted before something is deleted because of them."""


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


class NestedRoot(Struct, frozen=True, eq=False):
    """A root that another root consists of."""

    body: Body
    """Its manifest."""
    holds: Mapping[str, str] = field(default_factory=dict)
    """Which of its parts must not be created yet, and why (`Observed.holds`)."""
    remembered: Mapping[str, Any] = field(default_factory=dict)
    """What has been read from its manifest, for the memo of its blueprint (`Memo.remember`)."""


@runtime_checkable
class ComposingBlueprint(Protocol):
    """A `Blueprint` whose roots consist of roots of other kinds, besides objects."""

    def nested_roots(self, observed: Observed, configuration: Any, memo: Memo) -> tuple[NestedRoot, ...]:
        """The roots that this root consists of; the same objects as before if nothing has changed."""
        ...


@runtime_checkable
class LookingBlueprint(Protocol):
    """A `Blueprint` whose roots name objects of kinds that are not listed, because there are too many of them or they are secret."""

    def lookups(self, id: ResourceId, body: Body, configuration: Any, memo: Memo) -> tuple[ResourceId, ...]:
        """The objects that a root of this body names. The body is not validated. The memo is that of `desire`."""
        ...

    def lookup_kinds(self, configuration: Any) -> tuple[Kind, ...]:
        """The kinds of objects that roots may name, under this configuration. Permissions are derived from it."""
        ...


@runtime_checkable
class MentioningBlueprint(Protocol):
    """A `Blueprint` whose roots have objects that name others, whose names are not known otherwise."""

    def mentioned(self, observed: Observed, configuration: Any) -> Iterable[ResourceId]:
        """The objects of this root that its observed objects name, whether they exist or not."""
        ...


@runtime_checkable
class UsedBlueprint(Protocol):
    """A `Blueprint` whose objects may be used by objects that neither are owned by them nor have the labels of the same root."""

    def in_use(self, orphans: Sequence[Live], world: World, configuration: Any) -> frozenset[str]:
        """The uids of those of these objects, none of which has a root, that other objects still use."""
        ...


def root_of(blueprints: Sequence[Blueprint], child: Live) -> ResourceId | None:
    """The root, of any kind, that the labels of the child name."""
    return next((root for blueprint in blueprints if (root := blueprint.root_of(child))), None)


def incomplete_kinds(blueprint: Blueprint, incomplete: Collection[str], configuration: Any) -> frozenset[str]:
    """Of the kinds that could not be listed completely, those that roots of this kind depend on."""
    if not incomplete:
        return frozenset()
    kinds = (blueprint.kind, *blueprint.children(configuration), *blueprint.references(configuration))
    return frozenset(incomplete).intersection(kind.key for kind in kinds)


def relevant_incomplete(
    blueprints: Iterable[Blueprint],
    incomplete: Mapping[str, Unlisted],
    unserved: Collection[str],
    present: Collection[str],
    configuration: Any,
) -> dict[str, Unlisted]:
    """Of the kinds that could not be listed completely, those that matter, with the reasons. `present` are the names of the kinds of roots
    that exist or are proposed.

    A kind does not matter if only roots depend on it that do not exist, and whose objects have no finalizers of ours.
    """

    def matters(blueprint: Blueprint) -> bool:
        kind = blueprint.kind
        if kind.key in unserved:
            return False
        return kind.name in present or kind.key in incomplete or bool(blueprint.policies(configuration))

    relevant = frozenset().union(*(incomplete_kinds(each, incomplete, configuration) for each in blueprints if matters(each)))
    return {kind: why for kind, why in incomplete.items() if kind in relevant}
