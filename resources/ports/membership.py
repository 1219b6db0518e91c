"""Membership: what the live objects of a set record about its fabric domains, and how a fabric reads it. Pure."""

from abc import ABC, abstractmethod

from msgspec import Struct

from engine.observed import Live
from engine.resource import Body
from resources.schema.issues import Issue


class ObjectRecord(Struct, frozen=True):
    """What one PodClique or PodCliqueScalingGroup records."""

    annotations: tuple[tuple[str, str], ...] = ()
    """Those of its annotations that request domains, by key."""
    templates: tuple[str, ...] = ()
    """The names of the ResourceClaimTemplates of its claims that have the name of the engine's claim."""
    eligible: bool = False
    """Whether its pods would join a domain that a set requests for all pods of a replica, e.g. because they use GPUs."""


class CliqueRecord(Struct, frozen=True):
    """What a PodClique records. PodCliques of one clique and one replica that record the same are one record.

    For a clique without PodCliques it is what the PodGang of the replica records.
    """

    clique: str
    """The name of its clique in the template."""
    index: int
    """The index of its replica of the set."""
    record: ObjectRecord
    group_replica: int | None = None
    """The index of its replica of the scaling group; None outside scaling groups."""


class GroupRecord(Struct, frozen=True):
    """What a PodCliqueScalingGroup records."""

    group: str
    """The name of its scaling group in the template."""
    index: int
    """The index of its replica of the set."""
    record: ObjectRecord


class DomainRecord(Struct, frozen=True):
    """A domain object that the set owns, or whose ResourceClaimTemplate one of its PodCliques claims."""

    name: str
    template: str
    """The name of its ResourceClaimTemplate."""
    controlled: bool
    """Whether the set controls it: it is the domain of one replica."""
    shared: bool
    """Whether the set is one of the owners that share it."""


class MembershipRecord(Struct, frozen=True):
    """What the live objects of a set record about the domains of one fabric. Records of equal content are equal."""

    root: str
    """The name of the set."""
    cliques: tuple[CliqueRecord, ...] = ()
    groups: tuple[GroupRecord, ...] = ()
    domains: tuple[DomainRecord, ...] = ()
    has_plain_gang: bool = False
    """Whether a replica has a PodGang that records nothing: the set is not new, and as far as that PodGang knows in no domain."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is recorded: the set has no objects from which its membership could be read."""
        return not (self.cliques or self.groups or self.domains or self.has_plain_gang)


class RecordedSet(Struct, frozen=True, eq=False):
    """The body of a set with the membership that its objects record."""

    body: Body
    """The same object as before if nothing differs."""
    issues: tuple[Issue, ...] = ()
    """One for each annotation that differs from the record, in the words of the rules that make it immutable."""


class MembershipReader(ABC):
    """Reads from live objects of sets in which domains their pods are: later edits of annotations have no effect (N24, N25)."""

    @abstractmethod
    def record_of(self, child: Live) -> ObjectRecord:
        """What a PodClique or PodCliqueScalingGroup records. Fields may have the wrong shape."""

    @abstractmethod
    def as_recorded(self, body: Body, record: MembershipRecord) -> RecordedSet:
        """The set with the annotations that request domains as its objects record them. What they do not record stays as it is.

        `body` may be invalid. The hash of a clique whose annotations did not change since its PodCliques were created must stay the same.
        """
