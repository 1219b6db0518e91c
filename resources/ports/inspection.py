"""Inspection: what a fabric may tell about an installation and about its domains."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from engine.ids import Kind, ResourceId
from engine.observed import Live
from resources.ports.checks import Check
from resources.ports.queries import Query, QueryResults, ServedApis


@dataclass(frozen=True, slots=True, eq=False)
class Installation:
    """An installation as it was found: what the server offers, what came of the questions, and what is to run there."""

    offer: ServedApis
    answers: QueryResults
    sets: tuple[Live, ...] | None
    """The sets that are there; None where they could not be seen."""


@runtime_checkable
class InspectingFabric(Protocol):
    """What a fabric may offer beside `Fabric`: what an installation needs for it, and how to see whether it is so."""

    def demands(self) -> Mapping[Kind, str]:
        """Kinds without which nothing may start, as things are configured; each with what is said where the cluster does not serve it."""
        ...

    def questions(self) -> tuple[Query, ...]:
        """What it wants looked at."""
        ...

    def checks(self, site: Installation) -> Iterator[Check]:
        """What it makes of it."""
        ...


@dataclass(frozen=True, slots=True)
class JoinedNode:
    """A node that is in a domain, as the driver says."""

    node: str
    island: str
    """The part of the cluster within which accelerators reach one another; empty where the node has no fabric at all."""
    ready: bool


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Something that is seen about a domain, what it comes from, and what to do about it."""

    about: ResourceId
    observation: str
    cause: str
    advice: str = ""
    bad: bool = True
    """Whether something is wrong; otherwise it only explains."""


@runtime_checkable
class DiagnosingFabric(Protocol):
    """What a fabric may offer beside `Fabric`: what its driver says about a domain, and why a domain is as it is."""

    def joined(self, domain: Live) -> tuple[JoinedNode, ...]:
        """The nodes that are in it."""
        ...

    def clues(self, domain: ResourceId) -> tuple[Query, ...]:
        """What it wants looked at."""
        ...

    def explain(self, domain: ResourceId, answers: QueryResults, now: datetime) -> Iterator[Diagnosis]:
        """What it makes of it, the gravest first."""
        ...
