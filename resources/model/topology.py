"""Topology: topology constraints, translated from the domains of a ClusterTopologyBinding to node label keys."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from engine.conditions import condition
from engine.ids import Owner, ResourceId
from engine.observed import Live, Observed
from engine.plan import Alarm
from engine.resource import Body, Hold, Want, held
from resources.base import kinds
from resources.ports.configuration import Configuration
from resources.ports.references import TemplateReferences
from resources.ports.scheduler import Levels, TopologyObjects
from resources.schema.topology import ClusterTopologyBindingSpec

UNAVAILABLE = "TopologyLevelsUnavailable"
NOT_ENABLED = "scheduler backend is not enabled in Grove"
NO_TOPOLOGIES = "scheduler backend does not implement topology-aware scheduling"

Constraint = Mapping[str, Any]
GROUP_LIST, CLIQUE_LIST = "podCliqueScalingGroups", "cliques"


class LevelAvailability(Struct, frozen=True):
    """The content of a set's condition `TopologyLevelsUnavailable`."""

    unavailable: bool | None
    """The status of the condition; None: Unknown."""
    reason: str
    message: str


class Topology(Struct, frozen=True, eq=False):
    """The constraints of a template in the form that PodGangs have: with node label keys.

    A constraint is None if the template has none there, or if none of its domains could be translated.
    """

    name: str = ""
    """The binding that the set refers to: the first one named by the set, then its groups, then its cliques; empty if none."""
    of_set: Constraint | None = None
    of_groups: Mapping[str, Constraint | None] = field(default_factory=dict)
    of_cliques: Mapping[str, Constraint | None] = field(default_factory=dict)
    availability: LevelAvailability | None = None
    """None if the condition is not reported at all."""
    notes: tuple[str, ...] = ()
    """Which constraints have no effect, and why."""
    blocker: str = ""
    """Why the constraints cannot be translated now: the bindings could not be listed. Empty otherwise."""


class RequestedConstraint(Struct, frozen=True):
    """A `topologyConstraint` of a template."""

    path: str
    """Its field path as text, for messages."""
    list_field: str
    """The list in `spec.template` with its holder: `GROUP_LIST`, `CLIQUE_LIST`, or empty for the set's own."""
    holder: str
    """The name of the group or clique; empty for the set."""
    name: str
    """Its `topologyName`."""
    required: str
    preferred: str

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that it names."""
        return tuple(dict.fromkeys(domain for domain in (self.required, self.preferred) if domain))


def _constraints(inner: Body) -> Iterator[RequestedConstraint]:
    """The constraints of a template: the set's, its groups', its cliques'."""
    for list_field, holders in (("", (inner,)), (GROUP_LIST, inner.get(GROUP_LIST) or ()), (CLIQUE_LIST, inner[CLIQUE_LIST])):
        for number, holder in enumerate(holders):
            if constraint := holder.get("topologyConstraint"):
                pack = constraint.get("pack") or {}
                yield RequestedConstraint(
                    path=f"spec.template{f'.{list_field}[{number}]' if list_field else ''}.topologyConstraint",
                    list_field=list_field,
                    holder=holder["name"] if list_field else "",
                    name=constraint.get("topologyName") or "",
                    required=pack.get("required") or constraint.get("packDomain") or "",
                    preferred=pack.get("preferred") or "",
                )


def referenced_ids(inner: Body, *, enabled: bool) -> tuple[ResourceId, ...]:
    """The ClusterTopologyBinding that a template refers to; empty if none, or if topology constraints are not enabled."""
    binding = _binding(tuple(_constraints(inner))) if enabled else None
    return (binding,) if binding else ()


def _binding(constraints: tuple[RequestedConstraint, ...]) -> ResourceId | None:
    name = next((constraint.name for constraint in constraints if constraint.name), "")
    return kinds.TOPOLOGY_BINDING.id("", name) if name else None


