"""Counterparts of a ClusterTopologyBinding: what scheduler back ends have for it, kept here or by somebody else, and whether it agrees."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from engine.ids import Owner, ResourceId
from engine.observed import Live, Observed
from engine.plan import Alarm
from engine.resource import Resource, Stance
from resources.base import kinds
from resources.ports.configuration import Configuration
from resources.ports.scheduler import Levels, TopologyAware
from resources.schema.topology import ClusterTopologyBindingSpec


@dataclass(frozen=True, slots=True)
class BackendTopology:
    """What one scheduler has for a binding."""

    scheduler: str
    name: str
    """The name of its object."""
    trouble: str = ""
    """Why it does not say what the binding says; empty if it does."""
    available: bool = True
    """Whether there is a back end for that scheduler here that knows what a topology is."""
    live: Live | None = None
    resource: Resource | None = None
    """The object as it is kept here."""
    failed: bool = False
    """Whether it is to be kept here, and cannot be."""
    due: bool = False
    """Whether it is about to be made so: then its trouble is over before anybody could be told."""
    alarm: Alarm | None = None


def unavailable(scheduler: str, configuration: Configuration) -> str:
    """Why a scheduler can have no topology here; empty if it can."""
    if scheduler not in configuration.schedulers:
        return "scheduler backend is not enabled in Grove"
    if not isinstance(configuration.schedulers[scheduler], TopologyAware):
        return "scheduler backend does not implement topology-aware scheduling"
    return ""


def aware(configuration: Configuration) -> Mapping[str, TopologyAware]:
    """The enabled back ends with a topology of their own, by name."""
    by_name: Mapping[str, object] = dict(sorted(configuration.schedulers.items()))
    return {name: scheduler for name, scheduler in by_name.items() if isinstance(scheduler, TopologyAware)}


def counterparts(observed: Observed, spec: ClusterTopologyBindingSpec, configuration: Configuration) -> Iterator[BackendTopology]:
    """One for each back end that has a topology, by name; then one for each scheduler that the binding names and that has none."""
    levels = Levels(observed.root.id.name, tuple(level.key for level in spec.levels))
    named = {one.scheduler_name: one.topology_reference for one in reversed(spec.scheduler_topology_bindings)}
    for name, scheduler in aware(configuration).items():
        look = _Look(observed, name, scheduler, levels)
        yield look.held_against(named[name]) if name in named else look.kept()
    for name in dict.fromkeys(one.scheduler_name for one in spec.scheduler_topology_bindings):
        if why := unavailable(name, configuration):
            yield BackendTopology(name, named[name], why, available=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """A look at the topology of one scheduler."""

    observed: Observed
    scheduler: str
    back_end: TopologyAware
    levels: Levels

    def held_against(self, name: str) -> BackendTopology:
        """An object that somebody else keeps."""
        live = self._find(name)
        return BackendTopology(self.scheduler, name, self.back_end.topology_drift(name, live, self.levels), live=live)

    def kept(self) -> BackendTopology:
        """The object that is kept here. What failed when it was last tried is told by what is still wrong with it."""
        resource = self._resource()
        id, live = resource.id, self._find(resource.id.name)
        found = BackendTopology(self.scheduler, id.name, live=live, resource=resource)
        if self.back_end.topology.name in self.observed.unserved:
            return _blocked(found, f"the cluster does not serve {id.kind} of {self.back_end.topology.api_version}")
        if live is not None and (live.controller is None or live.controller.uid != self.observed.root.uid):
            taken = self.back_end.topology_taken(id.name, self.levels)
            told = f"Failed to create {id.kind} {id.name}: {taken}"
            stays = live.deleting_since is None
            return replace(_blocked(found, taken), alarm=Alarm(f"{id.kind}Failed", told, blocking=True) if stays else None)
        trouble = self.back_end.topology_drift(id.name, live, self.levels)
        if live is not None and live.deleting_since is not None:
            return replace(found, trouble=trouble or f"{id.kind} {id.name} is being deleted")
        failed = bool(trouble) and self._has_failed(id)
        return replace(found, trouble=trouble, failed=failed, due=bool(trouble) and not failed)

    def _resource(self) -> Resource:
        body = self.back_end.topology_for(self.levels)
        id = self.back_end.topology.id("", body["metadata"]["name"])
        owner = Owner(self.observed.root.id, kinds.TOPOLOGY_BINDING.api_version)
        policy = replace(self.back_end.topology_policy, unlabelled=True)
        return Resource(id, body, f"the topology of {self.scheduler}", (owner,), policy=policy)

    def _has_failed(self, id: ResourceId) -> bool:
        return any(failed.id == id and failed.error is not None for failed in self.observed.failed_calls or ())

    def _find(self, name: str) -> Live | None:
        return self.observed.references.objects.get(self.back_end.topology.id("", name))


def _blocked(found: BackendTopology, why: str) -> BackendTopology:
    """It cannot be kept, and what is there is left alone."""
    held = replace(found.resource, stance=Stance.HOLD, why=why) if found.resource is not None else None
    return replace(found, trouble=why, failed=True, resource=held)
