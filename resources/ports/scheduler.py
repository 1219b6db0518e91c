"""Scheduler back ends: how pods and gangs are expressed for one particular scheduler. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from engine.ids import Kind
from engine.observed import Live
from engine.resource import Body, Policy
from resources.ports.references import References
from resources.schema.issues import Issue


class Scheduler(Protocol):
    """A scheduler back end: how pods and gangs speak to one particular scheduler."""

    @property
    def name(self) -> str:
        """The profile name in the configuration, which is also what a pod names as its `schedulerName`."""
        ...

    def decorate_pod(self, spec: dict[str, Any]) -> dict[str, Any]:
        """A pod spec as this scheduler wants it."""
        ...


@runtime_checkable
class ValidatingScheduler(Protocol):
    """What a scheduler back end may offer beside `Scheduler`: rules of its own about the workloads that name it."""

    def issues(self, body: Body, around: References) -> Iterator[Issue]:
        """Why it cannot take a set that has its defaults, whether the set is new or not. What `around` does not know is not judged."""
        ...

    def warnings(self, body: Body, around: References) -> Iterator[str]:
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
