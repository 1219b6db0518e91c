"""Topology rules: all constraints of a set must refer to one binding and its domains, and a part's must not be wider than the whole's.

And the rules for the ClusterTopologyBindings themselves.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from engine.paths import get
from resources.admission import metadata_rules
from resources.admission.cel import HOLDERS, REPEATED, on_create, rule, text
from resources.base.fields import CLIQUES, GROUPS, TEMPLATE
from resources.base.kinds import TOPOLOGY_BINDING
from resources.model.topology import NO_TOPOLOGIES, NOT_ENABLED, unavailable_because
from resources.ports.configuration import Configuration
from resources.ports.fabric import PolicyRule, PolicyVariable
from resources.ports.references import KnownReferences, References
from resources.schema.issues import ErrorType, Issue, Path, duplicates, spelled
from resources.schema.podcliqueset import SetTemplate
from resources.schema.topology import ClusterTopologyBinding, TopologyConstraint
from resources.schema.unknown_fields import instead, question

LEVELS: Final[Path] = ("spec", "levels")
BINDINGS: Final[Path] = ("spec", "schedulerTopologyBindings")
DISABLED: Final = "topology constraints are not allowed when Topology Aware Scheduling is disabled"
NO_TOPOLOGY: Final = "topologyName is required when topologyConstraint is set and cannot be inherited"
DIFFERENT: Final = "all topologyConstraint.topologyName values within a PodCliqueSet must match in the current implementation"
SET, GROUP, CLIQUE = "PodCliqueSet", "PodCliqueScalingGroup", "PodClique"

Positions = Mapping[str, int]
"""Topology domain -> its position among the levels of the binding: 0 is the broadest."""


class Holder(Struct, frozen=True):
    """The set, a group or a clique, with its topology constraint, if it has one."""

    path: Path
    """The path of the constraint."""
    kind: str
    name: str
    """Empty for the set."""
    constraint: TopologyConstraint | None
    parents: tuple[str, ...] = ()
    """For a clique: the groups that contain it."""

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"{self.kind} '{self.name}'" if self.name else self.kind

    @property
    def field(self) -> str:
        """The path of the constraint as text."""
        return spelled(self.path)

    @property
    def topology(self) -> str:
        """The name of the binding that the constraint names; empty if none."""
        return (self.constraint.topology_name if self.constraint else None) or ""

    @property
    def sides(self) -> Mapping[str, tuple[Path, str]]:
        """`required` and `preferred`, each with the path and the value of its domain; a side without a domain is left out."""
        pack = self.constraint.pack if self.constraint else None
        deprecated = self.constraint.pack_domain if self.constraint else None
        sides = {
            "required": ((*self.path, "pack", "required"), (pack.required if pack else None) or ""),
            "preferred": ((*self.path, "pack", "preferred"), (pack.preferred if pack else None) or ""),
        }
        if deprecated and not sides["required"][1]:
            sides["required"] = ((*self.path, "packDomain"), deprecated)
        return {side: (path, domain) for side, (path, domain) in sides.items() if domain}


def holders(template: SetTemplate) -> Iterator[Holder]:
    """The set, its groups and its cliques, in this order."""
    yield Holder((*TEMPLATE, "topologyConstraint"), SET, "", template.topology_constraint)
    groups: dict[str, list[str]] = {}
    for number, group in enumerate(template.pod_clique_scaling_groups):
        yield Holder((*GROUPS, number, "topologyConstraint"), GROUP, group.name, group.topology_constraint)
        for name in dict.fromkeys(group.clique_names):
            groups.setdefault(name, []).append(group.name)
    for number, clique in enumerate(template.cliques):
        path = (*CLIQUES, number, "topologyConstraint")
        yield Holder(path, CLIQUE, clique.name, clique.topology_constraint, tuple(groups.get(clique.name, ())))


def issues(template: SetTemplate, references: References, *, enabled: bool) -> Iterator[Issue]:
    """The issues of the constraints of a new set: first of the binding's name, then of the domains, then of the hierarchy."""
    constrained = _constrained(template)
    if not enabled:
        yield from (Issue(holder.path, ErrorType.INVALID, DISABLED, _listed_domains(holder)) for holder in constrained)
        return
    name_issues = tuple(_name_issues(constrained))
    yield from name_issues
    naming = _naming(constrained)
    if naming is None or name_issues:
        return
    levels = _levels(naming.topology, references)
    if levels is not None:
        unknown = tuple(_unknown_domains(constrained, levels))
        yield from unknown or _hierarchy(constrained, levels)
    elif references.knows(TOPOLOGY_BINDING.name):
        others = instead([naming.topology], references.names(TOPOLOGY_BINDING)) if isinstance(references, KnownReferences) else ""
        message = f'ClusterTopologyBinding "{naming.topology}" not found{others}'
        yield Issue((*naming.path, "topologyName"), ErrorType.INVALID, message, naming.topology)


