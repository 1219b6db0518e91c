"""Check: one requirement on an installation and the queries it asks, judged before workloads are managed there."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.resource import Body

GRANT: Final = "allow it with kubectl create clusterrole and kubectl create clusterrolebinding, and run engine preflight again"
"""What to do if reading is forbidden; the server's message names the user and the resource."""


class Query(Struct, frozen=True):
    """Objects to read: one by its name, or all objects of a kind that the selectors match."""

    kind: Kind
    namespace: str = ""
    """Empty: all namespaces."""
    name: str = ""
    """Empty: all objects that the selectors match."""
    labels: str = ""
    """A label selector."""
    fields: str = ""
    """A field selector."""
    versions: tuple[str, ...] = ()
    """Other versions of the kind that can be read instead, in order of preference."""


class QueryResult(Struct, frozen=True, eq=False):
    """The objects that a query matched, or why they are not known."""

    objects: tuple[Live, ...] = ()
    error: str = ""
    """Why the objects could not be read; empty if they were."""
    is_forbidden: bool = False
    """Whether they could not be read because the right to do so is missing."""
    served: bool = True
    """Whether the cluster serves that kind."""

    @property
    def known(self) -> bool:
        """Whether `objects` is complete: the query was made and did not fail."""
        return not self.error


def first_failed(*results: QueryResult) -> QueryResult | None:
    """The first of the results whose objects could not be read; None if all could."""
    return next((result for result in results if not result.known), None)


NOT_QUERIED = QueryResult(error="it was not queried")


class QueryResults(Struct, frozen=True, eq=False):
    """The results of several queries."""

    results: Mapping[Query, QueryResult] = field(default_factory=dict)

    def of(self, query: Query) -> QueryResult:
        """The result of one query; `NOT_QUERIED` if it was not made."""
        return self.results.get(query, NOT_QUERIED)


class ServedApis(Struct, frozen=True, eq=False):
    """The kinds that an API server serves, in every version."""

    kinds: frozenset[tuple[str, str, str]] = frozenset()
    """Group, version and plural."""
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """`group/version` -> why its kinds could not be discovered."""
    error: str = ""
    """Why discovery failed as a whole; empty if it succeeded."""
    version: Body = field(default_factory=dict)
    """The server's answer to `/version`."""

    def serves(self, kind: Kind) -> bool:
        """Whether exactly that group, version and kind is known to be served."""
        return (kind.group, kind.version, kind.plural) in self.kinds

    def why_unknown(self, kind: Kind) -> str:
        """Why it is not known whether that kind is served; empty if it is known."""
        return self.error or ("" if self.serves(kind) else self.incomplete.get(kind.api_version, ""))

    def versions(self, group: str, plural: str) -> tuple[str, ...]:
        """The versions in which a kind is served, sorted by name."""
        return tuple(sorted(version for other, version, name in self.kinds if (other, name) == (group, plural)))


class Severity(StrEnum):
    """How serious it is if a requirement is not met."""

    HARD = "hard"
    """Nothing works, or not what is configured."""
    WARNING = "warning"
    """Something does not work, or works less well."""
    INFO = "info"
    """For information only."""


class CheckResult(StrEnum):
    """The result of a check."""

    GOOD = "ok"
    BAD = "bad"
    UNKNOWN = "unknown"
    """The requirement could not be judged, e.g. because listing was forbidden."""


class Check(Struct, frozen=True):
    """One check."""

    level: Severity
    subject: str
    """What is checked, e.g. `server version`."""
    outcome: CheckResult
    finding: str
    """What was found, in one sentence."""
    remedy: str = ""
    """What to do if the outcome is not good; empty if there is nothing to do."""


def judged(level: Severity, subject: str, fault: str, finding: str, remedy: str = "") -> Check:
    """A check that is bad and says `fault` if that is not empty; otherwise it is good and says `finding`."""
    return Check(level, subject, CheckResult.BAD, fault, remedy) if fault else Check(level, subject, CheckResult.GOOD, finding)


def unread(level: Severity, subject: str, result: QueryResult, otherwise: str = "") -> Check:
    """A check that needs a query which failed, or which found nothing: `otherwise` says that. For a missing right the remedy is `GRANT`."""
    return unknown(level, subject, result.error or otherwise, GRANT if result.is_forbidden else "")


def unknown(level: Severity, subject: str, why: str, remedy: str = "") -> Check:
    """A check with the outcome `UNKNOWN`; `why` says why it could not be judged."""
    return Check(level, subject, CheckResult.UNKNOWN, f"cannot be judged: {why}", remedy)


class Installation(Struct, frozen=True, eq=False):
    """What `engine preflight` observed of a cluster."""

    apis: ServedApis
    results: QueryResults
    """The results of the queries of all fabrics and scheduler back ends."""
    sets: tuple[Live, ...] | None
    """The PodCliqueSets; None if they could not be listed."""
    now: datetime | None = None
    """When it was observed; None: not known."""


class PlugIn(ABC):
    """What scheduler back ends and fabrics have in common. Instances are hashable, and their answers depend on the arguments alone."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the configuration and in messages."""

    def required_kinds(self) -> Mapping[Kind, str]:
        """Kinds that must be served, each with the error message if it is not. Called once, when a command starts.

        None, as by default, where a missing kind would only concern workloads that ask for what it is needed for (R5).
        """
        return {}

    def installation_queries(self) -> Iterable[Query]:
        """The objects that `checks` needs to read. None by default."""
        return ()

    def checks(self, installation: Installation) -> Iterable[Check]:
        """What `engine preflight` checks of an installation for this plug-in, in the order in which it is shown. Nothing by default.

        `installation.results` has the results of `installation_queries`. A check that lacks data has the outcome `UNKNOWN`.
        """
        return ()


class JoinedNode(Struct, frozen=True):
    """A node that has joined a domain, according to the driver."""

    node: str
    island: str
    """The part of the cluster within which accelerators reach one another, e.g. an NVLink clique; empty if the node has no fabric."""
    ready: bool
    """Whether the driver reports the node as ready in the domain."""


class Diagnosis(Struct, frozen=True):
    """One finding about a domain."""

    about: ResourceId
    """The object that the finding is about."""
    observation: str
    """What is observed, e.g. `pod a: Pending`."""
    cause: str
    """Why that is so, in one sentence."""
    advice: str = ""
    """What to do about it; empty if there is nothing to do."""
    bad: bool = True
    """Whether something is wrong; otherwise the finding only explains a normal state."""
    pods: tuple[ResourceId, ...] = ()
    """All pods that the finding is about, if it is about pods."""