def read(inner: Body, references: TemplateReferences, *, enabled: bool) -> Topology:
    """The constraints of a template, translated as far as possible; none of them if topology constraints are not enabled."""
    constraints = tuple(_constraints(inner))
    if not enabled:
        return _disabled() if constraints else Topology()
    if not constraints:
        return Topology(availability=LevelAvailability(False, "AllClusterTopologyLevelsAvailable", "No topology constraints defined"))
    binding = _binding(constraints)
    levels = _levels(binding, references)
    translated = {(constraint.list_field, constraint.holder): _translated(constraint, levels or {}) for constraint in constraints}
    could_not_list = levels is None and kinds.TOPOLOGY_BINDING.name in references.incomplete
    return Topology(
        name=binding.name if binding else "",
        of_set=translated.get(("", "")),
        of_groups={holder: constraint for (field, holder), constraint in translated.items() if field == GROUP_LIST},
        of_cliques={holder: constraint for (field, holder), constraint in translated.items() if field == CLIQUE_LIST},
        availability=_availability(constraints, binding, levels),
        notes=tuple(_notes(constraints, binding, levels, references)),
        blocker=references.why_missing(kinds.TOPOLOGY_BINDING) if could_not_list else "",
    )


def _disabled() -> Topology:
    message = "Topology constraints are defined but Topology Aware Scheduling is disabled"
    return Topology(availability=LevelAvailability(None, "TopologyAwareSchedulingDisabled", message), notes=(message,))


def _levels(binding: ResourceId | None, references: TemplateReferences) -> Mapping[str, str] | None:
    """Domain -> node label key; None if the binding was not resolved."""
    live = references.resolved.get(binding) if binding else None
    return {level["domain"]: level["key"] for level in live.body["spec"]["levels"]} if live is not None else None


def _translated(constraint: RequestedConstraint, levels: Mapping[str, str]) -> Constraint | None:
    """The constraint with node label keys. A domain that is not a level of the binding is left out; None if nothing remains."""
    sides = {"required": levels.get(constraint.required), "preferred": levels.get(constraint.preferred)}
    pack = {side: key for side, key in sides.items() if key}
    return {"packConstraint": pack} if pack else None


def _unknown_domains(constraints: tuple[RequestedConstraint, ...], levels: Mapping[str, str]) -> list[str]:
    """The domains in these constraints that are not levels of the binding, sorted."""
    return sorted({domain for constraint in constraints for domain in constraint.domains if domain not in levels})


def _availability(
    constraints: tuple[RequestedConstraint, ...], binding: ResourceId | None, levels: Mapping[str, str] | None
) -> LevelAvailability:
    if binding is None:
        message = "PodCliqueSet topology constraints must include topologyName"
        return LevelAvailability(None, "TopologyNameMissing", message)
    if levels is None:
        return LevelAvailability(None, "ClusterTopologyNotFound", "ClusterTopologyBinding resource not found")
    if unknown := _unknown_domains(constraints, levels):
        message = f"Unavailable topology domains: [{' '.join(unknown)}]"
        return LevelAvailability(True, "ClusterTopologyLevelsUnavailable", message)
    return LevelAvailability(False, "AllClusterTopologyLevelsAvailable", "All topology levels are available")


def _notes(
    constraints: tuple[RequestedConstraint, ...],
    binding: ResourceId | None,
    levels: Mapping[str, str] | None,
    references: TemplateReferences,
) -> Iterator[str]:
    if binding is None:
        yield "topology constraints have no effect: none of them has a topologyName"
    elif levels is None:
        why = references.why_missing(kinds.TOPOLOGY_BINDING)
        yield f"topology constraints have no effect: ClusterTopologyBinding {binding.name}: {why}"
    else:
        for constraint in constraints:
            for domain in _unknown_domains((constraint,), levels):
                yield f"{constraint.path}: domain {domain} has no effect: ClusterTopologyBinding {binding.name} has no such level"


def conditions(topology: Topology, generation: int) -> list[dict[str, Any]]:
    """The condition `TopologyLevelsUnavailable` of a set as a list; empty if it is not reported."""
    if topology.availability is None:
        return []
    availability = topology.availability
    return [condition(UNAVAILABLE, availability.unavailable, availability.reason, availability.message, generation=generation)]


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
    resource: Want | Hold | None = None
    """The desired object; None if the engine does not manage it."""
    failed: bool = False
    """Whether the engine should manage the object and cannot."""
    due: bool = False
    """Whether this pass creates or corrects the object, so that the mismatch need not be reported."""
    alarm: Alarm | None = None
    """The alarm to publish about the object, if there is one."""


def unavailable_because(scheduler: str, configuration: Configuration) -> str:
    """Why a scheduler cannot have a topology object in this configuration; empty if it can."""
    if (back_end := configuration.listed_schedulers.get(scheduler)) is None:
        return NOT_ENABLED
    if back_end.topologies is None and not back_end.reads_node_labels:
        return NO_TOPOLOGIES
    return ""


