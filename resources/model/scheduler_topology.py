"""BackendTopology: the topology object of a scheduler back end for a ClusterTopologyBinding, and how it differs from the binding."""

from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import Owner, ResourceId
from engine.observed import Live, Observed
from engine.plan import Alarm
from engine.resource import Resource, Stance
from resources.base import kinds
from resources.ports.configuration import Configuration
from resources.ports.scheduler import Levels, TopologyAwareScheduler
from resources.schema.topology import ClusterTopologyBindingSpec


class BackendTopology(Struct, frozen=True):
    """The topology object of one scheduler for a binding."""

    scheduler: str
    """The name of the scheduler."""
    name: str
    """The name of the topology object."""
    mismatch: str = ""
    """How the object differs from the binding; empty if they agree."""
    available: bool = True
    """Whether an enabled back end of that name supports topologies."""
    live: Live | None = None
    """The object; None if it does not exist."""
    resource: Resource | None = None
    """The desired object; None if somebody else manages it."""
    failed: bool = False
    """Whether the engine should manage the object and cannot."""
    due: bool = False
    """Whether this pass creates or corrects the object, so that the mismatch need not be reported."""
    alarm: Alarm | None = None
    """The alarm to publish about the object, if there is one."""


def unavailable_because(scheduler: str, configuration: Configuration) -> str:
    """Why a scheduler cannot have a topology object in this configuration; empty if it can."""
    if scheduler not in configuration.schedulers:
        return "scheduler backend is not enabled in Grove"
    if not isinstance(configuration.schedulers[scheduler], TopologyAwareScheduler):
        return "scheduler backend does not implement topology-aware scheduling"
    return ""


def topology_aware_schedulers(configuration: Configuration) -> Mapping[str, TopologyAwareScheduler]:
    """Scheduler name -> its back end, for the enabled back ends that have topology objects, sorted by name."""
    by_name = {name: _with_topologies(cast(Hashable, scheduler)) for name, scheduler in sorted(configuration.schedulers.items())}
    return {name: scheduler for name, scheduler in by_name.items() if scheduler is not None}


@lru_cache(maxsize=64)
def _with_topologies(scheduler: Hashable) -> TopologyAwareScheduler | None:
    """The back end if it has topology objects. Remembered: the structural check is slow, and every pass asks."""
    return scheduler if isinstance(scheduler, TopologyAwareScheduler) else None


def backend_topologies(observed: Observed, spec: ClusterTopologyBindingSpec, configuration: Configuration) -> Iterator[BackendTopology]:
    """One for each topology-aware back end, sorted by name; then one for each scheduler that the binding names but that has none."""
    levels = Levels(observed.root.id.name, tuple(level.key for level in spec.levels))
    named = {entry.scheduler_name: entry.topology_reference for entry in reversed(spec.scheduler_topology_bindings)}
    for name, scheduler in topology_aware_schedulers(configuration).items():
        comparison = _Comparison(observed, name, scheduler, levels)
        yield comparison.external(named[name]) if name in named else comparison.managed()
    for name in dict.fromkeys(entry.scheduler_name for entry in spec.scheduler_topology_bindings):
        if why := unavailable_because(name, configuration):
            yield BackendTopology(name, named[name], why, available=False)


class _Comparison(Struct, frozen=True, eq=False):
    """Compares the topology object of one scheduler with the binding."""

    observed: Observed
    scheduler: str
    back_end: TopologyAwareScheduler
    levels: Levels

    def external(self, name: str) -> BackendTopology:
        """The object of that name, which somebody else manages."""
        live = self._find(name)
        return BackendTopology(self.scheduler, name, self.back_end.topology_drift(name, live, self.levels), live=live)

    def managed(self) -> BackendTopology:
        """The object that the engine manages. If a call for it has failed, the remaining difference is reported."""
        resource = self._resource()
        id, live = resource.id, self._find(resource.id.name)
        topology = BackendTopology(self.scheduler, id.name, live=live, resource=resource)
        if self.back_end.topology.key in self.observed.unserved:
            return _blocked(topology, f"the cluster does not serve {id.kind} of {self.back_end.topology.api_version}")
        if live is not None and (live.controller is None or live.controller.uid != self.observed.root.uid):
            return self._conflict(topology, live)
        mismatch = self.back_end.topology_drift(id.name, live, self.levels)
        if live is not None and live.deleting_since is not None:
            return replace(topology, mismatch=mismatch or f"{id.kind} {id.name} is being deleted")
        failed = bool(mismatch) and self._has_failed(id)
        return replace(topology, mismatch=mismatch, failed=failed, due=bool(mismatch) and not failed)

    def _conflict(self, topology: BackendTopology, live: Live) -> BackendTopology:
        """The binding does not control the object of this name. Nobody has to act if that object is being deleted."""
        id, conflict = live.id, self.back_end.topology_conflict(live.id.name, self.levels)
        if live.deleting_since is not None:
            return _blocked(topology, conflict, blocked=False)
        alarm = Alarm(f"{id.kind}Failed", f"Failed to create {id.kind} {id.name}: {conflict}", blocking=True)
        return replace(_blocked(topology, conflict), alarm=alarm)

    def _resource(self) -> Resource:
        body = self.back_end.topology_for(self.levels)
        id = self.back_end.topology.id("", body["metadata"]["name"])
        owner = Owner(self.observed.root.id, kinds.TOPOLOGY_BINDING.api_version)
        policy = replace(self.back_end.topology_policy, unlabelled=True)
        return Resource(id, body, f"the topology of {self.scheduler}", (owner,), policy=policy)

    def _has_failed(self, id: ResourceId) -> bool:
        return any(call.id == id and call.error is not None for call in self.observed.failed_calls or ())

    def _find(self, name: str) -> Live | None:
        return self.observed.references.objects.get(self.back_end.topology.id("", name))


def _blocked(topology: BackendTopology, why: str, *, blocked: bool = True) -> BackendTopology:
    """The topology of an object that the engine cannot manage now: `why` is its mismatch, and an existing object is not changed."""
    resource = replace(topology.resource, stance=Stance.HOLD, why=why, blocked=blocked) if topology.resource is not None else None
    return replace(topology, mismatch=why, failed=True, resource=resource)
