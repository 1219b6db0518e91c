"""Topology: topology constraints, translated from the domains of a ClusterTopologyBinding to node label keys."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from engine.conditions import condition
from engine.ids import ResourceId
from engine.resource import Body
from resources.base import kinds
from resources.model.template_references import TemplateReferences

UNAVAILABLE = "TopologyLevelsUnavailable"

Constraint = Mapping[str, Any]


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


GROUP_LIST, CLIQUE_LIST = "podCliqueScalingGroups", "cliques"


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
