"""Topology rules: constraints that can be met: of one binding, in its domains, and never wider for a part than for the whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.paths import get
from resources.base.kinds import TOPOLOGY_BINDING
from resources.ports.references import References
from resources.schema.issues import Fault, Issue, Path, spelled
from resources.schema.podcliqueset import Template
from resources.schema.topology import TopologyConstraint

TEMPLATE: Final[Path] = ("spec", "template")
SET, GROUP, CLIQUE = "PodCliqueSet", "PodCliqueScalingGroup", "PodClique"

Levels = Mapping[str, int]
"""The domains of a binding, each with its place: the broadest first."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The set, a group or a clique, and the constraint that it has, or has not."""

    path: Path
    """The way to the constraint."""
    kind: str
    name: str
    """Empty for the set."""
    constraint: TopologyConstraint | None
    parents: tuple[str, ...] = ()
    """Of a clique: the groups that name it."""

    @property
    def label(self) -> str:
        """How it is called in messages."""
        return f"{self.kind} '{self.name}'" if self.name else self.kind

    @property
    def field(self) -> str:
        """The way to the constraint, as people write it."""
        return spelled(self.path)

    @property
    def topology(self) -> str:
        """The binding that it names itself."""
        return (self.constraint.topology_name if self.constraint else None) or ""

    @property
    def sides(self) -> Mapping[str, tuple[Path, str]]:
        """What it requires and what it prefers, each with the way to where it says so."""
        pack = self.constraint.pack if self.constraint else None
        deprecated = self.constraint.pack_domain if self.constraint else None
        said = {
            "required": ((*self.path, "pack", "required"), (pack.required if pack else None) or ""),
            "preferred": ((*self.path, "pack", "preferred"), (pack.preferred if pack else None) or ""),
        }
        if deprecated and not said["required"][1]:
            said["required"] = ((*self.path, "packDomain"), deprecated)
        return {side: (path, domain) for side, (path, domain) in said.items() if domain}


def holders(template: Template) -> Iterator[Holder]:
    """The set, its groups and its cliques."""
    yield Holder((*TEMPLATE, "topologyConstraint"), SET, "", template.topology_constraint)
    groups: dict[str, list[str]] = {}
    for number, group in enumerate(template.pod_clique_scaling_groups):
        yield Holder((*TEMPLATE, "podCliqueScalingGroups", number, "topologyConstraint"), GROUP, group.name, group.topology_constraint)
        for name in dict.fromkeys(group.clique_names):
            groups.setdefault(name, []).append(group.name)
    for number, clique in enumerate(template.cliques):
        path = (*TEMPLATE, "cliques", number, "topologyConstraint")
        yield Holder(path, CLIQUE, clique.name, clique.topology_constraint, tuple(groups.get(clique.name, ())))


def issues(template: Template, around: References, *, enabled: bool) -> Iterator[Issue]:
    """What is wrong with the constraints of a new set. What stands further back is not looked at before what stands in front is right."""
    constrained = _constrained(template)
    if not enabled:
        message = "topology constraints are not allowed when Topology Aware Scheduling is disabled"
        yield from (Issue(one.path, Fault.INVALID, message, _domains(one)) for one in constrained)
        return
    misnamed = tuple(_names(constrained))
    yield from misnamed
    naming = _naming(constrained)
    if naming is None or misnamed:
        return
    levels = _levels(naming.topology, around)
    if levels is not None:
        unknown = tuple(_unknown(constrained, levels))
        yield from unknown or _hierarchy(constrained, levels)
    elif around.knows(TOPOLOGY_BINDING.name):
        message = f'ClusterTopologyBinding "{naming.topology}" not found'
        yield Issue((*naming.path, "topologyName"), Fault.INVALID, message, naming.topology)


def warnings(template: Template, around: References, *, enabled: bool) -> Iterator[str]:
    """What about the constraints of a new set could not be judged, or has no effect."""
    constrained = _constrained(template)
    naming = _naming(constrained)
    if not enabled or naming is None:
        return
    levels = _levels(naming.topology, around)
    if levels is None:
        if not around.knows(TOPOLOGY_BINDING.name):
            yield f'topology constraints were not checked against ClusterTopologyBinding "{naming.topology}", which was not looked for'
        return
    for one in constrained:
        sides = one.sides
        if "preferred" in sides and "required" in sides:
            (required, floor), (preferred, request) = sides["required"], sides["preferred"]
            if request in levels and floor in levels and levels[request] < levels[floor]:
                yield f"{spelled(preferred)} is coarser than {spelled(required)} and is redundant"


def _constrained(template: Template) -> tuple[Holder, ...]:
    return tuple(one for one in holders(template) if one.constraint is not None)


def _domains(one: Holder) -> str:
    return ", ".join(dict.fromkeys(domain for _, domain in one.sides.values()))


def _names(constrained: Sequence[Holder]) -> Iterator[Issue]:
    """One binding for all: the set names it, or each part that has no group to name it, and all of them the same."""
    names = {(one.kind, one.name): one.topology for one in constrained}
    whole = names.get((SET, ""), "")
    different = len({name for name in names.values() if name}) > 1
    for one in constrained:
        inherited = next((name for group in one.parents if (name := names.get((GROUP, group)))), "") or (whole if one.kind != SET else "")
        path = (*one.path, "topologyName")
        if not one.topology and not inherited:
            yield Issue(path, Fault.REQUIRED, "topologyName is required when topologyConstraint is set and cannot be inherited")
        elif one.topology and different and one.topology != whole:
            message = "all topologyConstraint.topologyName values within a PodCliqueSet must match in the current implementation"
            yield Issue(path, Fault.INVALID, message, one.topology)


def _naming(constrained: Sequence[Holder]) -> Holder | None:
    """Who names the binding."""
    return next((one for one in constrained if one.topology), None)


def _levels(name: str, around: References) -> Levels | None:
    """The domains of the binding of that name; None where there is none."""
    found = around.find(TOPOLOGY_BINDING.id("", name))
    if found is None:
        return None
    levels = get(found.body, ("spec", "levels"), ())
    listed = [level.get("domain") for level in levels if isinstance(level, Mapping)] if isinstance(levels, list | tuple) else []
    return {domain: place for place, domain in enumerate(listed) if isinstance(domain, str)}


def _unknown(constrained: Sequence[Holder], levels: Levels) -> Iterator[Issue]:
    for one in constrained:
        for path, domain in one.sides.values():
            if domain not in levels:
                known = f"[{' '.join(levels)}]"
                yield Issue(path, Fault.INVALID, f"topology domain '{domain}' does not exist in cluster topology {known}", domain)


def _hierarchy(constrained: Sequence[Holder], levels: Levels) -> Iterator[Issue]:
    """What holds for the whole must not be narrower than what holds for a part of it."""
    by_name = {(one.kind, one.name): one for one in constrained}
    for child in constrained:
        above = [(SET, ""), *((GROUP, group) for group in child.parents)] if child.kind != SET else []
        for parent in (by_name[key] for key in above if key in by_name):
            yield from _narrower(parent, child, levels)


def _narrower(parent: Holder, child: Holder, levels: Levels) -> Iterator[Issue]:
    for side, path in (("required", parent.path), ("preferred", (*parent.path, "pack", "preferred"))):
        if side in parent.sides and side in child.sides:
            (_, outer), (_, inner) = parent.sides[side], child.sides[side]
            if levels[outer] > levels[inner]:
                told = f"{parent.label} topology constraint domain '{outer}' is narrower than"
                yield Issue(path, Fault.INVALID, f"{told} {child.label} topology constraint domain '{inner}'", outer)
