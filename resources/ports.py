"""Ports: what a plug-in may do for a workload. All of it is pure; a plug-in never meets a client."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.resource import Body, Policy
from resources.admission.issues import Issue
from resources.admission.request import Neighbourhood
from resources.check import Check
from resources.inquiry import Answers, Offer, Question

INDEX = "$(GROVE_PCS_INDEX)"
"""In the name of a domain: the index of the replica. No Kubernetes name has such characters, so nothing else can be meant."""


class Scheduler(Protocol):
    """A scheduler back end: how pods and gangs speak to one particular scheduler."""

    @property
    def name(self) -> str:
        """The profile name in the configuration, which is also what a pod names as its `schedulerName`."""
        ...

    def dress(self, spec: dict[str, Any]) -> dict[str, Any]:
        """A pod spec as this scheduler wants it."""
        ...


@runtime_checkable
class Exacting(Protocol):
    """What a scheduler back end may offer beside `Scheduler`: rules of its own about the workloads that name it."""

    def issues(self, body: Body, around: Neighbourhood) -> Iterator[Issue]:
        """Why it cannot take a set that has its defaults, whether the set is new or not. What `around` does not know is not judged."""
        ...

    def warnings(self, body: Body, around: Neighbourhood) -> Iterator[str]:
        """What about the set was not judged, or is hardly meant."""
        ...


@dataclass(frozen=True, slots=True)
class Levels:
    """A ClusterTopologyBinding, as far as it matters to schedulers."""

    binding: str
    """Its name."""
    keys: tuple[str, ...]
    """The labels of nodes by which its levels are told, from the broadest to the narrowest."""


@runtime_checkable
class TopologyAware(Protocol):
    """What a scheduler back end may offer beside `Scheduler`: a topology of its own, which follows a ClusterTopologyBinding.

    Where a binding names an object for this scheduler, somebody else keeps that object, and it is only held against the binding;
    otherwise one is kept for it here.
    """

    @property
    def topology(self) -> Kind:
        """The kind of the objects in which it keeps its topology. They are cluster-scoped."""
        ...

    @property
    def topology_policy(self) -> Policy:
        """How differences of such an object are treated, above all what of it cannot be changed in place."""
        ...

    def topology_for(self, levels: Levels) -> Body:
        """The object for a binding, without its owner: the binding."""
        ...

    def topology_drift(self, name: str, live: Live | None, levels: Levels) -> str:
        """Why the object of that name, which anybody may have written, does not say the same as the binding; empty if it does."""
        ...

    def topology_taken(self, name: str, levels: Levels) -> str:
        """What there is to say where the object that is to be kept for a binding is there already, and not the binding's own."""
        ...


@dataclass(frozen=True, slots=True)
class Wish:
    """A fabric domain that pods of a set are to be in."""

    name: str
    """The name of the domain object; where it holds `INDEX`, every replica has one of its own.

    One that is not shared is known by it: it is called `<set>-INDEX`, or something that begins with `<set>-INDEX-`.
    """
    cliques: frozenset[str]
    """The cliques of the template whose pods are in it."""
    shared: bool
    """Whether it is asked for by name, and shared with whoever else in the namespace asks for it; else it is a replica's own."""


class Fabric(Protocol):
    """A vendor's fabric: domains within which accelerators of several nodes reach one another, and how pods get into them.

    A domain is an object of the vendor's that somebody must make; the vendor's driver answers with a ResourceClaimTemplate, which
    every pod of the domain claims. What has an order in that (domain, template, pods, and back) is the engine's business, the same
    for all vendors; what is said in it is the vendor's.
    """

    @property
    def name(self) -> str:
        """What the fabric is called in settings and messages."""
        ...

    @property
    def kind(self) -> Kind:
        """The kind of its domains."""
        ...

    @property
    def finalizer(self) -> str:
        """Ours on the domains that we make."""
        ...

    def enrolled(self, body: Body) -> Body:
        """A set that is being created, with what it is given where it says nothing itself; the same body if that is nothing."""
        ...

    def creation_issues(self, body: Body) -> Iterator[Issue]:
        """What is wrong with a set that is being created, defaults and `enrolled` applied."""
        ...

    def update_issues(self, old: Body, new: Body) -> Iterator[Issue]:
        """What must not be changed about a set."""
        ...

    def warnings(self, body: Body) -> Iterator[str]:
        """What about a set is allowed, and hardly meant."""
        ...

    def wishes(self, root: str, annotations: Mapping[str, str], cliques: Mapping[str, Body]) -> tuple[Wish, ...]:
        """The domains that a set asks for. `cliques` are the entries of its template by name."""
        ...

    def inherited(self, annotations: Mapping[str, str]) -> Mapping[str, str]:
        """The annotations that a set's scaling groups get from it."""
        ...

    def component(self, wish: Wish) -> str:
        """The value of the label `app.kubernetes.io/component` on a domain."""
        ...

    def spec(self, name: str) -> Body:
        """The spec of a domain of that name."""
        ...

    def template(self, domain: Live | None, name: str) -> str:
        """The name of the ResourceClaimTemplate through which pods get into the domain of that name, which may not be there yet."""
        ...

    def unready(self, domain: Live, template: Live) -> str:
        """Why the template does not lead into the domain (yet); empty if it does."""
        ...

    def domain_of(self, claim: Live) -> str:
        """The uid of the domain that a ResourceClaim leads into; empty if it is none of this fabric's."""
        ...

    def dressed(self, spec: Body, template: str) -> dict[str, Any]:
        """A pod spec that claims a place in the domain of that template."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """An installation as it was found: what the server offers, what came of the questions, and what is to run there."""

    offer: Offer
    answers: Answers
    sets: tuple[Live, ...] | None
    """The sets that are there; None where they could not be seen."""


@runtime_checkable
class Inspecting(Protocol):
    """What a fabric may offer beside `Fabric`: what an installation needs for it, and how to see whether it is so."""

    def demands(self) -> Mapping[Kind, str]:
        """Kinds without which nothing may start, as things are configured; each with what is said where the cluster does not serve it."""
        ...

    def questions(self) -> tuple[Question, ...]:
        """What it wants looked at."""
        ...

    def checks(self, site: Site) -> Iterator[Check]:
        """What it makes of it."""
        ...


@dataclass(frozen=True, slots=True)
class Joined:
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
class Explaining(Protocol):
    """What a fabric may offer beside `Fabric`: what its driver says about a domain, and why a domain is as it is."""

    def joined(self, domain: Live) -> tuple[Joined, ...]:
        """The nodes that are in it."""
        ...

    def clues(self, domain: ResourceId) -> tuple[Question, ...]:
        """What it wants looked at."""
        ...

    def explain(self, domain: ResourceId, answers: Answers, now: datetime) -> Iterator[Diagnosis]:
        """What it makes of it, the gravest first."""
        ...


@runtime_checkable
class Confined(Protocol):
    """What a fabric may offer beside `Fabric`: that a node has one place, which a pod in a domain takes, whichever domain it is."""

    @property
    def inventory(self) -> Kind:
        """The kind of the objects in which its driver says what nodes have."""
        ...

    def places(self, inventory: Iterable[Live]) -> frozenset[str]:
        """The nodes that have a place."""
        ...

    def taken(self, claim: Live) -> str:
        """The node whose place a ResourceClaim has been given; empty if it has none."""
        ...
