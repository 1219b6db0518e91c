"""Blueprint: the objects that one kind of root should have; Desired: its answer."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, field

from engine.conditions import completed_generation
from engine.graph import Graph
from engine.health import Readiness
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Unlisted, World
from engine.operation import Trial
from engine.plan import Alarm, Objection, Wait
from engine.resource import Body, Policy


class Desired(Struct, frozen=True, eq=False):
    """The objects that a root should have now, and what users should know about them."""

    graph: Graph
    pending: tuple[Wait, ...] = ()
    """What the cluster has still to do before everything is as desired."""
    deferred: tuple[Wait, ...] = ()
    """What is due and not done now, besides the resources that the graph holds back."""
    problems: tuple[str, ...] = ()
    """Mistakes in what the user asked for. If there are any, only the status of the root is planned."""
    objections: tuple[Objection, ...] = ()
    """Why the root must be left alone until a user allows more. If there are any, nothing is planned."""
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    """What users must know although no operation of the plan reports it."""
    wake_at: datetime | None = None
    """When time alone changes this answer."""
    readiness: Readiness | None = None
    """How far the root is, from which the conditions of its health follow; None: its status has none, or is not written."""
    trials: tuple[Trial, ...] = ()
    """The creates that the API server must have accepted before something is deleted because of them."""


class NestedRoot(Struct, frozen=True, eq=False):
    """A root that another root consists of."""

    body: Body
    """Its manifest."""
    holds: Mapping[str, str] = field(default_factory=dict)
    """Which of its parts must not be created yet, and why (`Observed.holds`)."""
    remembered: Mapping[str, Any] = field(default_factory=dict)
    """What has been read from its manifest, for the memo of its blueprint (`Memo.remember`)."""


class Asked(Struct, frozen=True):
    """How many objects a specification asks for."""

    objects: int = 0
    light: int = 0
    """How many of them have one of the blueprint's `light_kinds`."""
    bytes: int = 0
    """How much memory these take beyond what such an object usually takes, because what they specify is large."""
    never_created: int = 0
    """How many more it names that are computed and never created."""


class ScaledOut(Struct, frozen=True):
    """What live objects ask for beyond the specification, because others have changed their numbers (`scale`, autoscalers)."""

    beyond: Asked = Asked()
    is_growing: bool = False
    """Whether some of it has never existed."""


NOT_SCALED: Final = ScaledOut()
C = TypeVar("C")
"""The configuration of an installation, which the engine passes on and never reads."""
C_co = TypeVar("C_co", covariant=True)
C_contra = TypeVar("C_contra", contravariant=True)


