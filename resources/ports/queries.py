"""Inquiry: what somebody wants looked at beside the objects of workloads, and what a look brought."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.ids import Kind
from engine.observed import Live

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """Objects to look at: one by its name, or all of a kind that the selectors leave."""

    kind: Kind
    namespace: str = ""
    """Empty: all of them."""
    name: str = ""
    labels: str = ""
    fields: str = ""
    versions: tuple[str, ...] = ()
    """Older versions of the kind that do as well, the best first."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryResult:
    """The objects, or why nobody knows them."""

    objects: tuple[Live, ...] = ()
    fault: str = ""
    """Why it is not known what there is; empty where it is."""
    served: bool = True
    """Whether the cluster has that kind at all."""

    @property
    def known(self) -> bool:
        """Whether what is not among the objects is not there."""
        return not self.fault


NOT_QUERIED = QueryResult(fault="nobody has looked")


@dataclass(frozen=True, slots=True, eq=False)
class QueryResults:
    """What came of many questions."""

    known: Mapping[Query, QueryResult] = field(default_factory=dict)

    def to(self, question: Query) -> QueryResult:
        """The answer to one of them."""
        return self.known.get(question, NOT_QUERIED)


@dataclass(frozen=True, slots=True, eq=False)
class ServedApis:
    """What a server serves, in every version, and what of it nobody can tell."""

    kinds: frozenset[tuple[str, str, str]] = frozenset()
    """Group, version and plural."""
    holes: Mapping[str, str] = field(default_factory=dict)
    """`group/version` -> why nobody knows what is in it."""
    fault: str = ""
    """Why nothing is known of it at all."""
    version: Body = field(default_factory=dict)
    """What the server says of itself."""

    def serves(self, kind: Kind) -> bool:
        """Whether exactly that group, version and kind is served."""
        return (kind.group, kind.version, kind.plural) in self.kinds

    def doubt(self, kind: Kind) -> str:
        """Why it is not known whether that kind is served; empty where it is known."""
        return self.fault or ("" if self.serves(kind) else self.holes.get(kind.api_version, ""))

    def versions(self, group: str, plural: str) -> tuple[str, ...]:
        """The versions in which something is served, by name."""
        return tuple(sorted(version for its, version, name in self.kinds if (its, name) == (group, plural)))
