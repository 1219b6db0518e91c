"""Query: what a plug-in needs to read from the cluster besides the objects of workloads, and the results."""

from collections.abc import Mapping

from msgspec import Struct, field

from engine.ids import Kind
from engine.observed import Live
from engine.resource import Body


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