def topology_objects(configuration: Configuration) -> Mapping[str, TopologyObjects]:
    """Scheduler name -> its topology objects, for the enabled back ends that have some, sorted by name."""
    by_name = ((name, scheduler.topologies) for name, scheduler in sorted(configuration.listed_schedulers.items()))
    return {name: topologies for name, topologies in by_name if topologies is not None}


def backend_topologies(observed: Observed, spec: ClusterTopologyBindingSpec, configuration: Configuration) -> Iterator[BackendTopology]:
    """One for each back end with topology objects, sorted by name; then one for each other scheduler that the binding names.

    One that reads node labels agrees with every binding.
    """
    levels = Levels(observed.root.id.name, tuple(level.key for level in spec.levels))
    named = {entry.scheduler_name: entry.topology_reference for entry in reversed(spec.scheduler_topology_bindings)}
    objects = topology_objects(configuration)
    for name, topologies in objects.items():
        comparison = _Comparison(observed, name, topologies, levels)
        yield comparison.external(named[name]) if name in named else comparison.managed()
    for name in dict.fromkeys(entry.scheduler_name for entry in spec.scheduler_topology_bindings):
        if why := unavailable_because(name, configuration):
            yield BackendTopology(name, named[name], why, available=False)
        elif name not in objects:
            yield BackendTopology(name, named[name])


class _Comparison(Struct, frozen=True, eq=False):
    """Compares the topology object of one scheduler with the binding."""

    observed: Observed
    scheduler: str
    topologies: TopologyObjects
    levels: Levels

    def external(self, name: str) -> BackendTopology:
        """The object of that name, which the engine does not manage."""
        live = self._find(name)
        return BackendTopology(self.scheduler, name, self.topologies.drift(name, live, self.levels), live=live)

    def managed(self) -> BackendTopology:
        """The object that the engine manages. If a call for it has failed, the remaining difference is reported."""
        resource = self._resource()
        id, live = resource.id, self._find(resource.id.name)
        topology = BackendTopology(self.scheduler, id.name, live=live, resource=resource)
        if self.topologies.kind.key in self.observed.unserved:
            return _blocked(topology, f"the cluster does not serve {id.kind} of {self.topologies.kind.api_version}")
        if live is not None and (live.controller is None or live.controller.uid != self.observed.root.uid):
            return self._conflict(topology, live)
        mismatch = self.topologies.drift(id.name, live, self.levels)
        if live is not None and live.deleting_since is not None:
            return replace(topology, mismatch=mismatch or f"{id.kind} {id.name} is being deleted")
        failed = bool(mismatch) and self._has_failed(id)
        return replace(topology, mismatch=mismatch, failed=failed, due=bool(mismatch) and not failed)

    def _conflict(self, topology: BackendTopology, live: Live) -> BackendTopology:
        """The binding does not control the object of this name. No action is needed if that object is being deleted."""
        id, conflict = live.id, self.topologies.conflict(live.id.name, self.levels)
        if live.deleting_since is not None:
            return _blocked(topology, conflict, blocked=False)
        alarm = Alarm(f"{id.kind}Failed", f"Failed to create {id.kind} {id.name}: {conflict}", blocking=True)
        return replace(_blocked(topology, conflict), alarm=alarm)

    def _resource(self) -> Want:
        body = self.topologies.object_for(self.levels)
        id = self.topologies.kind.id("", body["metadata"]["name"])
        owner = Owner(self.observed.root.id, kinds.TOPOLOGY_BINDING.api_version)
        policy = replace(self.topologies.policy, unlabelled=True)
        return Want(id, f"the topology of {self.scheduler}", (owner,), body=body, policy=policy)

    def _has_failed(self, id: ResourceId) -> bool:
        return any(call.id == id and call.error is not None for call in self.observed.failed_calls or ())

    def _find(self, name: str) -> Live | None:
        return self.observed.references.objects.get(self.topologies.kind.id("", name))


def _blocked(topology: BackendTopology, why: str, *, blocked: bool = True) -> BackendTopology:
    """The topology of an object that the engine cannot manage now: `why` is its mismatch, and an existing object is not changed."""
    resource = held(topology.resource, why, blocked=blocked) if topology.resource is not None else None
    return replace(topology, mismatch=why, failed=True, resource=resource)
