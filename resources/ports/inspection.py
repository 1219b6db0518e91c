"""Inspection: what a fabric can find out about an installation and about its domains. Optional for a fabric."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Protocol, runtime_checkable

from msgspec import Struct

from engine.ids import Kind, ResourceId
from engine.observed import Live
from resources.ports.checks import Check, Query, QueryResults, ServedApis
from resources.ports.fabric import Fabric, IslandFabric


class Installation(Struct, frozen=True, eq=False):
    """What `engine preflight` observed of a cluster."""

    apis: ServedApis
    results: QueryResults
    """The results of the queries of all fabrics and scheduler back ends."""
    sets: tuple[Live, ...] | None
    """The PodCliqueSets; None if they could not be listed."""


@runtime_checkable
class InspectingFabric(Protocol):
    """A `Fabric` that knows what it needs from an installation. `engine preflight` runs its checks."""

    def required_kinds(self) -> Mapping[Kind, str]:
        """Kinds that must be served, each with the error message if it is not. Called once, when a command starts.

        Returns nothing where a missing kind would only concern workloads that request a domain themselves (R5).
        """
        ...

    def installation_queries(self) -> tuple[Query, ...]:
        """The objects that `checks` needs to read."""
        ...

    def checks(self, installation: Installation) -> Iterator[Check]:
        """The checks of this fabric, in the order in which they are shown.

        `installation.results` has the results of `installation_queries`. A check that lacks data has the outcome `UNKNOWN`.
        """
        ...


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


@runtime_checkable
class DiagnosingFabric(Protocol):
    """A `Fabric` that can explain the state of a domain. `engine status` and `engine why` use it."""

    def joined_nodes(self, domain: Live) -> tuple[JoinedNode, ...]:
        """The nodes that have joined the domain, according to the domain object alone. Empty if it names none."""
        ...

    def domain_queries(self, domain: ResourceId) -> tuple[Query, ...]:
        """The objects that `diagnose` needs to read about this domain, which may not exist."""
        ...

    def diagnose(self, domain: ResourceId, results: QueryResults, now: datetime) -> Iterator[Diagnosis]:
        """The findings about a domain, the most severe first. `results` has the results of `domain_queries`; `now` is in UTC."""
        ...


@runtime_checkable
class IslandReportingFabric(Fabric, IslandFabric, DiagnosingFabric, Protocol):
    """A `Fabric` that connects only nodes of the same island, and whose domains name the nodes that have joined them (N29)."""


def required_kinds(fabrics: Iterable[Fabric]) -> Iterator[tuple[Kind, str]]:
    """The kinds that must be served before a command starts, each with the error message if it is not."""
    for fabric in fabrics:
        if isinstance(fabric, InspectingFabric):
            yield from fabric.required_kinds().items()
