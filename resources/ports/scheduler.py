"""Scheduler back ends: how pods and topologies are expressed for one particular scheduler. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from engine.ids import Kind
from engine.observed import Live
from engine.resource import Body, Policy
from resources.ports.references import References
from resources.schema.issues import Issue


class Scheduler(Protocol):
    """One scheduler back end."""

    @property
    def name(self) -> str:
        """The profile name in the operator configuration, which is also the `schedulerName` of its pods."""
        ...

    def decorate_pod(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The pod spec with what this scheduler needs, e.g. its `schedulerName`. Called for every pod that is created."""
        ...


@runtime_checkable
class ValidatingScheduler(Protocol):
    """A `Scheduler` with admission rules for the workloads that name it."""

    def issues(self, body: Body, references: References) -> Iterator[Issue]:
        """Why it cannot schedule this PodCliqueSet. Called on create and on update, after defaulting; any issue denies the request.

        A rule that depends on an object whose kind `references` does not know is skipped.
        """
        ...

    def warnings(self, body: Body, references: References) -> Iterator[str]:
        """Warnings about a PodCliqueSet that is admitted: rules that were skipped, settings that are probably a mistake."""
        ...


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of one ClusterTopologyBinding."""

    binding: str
    """The binding's name."""
    keys: tuple[str, ...]
    """The node label of each level, from the broadest to the narrowest."""


@runtime_checkable
class TopologyAwareScheduler(Protocol):
    """A `Scheduler` with topology objects of its own, which follow ClusterTopologyBindings.

    If a binding names an object for this scheduler, somebody else manages that object and the engine only compares it with the
    binding. Otherwise the engine creates one for the binding and keeps it in sync.
    """

    @property
    def topology(self) -> Kind:
        """The kind of its topology objects, which must be cluster-scoped."""
        ...

    @property
    def topology_policy(self) -> Policy:
        """How differences of a topology object are treated, e.g. which fields are immutable."""
        ...

    def topology_for(self, levels: Levels) -> Body:
        """The topology object for a binding: `apiVersion`, `kind`, `metadata.name` and spec, without owner references."""
        ...

    def topology_drift(self, name: str, live: Live | None, levels: Levels) -> str:
        """How the topology object of that name differs from the binding, as one sentence; empty if they agree.

        `live` is None if the object does not exist. Anybody may have written it, so its shape is not trusted.
        """
        ...

    def topology_conflict(self, name: str, levels: Levels) -> str:
        """Why the engine cannot create its topology object of that name: an object exists that the binding does not control."""
        ...
