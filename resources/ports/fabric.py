"""Fabrics: the vendors' domains within which accelerators of several nodes reach one another, and how pods join them. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from engine.ids import Kind
from engine.observed import Live
from engine.resource import Body
from resources.schema.issues import Issue

INDEX = "$(GROVE_PCS_INDEX)"
"""In the name of a domain: the index of the replica. No Kubernetes name has such characters, so nothing else can be meant."""


@dataclass(frozen=True, slots=True)
class DomainRequest:
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

    def domain_requests(self, root: str, annotations: Mapping[str, str], cliques: Mapping[str, Body]) -> tuple[DomainRequest, ...]:
        """The domains that a set asks for. `cliques` are the entries of its template by name."""
        ...

    def inherited(self, annotations: Mapping[str, str]) -> Mapping[str, str]:
        """The annotations that a set's scaling groups get from it."""
        ...

    def component(self, request: DomainRequest) -> str:
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

    def decorate_pod(self, spec: Body, template: str) -> dict[str, Any]:
        """A pod spec that claims a place in the domain of that template."""
        ...


@runtime_checkable
class NodeExclusiveFabric(Protocol):
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