def warnings(template: SetTemplate, references: References, *, enabled: bool) -> Iterator[str]:
    """Warnings about the constraints of a new set: rules that could not be checked, and redundant preferences."""
    constrained = _constrained(template)
    naming = _naming(constrained)
    if not enabled or naming is None:
        return
    levels = _levels(naming.topology, references)
    if levels is None:
        if not references.knows(TOPOLOGY_BINDING.name):
            yield f'topology constraints were not checked against ClusterTopologyBinding "{naming.topology}", which was not read'
        return
    for holder in constrained:
        sides = holder.sides
        if "preferred" in sides and "required" in sides:
            (required, floor), (preferred, request) = sides["required"], sides["preferred"]
            if request in levels and floor in levels and levels[request] < levels[floor]:
                yield f"{spelled(preferred)} is coarser than {spelled(required)} and is redundant"


def _constrained(template: SetTemplate) -> tuple[Holder, ...]:
    return tuple(holder for holder in holders(template) if holder.constraint is not None)


def _listed_domains(holder: Holder) -> str:
    """The domains of a constraint, separated by commas."""
    return ", ".join(dict.fromkeys(domain for _, domain in holder.sides.values()))


def _name_issues(constrained: Sequence[Holder]) -> Iterator[Issue]:
    """Every constraint must name or inherit a binding, and all must name the same."""
    names = {(holder.kind, holder.name): holder.topology for holder in constrained}
    set_name = names.get((SET, ""), "")
    different = len({name for name in names.values() if name}) > 1
    for holder in constrained:
        from_group = next((name for group in holder.parents if (name := names.get((GROUP, group)))), "")
        inherited = from_group or (set_name if holder.kind != SET else "")
        path = (*holder.path, "topologyName")
        if not holder.topology and not inherited:
            yield Issue(path, ErrorType.REQUIRED, NO_TOPOLOGY)
        elif holder.topology and different and holder.topology != set_name:
            yield Issue(path, ErrorType.INVALID, DIFFERENT, holder.topology)


def _naming(constrained: Sequence[Holder]) -> Holder | None:
    """The first holder whose constraint names a binding; None if no constraint does."""
    return next((holder for holder in constrained if holder.topology), None)


def _levels(name: str, references: References) -> Positions | None:
    """The domains of the binding of that name with their positions; None if it was not found. The binding may have any shape."""
    live = references.find(TOPOLOGY_BINDING.id("", name))
    if live is None:
        return None
    levels = get(live.body, ("spec", "levels"), ())
    domains = [level.get("domain") for level in levels if isinstance(level, Mapping)] if isinstance(levels, list | tuple) else []
    return {domain: position for position, domain in enumerate(domains) if isinstance(domain, str)}


def _unknown_domains(constrained: Sequence[Holder], levels: Positions) -> Iterator[Issue]:
    """An issue for each domain that is not a level of the binding."""
    for holder in constrained:
        for path, domain in holder.sides.values():
            if domain not in levels:
                known = f"[{' '.join(levels)}]"
                message = f"topology domain '{domain}' does not exist in cluster topology {known}{question([domain], levels)}"
                yield Issue(path, ErrorType.INVALID, message, domain)


def _hierarchy(constrained: Sequence[Holder], levels: Positions) -> Iterator[Issue]:
    """The constraint of a parent must not be narrower than that of its child."""
    by_name = {(holder.kind, holder.name): holder for holder in constrained}
    for child in constrained:
        parents = [(SET, ""), *((GROUP, group) for group in child.parents)] if child.kind != SET else []
        for parent in (by_name[key] for key in parents if key in by_name):
            yield from _narrower_issues(parent, child, levels)


