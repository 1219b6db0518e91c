"""Set size: how many objects a PodCliqueSet asks for, from its JSON. Python's integers do not overflow."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import astuple

from engine.paths import get
from engine.resource import Body
from resources.base.fields import GROUPS, cliques_of, mapping, mappings, members_of

REFERENCE: Final = 48
"""The bytes of a pod reference in a PodGang besides the names of its namespace, set, group and clique."""


class Totals(Struct, frozen=True):
    """What is limited."""

    replicas: int = 0
    pods: int = 0
    cliques: int = 0
    bytes: int = 0
    """The size of the largest object: the spec of the set, or the pod references of one PodGang."""
    stored: int = 0
    """The bytes of the spec and of all pod references."""


class ScaledPart(Struct, frozen=True):
    """A clique outside scaling groups, a scaling group, or a clique in one, as it can be scaled; of a graph a service."""

    name: str
    most: int
    """The replicas with which it counts: as many as its autoscaler may ask for."""
    pods: int = 1
    """The pods of one replica of it."""
    references: int = 0
    """The bytes of the references to these."""
    members: tuple["ScaledPart", ...] | None = None
    """The cliques of a scaling group; None for a clique."""
    minimum: int = 0
    """The replicas of a scaling group that are in the base gang."""

    @property
    def in_base(self) -> int:
        """The bytes of its references in the base gang."""
        return self.references * (self.most if self.members is None else min(self.most, self.minimum))

    @property
    def cliques(self) -> int:
        """The PodCliques of one replica of the set."""
        return 1 if self.members is None else self.most * len(self.members)

    def grown(self, totals: Totals, count: int) -> Totals:
        """What its set or graph asks for if this has `count` replicas in one place; as few as it counts with change nothing."""
        more = max(count - self.most, 0)
        bytes = more * self.references
        return Totals(
            totals.replicas,
            totals.pods + more * self.pods,
            totals.cliques + more * len(self.members or ()),
            totals.bytes + (bytes if self.members is None else 0),
            totals.stored + bytes,
        )


class SetSize(Struct, frozen=True, dict=True):
    """What a set asks for."""

    replicas: int
    parts: tuple[ScaledPart, ...]
    """Its cliques outside scaling groups, and its scaling groups."""
    spec: int
    """The bytes of its spec as JSON."""

    @cached_property
    def totals(self) -> Totals:
        """What all replicas of it ask for together."""
        return self.with_replicas(self.replicas)

    def with_replicas(self, replicas: int) -> Totals:
        """The same if it had so many replicas."""
        scaled = (part.references for part in self.parts if part.members is not None and part.most > part.minimum)
        gang = max((sum(part.in_base for part in self.parts), *scaled)) if replicas else 0
        return Totals(
            replicas,
            pods=replicas * sum(part.most * part.pods for part in self.parts),
            cliques=replicas * sum(part.cliques for part in self.parts),
            bytes=max(self.spec, gang),
            stored=self.spec + replicas * sum(part.most * part.references for part in self.parts),
        )


class GraphSize(Struct, frozen=True, dict=True):
    """What a graph asks for."""

    services: tuple[ScaledPart, ...]
    """Its services; the pods of a replica are its nodes."""
    spec: int
    """The bytes of its spec as JSON."""
    has_set: bool
    """Whether it runs with a PodCliqueSet, which counts in its place in the namespace."""

    @cached_property
    def totals(self) -> Totals:
        """What all its services ask for together."""
        return Totals(pods=sum(service.most * service.pods for service in self.services), bytes=self.spec, stored=self.spec)

    @property
    def counted(self) -> Totals:
        """What it counts in its namespace."""
        return Totals() if self.has_set else self.totals


NO_GRAPHS: Final[Mapping[str, GraphSize]] = {}


class SetSizes(Struct, frozen=True, dict=True):
    """The PodCliqueSets and the graphs of one namespace."""

    by_name: Mapping[str, SetSize]
    graphs: Mapping[str, GraphSize] = NO_GRAPHS

    @cached_property
    def total(self) -> Totals:
        """All of them together."""
        return sum_of([Totals(), *(size.totals for size in self.by_name.values()), *(graph.counted for graph in self.graphs.values())])

    def besides(self, name: str) -> Totals:
        """All of them together without the set of this name."""
        return self._without(self.by_name[name].totals if name in self.by_name else Totals())

    def besides_graph(self, name: str) -> Totals:
        """All of them together without the graph of this name."""
        return self._without(self.graphs[name].counted if name in self.graphs else Totals())

    def _without(self, own: Totals) -> Totals:
        return Totals(*(whole - part for whole, part in zip(astuple(self.total), astuple(own), strict=True)))


def sum_of(totals: Sequence[Totals]) -> Totals:
    """The sum of each measure; of no sets, nothing."""
    return Totals(*(sum(map(attrgetter(measure), totals)) for measure in Totals.__struct_fields__))


def size_of(body: Body, namespace: str) -> SetSize:
    """The size of a set in this namespace. Parts of the wrong shape count as absent."""
    spec = mapping(body.get("spec"))
    return SetSize(_count(spec.get("replicas"), 0), tuple(_parts(body, namespace)), json_bytes(spec))


def least_pods(body: Body) -> int:
    """The pods without which the largest gang of a set does not run: those of a base gang, which has the minimum of each part of the set.

    Parts of the wrong shape count as absent, absent fields have their defaults.
    """
    minima = {str(clique.get("name")): _least(mapping(clique.get("spec"))) for clique in cliques_of(body)}
    groups = mappings(get(body, GROUPS, ()))
    members = [[minima.pop(name, 0) for name in members_of(group)] for group in groups]
    return sum(minima.values()) + sum(_count(group.get("minAvailable"), 1) * sum(pods) for group, pods in zip(groups, members, strict=True))


def _least(spec: Mapping[str, Any]) -> int:
    return _count(spec.get("minAvailable"), _count(spec.get("replicas"), 1) or 1)


def _parts(body: Body, namespace: str) -> Iterator[ScaledPart]:
    lengths = REFERENCE + len(namespace) + _name_length(mapping(body.get("metadata")))
    cliques = [_clique(clique, lengths) for clique in cliques_of(body)]
    groups = mappings(get(body, GROUPS, ()))
    grouped = {name for group in groups for name in members_of(group)}
    yield from (clique for clique in cliques if clique.name not in grouped)
    for group in groups:
        name, named = str(group.get("name")), frozenset(members_of(group))
        members = tuple(clique for clique in cliques if clique.name in named)
        yield ScaledPart(
            name,
            _most(_count(group.get("replicas"), 1), group.get("scaleConfig")),
            sum(member.most for member in members),
            sum(member.most * (member.references + len(name)) for member in members),
            members,
            _count(group.get("minAvailable"), 1),
        )


def _clique(clique: Body, lengths: int) -> ScaledPart:
    name, spec = str(clique.get("name")), mapping(clique.get("spec"))
    return ScaledPart(name, _most(_count(spec.get("replicas"), 1) or 1, spec.get("autoScalingConfig")), references=lengths + len(name))


def _name_length(metadata: Mapping[str, Any]) -> int:
    """The length of the name of a set; of one that is to be generated, of the longest."""
    return len(str(metadata.get("name") or "")) or len(str(metadata.get("generateName") or "")[:58]) + 5


def _most(replicas: int, scaling: Any) -> int:
    return max(replicas, _count(mapping(scaling).get("maxReplicas"), 0))


def _count(value: Any, default: int) -> int:
    """A number of replicas: `default` if it is absent, 0 if it is negative or no integer."""
    if value is None:
        return default
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else 0


def json_bytes(value: Any) -> int:
    """The bytes of a value as JSON; 0 if it is none."""
    try:
        return len(orjson.dumps(value, default=_as_dict))
    except orjson.JSONEncodeError:
        return 0


def _as_dict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError
