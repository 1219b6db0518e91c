"""Scheduler back ends: how pods and topologies are expressed for one particular scheduler. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from engine.ids import Kind
from engine.observed import Live
from engine.resource import PLAIN, Body, Policy
from resources.ports.checks import Check, Installation, Query
from resources.ports.references import References
from resources.schema.issues import Issue
from resources.schema.podcliqueset import PodCliqueSet


class Scheduler(Protocol):
    """One scheduler back end. Its instances are hashable."""

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

    def issues(self, model: PodCliqueSet, references: References) -> Iterator[Issue]:
        """Why it cannot schedule this PodCliqueSet. Called on create and on update, after defaulting; any issue denies the request.

        A rule that depends on an object whose kind `references` does not know is skipped.
        """
        ...

    def warnings(self, model: PodCliqueSet, references: References) -> Iterator[str]:
        """Warnings about a PodCliqueSet that is admitted: rules that were skipped, settings that are probably a mistake."""
        ...


@runtime_checkable
class ReferringScheduler(Protocol):
    """A `ValidatingScheduler` whose rules read other objects."""

    @property
    def referenced_kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that its rules look up in `References`, e.g. queues."""
        ...


class LabelsAndAnnotations(Struct, frozen=True):
    """The labels and annotations of one object."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


class SetMetadata(Struct, frozen=True):
    """The metadata of a PodCliqueSet in which a back end finds what it needs besides the pod specs, e.g. the queue."""

    namespace: str
    name: str
    of_set: LabelsAndAnnotations
    of_cliques: Mapping[str, LabelsAndAnnotations]
    """The metadata of the cliques of the template by their names, in the order of the template."""


class GangObject(Struct, frozen=True):
    """A scheduler's own object for a PodGang."""

    body: Body
    """The manifest without owner references; empty if there is a problem."""
    policy: Policy = PLAIN
    """How differences of the object are treated. Fields that the scheduler or others write are neither in the body nor compared."""
    problem: str = ""
    """Why the PodGang cannot be expressed for this scheduler; empty if it can."""
    provisional: bool = False
    """Whether it must be read once after its creation, because it may have to change: no pod is created before."""


@runtime_checkable
class GangScheduler(Protocol):
    """A `Scheduler` that places the pods of a PodGang together, by an object of its own for each PodGang.

    The object has the name and the namespace of the PodGang, which owns it. It has the labels of the PodGang, by which the engine
    finds it. It is created before the pods of the gang and deleted after them.
    """

    @property
    def gang_kind(self) -> Kind:
        """The kind of its objects, which must be namespaced. Only sets whose pods have this scheduler depend on it."""
        ...

    @property
    def podgang_annotations(self) -> Mapping[str, str]:
        """The annotations that every PodGang of this scheduler has."""
        ...

    @property
    def mapping_failed(self) -> str:
        """The reason of the Warning event if a PodGang cannot be expressed: one word in CamelCase."""
        ...

    def gang_object(self, podgang: Body, live: Live | None, metadata: SetMetadata) -> GangObject:
        """The object for a PodGang, given the PodGang's manifest.

        `live` is the object as it exists, None if it does not. Anybody may have written it, so its shape is not trusted.
        """
        ...

    def pod_metadata(self, gang: str, podclique: str, live: Live | None, metadata: SetMetadata) -> LabelsAndAnnotations:
        """The labels and annotations that connect a pod with its gang. `live` is the gang's object as in `gang_object`."""
        ...


@runtime_checkable
class InspectingScheduler(Protocol):
    """A `Scheduler` that knows what it needs from an installation besides its kinds. `engine preflight` runs its checks."""

    def installation_queries(self) -> tuple[Query, ...]:
        """The objects that `checks` needs to read."""
        ...

    def checks(self, installation: Installation) -> Iterator[Check]:
        """The checks of this back end. A check that lacks data has the outcome `UNKNOWN`."""
        ...


class Levels(Struct, frozen=True):
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


@runtime_checkable
class AffinityIgnoringScheduler(Protocol):
    """A `Scheduler` that may not observe the affinity of pods, by which the engine keeps the pods of a fabric domain together."""

    @property
    def instead_of_affinity(self) -> str:
        """How users keep pods together, in a sentence without a full stop."""
        ...
