"""Child kinds: what there is to know about each kind of objects that a PodCliqueSet owns, and what follows from the table of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.reason import Because, Reason
from engine.resource import PLAIN, EventGroup, Policy, Resource
from engine.verb import Verb
from resources.admission.request import Act
from resources.base.kinds import WRITES
from resources.model.template import Template
from resources.model.view import View
from resources.ports.configuration import Configuration
from resources.status.errors import Codes

KindName = tuple[str, str]
"""The group and the name of a kind."""
ChildRows = Mapping[KindName, "ChildKind"]
CHANGES: Final = frozenset({Act.UPDATE, Act.DELETE})
ANY: Final = CHANGES | {Act.CREATE}


class EventTexts(Struct, frozen=True):
    """The reasons and messages of the events about one kind of call, successful or failed.

    In messages `{key}` is namespace/name of the object, `{name}` its name, `{error}` the error. `done_message` names the object, once.
    """

    done_reason: str
    done_message: str
    failed_reason: str
    failed_message: str


class DeletionGroup(Struct, frozen=True):
    """Why some objects are deleted together."""

    because: Because
    intended: bool = True
    """Whether a user intended the deletion; unintended ones count against the delete budget."""
    event_group: EventGroup | None = None
    """The replica that the objects are deleted with, if the deletion is reported as one event."""


def unexpected(why: str) -> DeletionGroup:
    """The deletion of what no user has asked to delete: it counts against the delete budget."""
    return DeletionGroup(Because(Reason.ORPHANED, why), intended=False)


def none_of_replica(view: View) -> Iterable[Resource]:
    """No objects."""
    return ()


def none_of_set(template: Template, lives: Mapping[ResourceId, Live]) -> Iterable[Resource]:
    """No objects."""
    return ()


def never(view: View, live: Live) -> None:
    """Nothing of a replica is obsolete."""


class ChildKind(Struct, frozen=True, eq=False):
    """One kind of objects that a set owns, or the kinds that plug-ins add for one purpose."""

    kind: Kind | Callable[[Configuration], Iterable[Kind]]
    """The kind; of plug-ins a function that returns the kinds of those that are enabled."""
    reads: tuple[Kind, ...] = ()
    """The kinds of live objects from which these objects are computed. They are left alone while one of those could not be listed."""
    of_replica: Callable[[View], Iterable[Resource]] = none_of_replica
    """The renderer: the desired objects of one replica."""
    of_set: Callable[[Template, Mapping[ResourceId, Live]], Iterable[Resource]] = none_of_set
    """The renderer of the objects that the replicas share, given the live ones."""
    obsolete: Callable[[View, Live], DeletionGroup | str | None] = never
    """Why an object of a replica that is not desired is deleted. A text: why it is kept all the same. None: it is left alone."""
    finalizer: str = ""
    """Our finalizer on it; empty if it has none, or that of its fabric."""
    waits_for_pods: bool = True
    """Whether it is deleted only after all pods that are deleted with it are gone."""
    deleted_before: tuple[Kind, ...] = ()
    """Kinds of objects that do not own it and are deleted after it nevertheless, except those that an object of its own kind owns."""
    ordered: Callable[[Kind, Configuration], tuple[Kind, ...]] | None = None
    """Kind, of those that plug-ins add, and configuration -> `deleted_before` of that kind. None: it is the same for all."""
    while_deleting: str = ""
    """What the cluster has to do before an object that is being deleted is gone; it is reported. Empty: nothing is known about that."""
    in_event_group: bool = False
    """Whether the Event about the replica that it is deleted with replaces its own."""
    codes: Mapping[Kind, Codes] = field(default_factory=dict)
    """Kind of the parent -> the error codes in the parent's status. Sets report all calls for their children: codes that they do not
    have here are made from the name of the kind."""
    events: Mapping[tuple[Kind, Verb], EventTexts] = field(default_factory=dict)
    """Kind of the parent, verb -> the texts of the Event about a call. Other calls record no Event."""
    protected: frozenset[Act] = frozenset()
    """The operations that only the engine and exempt users may do, if managed objects are protected."""
    verbs: tuple[str, ...] = WRITES
    """How these objects are written, besides their status. Permissions follow from it."""

    @property
    def policy(self) -> Policy:
        """How these objects are deleted: with our finalizer released, if they have one."""
        return Policy(finalizers=(self.finalizer,)) if self.finalizer else PLAIN

    def of(self, kind: Kind, configuration: Configuration) -> "ChildKind":
        """The row of one of the kinds that plug-ins add."""
        return replace(self, deleted_before=self.ordered(kind, configuration)) if self.ordered is not None else self


OTHER: Final = ChildKind(lambda configuration: ())
"""The row of objects with the labels of a set that are of none of its kinds."""


class ChildTable(Struct, frozen=True, eq=False, dict=True):
    """A table of child kinds. What depends on the kind of a child is read from it."""

    rows: tuple[ChildKind, ...]

    def writes(self, configuration: Configuration) -> Mapping[Kind, tuple[str, ...]]:
        """Kind -> how its objects are written (`Blueprint.children`)."""
        return {kind: row.verbs for kind, row in (*self._fixed, *self._of_plug_ins(configuration))}

    def reads(self, configuration: Configuration) -> Mapping[str, frozenset[str]]:
        """Kind -> the kinds from which its objects are computed; those that are computed from the set alone are absent."""
        return {**self._fixed_reads, **_reads(self._of_plug_ins(configuration))}

    def by_kind(self, configuration: Configuration) -> ChildRows:
        """Kind -> its row."""
        return {**self._fixed_rows, **_rows(self._of_plug_ins(configuration))}

    @cached_property
    def policies(self) -> Mapping[str, Policy]:
        """Kind -> the policy with our finalizer, for those that have one (`Blueprint.policies`)."""
        return {kind.name: row.policy for kind, row in self._fixed if row.finalizer}

    def protected(self, configuration: Configuration) -> Mapping[Kind, frozenset[Act]]:
        """Kind -> the protected operations; kinds without any are absent."""
        return {kind: row.protected for kind, row in (*self._fixed, *self._of_plug_ins(configuration)) if row.protected}

    @cached_property
    def codes(self) -> Mapping[tuple[str, str], Codes]:
        """Kinds of parent and child -> error codes."""
        return {(parent.name, kind.name): codes for kind, row in self._fixed for parent, codes in row.codes.items()}

    @cached_property
    def parents(self) -> frozenset[str]:
        """The kinds of objects whose statuses list failed calls for their children."""
        return frozenset(parent for parent, _ in self.codes)

    @cached_property
    def events(self) -> Mapping[tuple[str, str, Verb], EventTexts]:
        """Kinds of parent and child, verb -> the texts of the Event about a call."""
        return {(parent.name, kind.name, verb): texts for kind, row in self._fixed for (parent, verb), texts in row.events.items()}

    @cached_property
    def _fixed(self) -> tuple[tuple[Kind, ChildKind], ...]:
        """The kinds that no plug-in adds, with their rows."""
        return tuple((row.kind, row) for row in self.rows if isinstance(row.kind, Kind))

    @cached_property
    def _fixed_reads(self) -> Mapping[str, frozenset[str]]:
        return _reads(self._fixed)

    @cached_property
    def _fixed_rows(self) -> ChildRows:
        return _rows(self._fixed)

    def _of_plug_ins(self, configuration: Configuration) -> Iterator[tuple[Kind, ChildKind]]:
        """The kinds that plug-ins add, with their rows."""
        return (
            (kind, row.of(kind, configuration)) for row in self.rows if not isinstance(row.kind, Kind) for kind in row.kind(configuration)
        )


def _reads(rows: Iterable[tuple[Kind, ChildKind]]) -> Mapping[str, frozenset[str]]:
    return {kind.key: frozenset(read.key for read in row.reads) for kind, row in rows if row.reads}


def _rows(rows: Iterable[tuple[Kind, ChildKind]]) -> ChildRows:
    return {(kind.group, kind.name): row for kind, row in rows}
