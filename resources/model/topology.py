"""Topology: how close together pods must lie, told by workloads in the domains of a binding, and to schedulers as keys of node labels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.conditions import condition
from engine.ids import ResourceId
from engine.resource import Body
from resources.base import kinds
from resources.model.template_references import TemplateReferences

UNAVAILABLE = "TopologyLevelsUnavailable"

Constraint = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """The constraints of a template as schedulers understand them, and what became of those that they would not.

    Where something is constrained, but by nothing that could be translated, its constraint is None.
    """

    name: str = ""
    """The binding that is named first: by the set, else by a group, else by a clique."""
    of_set: Constraint | None = None
    of_groups: Mapping[str, Constraint | None] = field(default_factory=dict)
    of_cliques: Mapping[str, Constraint | None] = field(default_factory=dict)
    standing: tuple[bool | None, str, str] | None = None
    """Whether levels are unavailable, the reason and the message; None where there is nothing to say."""
    notes: tuple[str, ...] = ()
    """What of the constraints has no effect, and why."""
    blind: str = ""
    """Why nobody can tell what they mean."""


@dataclass(frozen=True, slots=True)
class RequestedConstraint:
    """A constraint as its author wrote it."""

    path: str
    level: str
    """Whether it is the set's (empty), a group's or a clique's."""
    holder: str
    name: str
    required: str
    preferred: str

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that it speaks of."""
        return tuple(dict.fromkeys(domain for domain in (self.required, self.preferred) if domain))


GROUP, CLIQUE = "podCliqueScalingGroups", "cliques"


def _asked(inner: Body) -> Iterator[RequestedConstraint]:
    """The constraints of a template: the set's, its groups', its cliques'."""
    for level, holders in (("", (inner,)), (GROUP, inner.get(GROUP) or ()), (CLIQUE, inner[CLIQUE])):
        for number, holder in enumerate(holders):
            if constraint := holder.get("topologyConstraint"):
                pack = constraint.get("pack") or {}
                yield RequestedConstraint(
                    path=f"spec.template{f'.{level}[{number}]' if level else ''}.topologyConstraint",
                    level=level,
                    holder=holder["name"] if level else "",
                    name=constraint.get("topologyName") or "",
                    required=pack.get("required") or constraint.get("packDomain") or "",
                    preferred=pack.get("preferred") or "",
                )


def references(inner: Body, *, enabled: bool) -> tuple[ResourceId, ...]:
    """The binding whose domains a template speaks of."""
    binding = _binding(tuple(_asked(inner))) if enabled else None
    return (binding,) if binding else ()


def _binding(constraints: tuple[RequestedConstraint, ...]) -> ResourceId | None:
    name = next((one.name for one in constraints if one.name), "")
    return kinds.TOPOLOGY_BINDING.id("", name) if name else None


def read(inner: Body, around: TemplateReferences, *, enabled: bool) -> Topology:
    """The constraints of a template, translated as far as they can be; none of them where the people who run the engine want none."""
    constraints = tuple(_asked(inner))
    if not enabled:
        return _disabled() if constraints else Topology()
    if not constraints:
        return Topology(standing=(False, "AllClusterTopologyLevelsAvailable", "No topology constraints defined"))
    binding = _binding(constraints)
    levels = _levels(binding, around)
    translated = {(one.level, one.holder): _translated(one, levels or {}) for one in constraints}
    return Topology(
        name=binding.name if binding else "",
        of_set=translated.get(("", "")),
        of_groups={holder: constraint for (level, holder), constraint in translated.items() if level == GROUP},
        of_cliques={holder: constraint for (level, holder), constraint in translated.items() if level == CLIQUE},
        standing=_standing(constraints, binding, levels),
        notes=tuple(_notes(constraints, binding, levels, around)),
        blind=around.why_missing(kinds.TOPOLOGY_BINDING) if levels is None and kinds.TOPOLOGY_BINDING.name in around.unseen else "",
    )


def _disabled() -> Topology:
    message = "Topology constraints are defined but Topology Aware Scheduling is disabled"
    return Topology(standing=(None, "TopologyAwareSchedulingDisabled", message), notes=(message,))


def _levels(binding: ResourceId | None, around: TemplateReferences) -> Mapping[str, str] | None:
    """Domain -> key of a node label; None where there is no such binding."""
    found = around.found.get(binding) if binding else None
    return {level["domain"]: level["key"] for level in found.body["spec"]["levels"]} if found is not None else None


def _translated(one: RequestedConstraint, levels: Mapping[str, str]) -> Constraint | None:
    """What is no level is left out; where nothing is left there is no constraint."""
    sides = {"required": levels.get(one.required), "preferred": levels.get(one.preferred)}
    pack = {side: key for side, key in sides.items() if key}
    return {"packConstraint": pack} if pack else None


def _missing(constraints: tuple[RequestedConstraint, ...], levels: Mapping[str, str]) -> list[str]:
    return sorted({domain for one in constraints for domain in one.domains if domain not in levels})


def _standing(
    constraints: tuple[RequestedConstraint, ...], binding: ResourceId | None, levels: Mapping[str, str] | None
) -> tuple[bool | None, str, str]:
    if binding is None:
        return None, "TopologyNameMissing", "PodCliqueSet topology constraints must include topologyName"
    if levels is None:
        return None, "ClusterTopologyNotFound", "ClusterTopologyBinding resource not found"
    if missing := _missing(constraints, levels):
        return True, "ClusterTopologyLevelsUnavailable", f"Unavailable topology domains: [{' '.join(missing)}]"
    return False, "AllClusterTopologyLevelsAvailable", "All topology levels are available"


def _notes(
    constraints: tuple[RequestedConstraint, ...], binding: ResourceId | None, levels: Mapping[str, str] | None, around: TemplateReferences
) -> Iterator[str]:
    if binding is None:
        yield "no topologyConstraint has an effect: none of them has a topologyName"
    elif levels is None:
        yield f"no topologyConstraint has an effect: ClusterTopologyBinding {binding.name}: {around.why_missing(kinds.TOPOLOGY_BINDING)}"
    else:
        for one in constraints:
            for domain in _missing((one,), levels):
                yield f"{one.path}: {domain} has no effect: it is no level of ClusterTopologyBinding {binding.name}"


def conditions(topology: Topology, generation: int) -> list[dict[str, Any]]:
    """What a set says of the levels that it asks for, if there is anything to say."""
    if topology.standing is None:
        return []
    unavailable, reason, message = topology.standing
    return [condition(UNAVAILABLE, unavailable, reason, message, generation=generation)]