class Blueprint(ABC, Generic[C_contra]):
    """The objects that one kind of root should have, under a configuration of the type C. Pure.

    What is not abstract a blueprint leaves out if its roots have no such thing.
    """

    kind: Kind
    """The kind of root."""
    selector: str
    """The label selector that matches all its children."""
    light_kinds: frozenset[str] = frozenset()
    """The kinds of children that take little memory: no other object is computed from one of them."""

    @abstractmethod
    def children(self, configuration: C_contra) -> Mapping[Kind, tuple[str, ...]]:
        """The kinds of objects that it may create under this configuration -> the verbs with which they are written.

        Lists, watches and permissions are derived from it.
        """

    def references(self, configuration: C_contra) -> tuple[Kind, ...]:
        """The kinds of which it reads all objects, of any owner, under this configuration. By default none."""
        return ()

    def reads(self, configuration: C_contra) -> Mapping[str, frozenset[str]]:
        """Kind of child -> the kinds whose live objects it depends on: while one could not be listed, the child is left alone.

        By default none.
        """
        return {}

    def policies(self, configuration: C_contra) -> Mapping[str, Policy]:
        """Kind of child -> the policy with the finalizers that we set and release on it; kinds without finalizers are absent.

        By default none.
        """
        return {}

    @abstractmethod
    def root_of(self, child: Live) -> ResourceId | None:
        """The root that the labels of the child name."""

    @abstractmethod
    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """The key of the slice (the part of the root) that the child belongs to."""

    def scaler_of(self, root: ResourceId, part: str) -> ResourceId | None:
        """The object that has the number of replicas of a part of a root (`Observed.replicas`). By default none."""
        return None

    @abstractmethod
    def desire(self, observed: Observed, now: datetime, configuration: C_contra, memo: Memo) -> Desired:
        """All objects that should exist now."""

    def asked(self, observed: Observed, configuration: C_contra) -> Asked:
        """About how many objects a root asks for, as it is proposed or stored, nested roots not included. By default none.

        It is not validated.
        """
        return Asked()

    def is_complete(self, observed: Observed) -> bool:
        """Whether everything that the root specifies now has existed once. By default, its status says so."""
        return completed_generation(observed.root.body) == observed.root.generation

    def scaled(self, observed: Observed, configuration: C_contra) -> ScaledOut:
        """What its live objects ask for beyond `asked`. By default nothing."""
        return NOT_SCALED

    def lost(self, observed: Observed) -> Mapping[ResourceId, int]:
        """Owner -> how many of its objects of light kinds have existed and are gone, as far as it is recorded. By default none."""
        return {}

    def nested_kinds(self) -> tuple[Kind, ...]:
        """The kinds of roots that its roots propose as parts of themselves. By default none: then `nested_roots` is not called."""
        return ()

    def nested_roots(self, observed: Observed, configuration: C_contra, memo: Memo) -> tuple[NestedRoot, ...]:
        """The roots that this root consists of; the same objects as before if nothing has changed. By default none."""
        return ()

    def lists_failures(self, lives: Iterable[Live]) -> bool:
        """Whether the status of one of these objects lists failed calls, which a process that starts does not know. By default no."""
        return False

    def lookup_kinds(self, configuration: C_contra) -> tuple[Kind, ...]:
        """The kinds of objects that roots name and that are not listed, because there are too many or they are secret.

        Permissions are derived from it. By default none: then `lookups` is not called.
        """
        return ()

    def lookups(self, id: ResourceId, body: Body, configuration: C_contra, memo: Memo) -> tuple[ResourceId, ...]:
        """The objects of these kinds that a root of this body names. The body is not validated. The memo is that of `desire`."""
        return ()

    def mentioned(self, observed: Observed, configuration: C_contra) -> Iterable[ResourceId]:
        """The objects of this root whose names only its observed objects tell, whether they exist or not. By default none."""
        return ()

    def in_use(self, orphans: Sequence[Live], world: World, configuration: C_contra) -> frozenset[str]:
        """The uids of those of these objects, none of which has a root, that other objects still use. By default none.

        The others neither are owned by them nor have the labels of the same root.
        """
        return frozenset()


def root_of(blueprints: Sequence[Blueprint[C]], child: Live) -> ResourceId | None:
    """The root, of any kind, that the labels of the child name."""
    return next((root for blueprint in blueprints if (root := blueprint.root_of(child))), None)


def incomplete_kinds(blueprint: Blueprint[C], incomplete: Collection[str], configuration: C) -> frozenset[str]:
    """The incompletely listed kinds that roots of this kind depend on."""
    if not incomplete:
        return frozenset()
    kinds = (blueprint.kind, *blueprint.children(configuration), *blueprint.references(configuration))
    return frozenset(incomplete).intersection(kind.key for kind in kinds)


def relevant_incomplete(
    blueprints: Iterable[Blueprint[C]],
    incomplete: Mapping[str, Unlisted],
    unserved: Collection[str],
    present: Collection[str],
    configuration: C,
) -> dict[str, Unlisted]:
    """The incompletely listed kinds that matter, with the reasons. `present` are the names of the kinds of roots
    that exist or are proposed.

    A kind does not matter if only roots depend on it that do not exist, and whose objects have no finalizers of ours.
    """

    def matters(blueprint: Blueprint[C]) -> bool:
        kind = blueprint.kind
        if kind.key in unserved:
            return False
        return kind.name in present or kind.key in incomplete or bool(blueprint.policies(configuration))

    relevant = frozenset().union(*(incomplete_kinds(each, incomplete, configuration) for each in blueprints if matters(each)))
    return {kind: why for kind, why in incomplete.items() if kind in relevant}