def _narrower_issues(parent: Holder, child: Holder, levels: Positions) -> Iterator[Issue]:
    for side, path in (("required", parent.path), ("preferred", (*parent.path, "pack", "preferred"))):
        if side in parent.sides and side in child.sides:
            (_, outer), (_, inner) = parent.sides[side], child.sides[side]
            if levels[outer] > levels[inner]:
                wider = f"{child.label} topology constraint domain '{inner}'"
                message = f"{parent.label} topology constraint domain '{outer}' is narrower than {wider}"
                yield Issue(path, ErrorType.INVALID, message, outer)


def binding_issues(body: ClusterTopologyBinding, configuration: Configuration) -> Iterator[Issue]:
    """The issues of a ClusterTopologyBinding of the right shape, on create and on update."""
    yield from metadata_rules.issues(body.metadata, namespaced=False)
    yield from duplicates(((*LEVELS, number, "domain"), level.domain) for number, level in enumerate(body.spec.levels))
    yield from duplicates(((*LEVELS, number, "key"), level.key) for number, level in enumerate(body.spec.levels))
    entries = enumerate(body.spec.scheduler_topology_bindings)
    named = [((*BINDINGS, number, "schedulerName"), entry.scheduler_name) for number, entry in entries]
    yield from duplicates(named)
    for path, name in named:
        if why := unavailable_because(name, configuration):
            yield Issue(path, ErrorType.INVALID, why, name)


BINDING_VARIABLES: Final = (
    PolicyVariable("levels", "object.spec.?levels.orValue([])"),
    PolicyVariable("bindings", "object.spec.?schedulerTopologyBindings.orValue([])"),
)
"""The variables that rules for bindings may use."""


def policy_rules(configuration: Configuration) -> Iterator[PolicyRule]:
    """The same for new sets, and for those that get a missing topologyName, as CEL, as far as it does not depend on the binding."""
    path = "topologyConstraint"
    different = "variables.topologies.exists(n, n != variables.topologies[0])"
    from_group = "variables.groups.exists(g, c.name in g.cliqueNames && g.?topologyConstraint.?topologyName.orValue('') != '')"
    for holder, each in HOLDERS:
        is_constrained = f"has({holder}.topologyConstraint)"
        if not configuration.topology:
            yield on_create(each(is_constrained, path, DISABLED))
            continue
        own = f"{holder}.?topologyConstraint.?topologyName.orValue('')"
        is_unnamed = f"{is_constrained} && variables.topology == '' && {own} == ''"
        is_unnamed += f" && !{from_group}" if holder == "c" else ""
        is_judged = "(request.operation == 'CREATE' || variables.repaired)"
        yield each(f"{is_judged} && {is_unnamed}", f"{path}.topologyName", NO_TOPOLOGY)
        if holder in ("g", "c"):
            is_other = f"{own} != '' && {own} != variables.topology && {different}"
            yield each(f"{is_judged} && {is_other}", f"{path}.topologyName", DIFFERENT)


def binding_policy_rules(configuration: Configuration) -> Iterator[PolicyRule]:
    """The rules for bindings as CEL, besides their metadata."""
    for field in ("domain", "key"):
        twice = f"variables.levels.exists(l, variables.levels.filter(o, o.{field} == l.{field}).size() > 1)"
        yield rule(twice, f"spec.levels[].{field}", REPEATED)
    path = "spec.schedulerTopologyBindings[].schedulerName"
    twice = "variables.bindings.exists(b, variables.bindings.filter(o, o.schedulerName == b.schedulerName).size() > 1)"
    yield rule(twice, path, REPEATED)
    names = sorted(configuration.listed_schedulers)
    is_enabled = _is_one_of(names)
    is_aware = _is_one_of([name for name in names if not unavailable_because(name, configuration)])
    yield rule(f"variables.bindings.exists(b, !({is_enabled}))", path, NOT_ENABLED)
    yield rule(f"variables.bindings.exists(b, {is_enabled} && !({is_aware}))", path, NO_TOPOLOGIES)


def _is_one_of(schedulers: Sequence[str]) -> str:
    return f"b.schedulerName in [{', '.join(map(text, schedulers))}]"
