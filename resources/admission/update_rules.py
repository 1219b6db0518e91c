"""Update rules: the changes of a PodCliqueSet that are forbidden, and those that change no object that exists."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from resources.admission import topology_rules
from resources.admission.cel import for_each_clique, for_each_group, for_template, general, is_repaired, on_update, replicas_of, rule, text
from resources.admission.topology_rules import CLIQUE, GROUP, SET, Holder
from resources.base.fields import CLIQUES, GROUPS, TEMPLATE, mappings
from resources.base.kinds import DYNAMO_GRAPH
from resources.model.template import ANY_ORDER
from resources.ports.fabric import PolicyRule
from resources.ports.references import References
from resources.schema.issues import ErrorType, Issue, Located, Path, spelled
from resources.schema.podcliqueset import CliqueTemplate, PodCliqueSet, ScalingGroupConfig, SetTemplate

IMMUTABLE: Final = "field is immutable"
COMPOSITION: Final = "not allowed to change clique composition"
NEW_CLIQUE: Final = "not allowed to change clique composition, new clique name '{name}' is not allowed"
GROUP_COMPOSITION: Final = "not allowed to add or remove PodCliqueScalingGroupConfigs"
NEW_GROUP: Final = "not allowed to change scaling group composition, new scaling group name '{name}' is not allowed"
ORDER: Final = (
    "clique order cannot be changed when StartupType is InOrder or Explicit. Expected '{expected}' at position {position}, got '{name}'"
)
CONSTRAINT_ADDED: Final = "{label} topology constraint cannot be added after creation"
CONSTRAINT_REMOVED: Final = "{label} topology constraint cannot be removed after creation"
TOPOLOGY_CHANGED: Final = 'topologyName cannot be changed from "{old}" to "{new}"'
TOPOLOGY_OF_PART_CHANGED: Final = "{label} topology constraint topologyName cannot be changed from '{old}' to '{new}'"
DOMAINS_CHANGED: Final = "{label} topology constraint cannot be changed from {old} to {new}"
MORE_THAN_MIGRATED: Final = (
    "{label} topology constraint deprecated packDomain migration can only move packDomain to pack.required without changing "
    "the required or preferred topology domain (old {old}, new {new})"
)
"""The messages about constraints are Grove's, which quotes names in two ways."""


class Immutable(Struct, frozen=True):
    """A field that keeps its value."""

    path: Path
    """Its path in a clique, a group or the template."""
    read: Callable[[Any], Any]
    """Its value in the model."""
    cel: str
    """Its value as CEL: in `{item}`, with `{default}` where it is left out."""
    default: str
    """That default as CEL, with `{item}` for the stored clique, group or template."""
    kept: bool = False
    """Whether an update that leaves it out keeps the stored value (`resources.admission.defaults`)."""

    def issues(self, holder: Path, old: Any, new: Any) -> Iterator[Issue]:
        """An issue if the new version has another value."""
        if self.read(old) != (value := self.read(new)):
            yield Issue((*holder, *self.path), ErrorType.INVALID, IMMUTABLE, value)

    @property
    def field(self) -> str:
        """Its path as text."""
        return ".".join(map(str, self.path))

    def is_changed(self, old: str, new: str) -> str:
        """CEL: whether the new version has another value."""
        default = self.default.format(item=old)
        before = self.cel.format(item=old, default=default)
        after = self.cel.format(item=new, default=before if self.kept else default)
        return f"{before} != {after}"


OF_CLIQUES: Final = (
    Immutable(("spec", "roleName"), lambda clique: clique.spec.role_name, "{item}.spec.?roleName.orValue({default})", "''", kept=True),
    Immutable(
        ("spec", "minAvailable"),
        lambda clique: clique.spec.min_available,
        "{item}.spec.?minAvailable.orValue({default})",
        replicas_of("{item}"),
        kept=True,
    ),
    Immutable(("spec", "startsAfter"), lambda clique: clique.spec.starts_after, "{item}.spec.?startsAfter.orValue({default})", "[]"),
    Immutable(("resourceSharing",), lambda clique: clique.resource_sharing, "{item}.?resourceSharing.orValue({default})", "[]"),
)
NAMED: Final = "{item}.spec.podSpec.?schedulerName.orValue('')"
OF_GROUPS: Final = (
    Immutable(("cliqueNames",), lambda group: group.clique_names, "{item}.cliqueNames", ""),
    Immutable(("minAvailable",), lambda group: group.min_available, "{item}.minAvailable", ""),
    Immutable(("resourceSharing",), lambda group: group.resource_sharing, "{item}.?resourceSharing.orValue({default})", "[]"),
)
SHARES: Final = (
    "{item}.?resourceSharing.orValue({default}).map(s, s.name + '|' + s.scope + (has(s.namespace) ? '|in ' + s.namespace : '')"
    " + '|' + s.?filter.?childCliqueNames.orValue([]).map(n, string(n)).join(' ')"
    " + '|' + s.?filter.?childScalingGroupNames.orValue([]).map(n, string(n)).join(' '))"
)
"""An absent list of a filter is an empty one."""
OF_TEMPLATE: Final = (
    Immutable(
        ("cliqueStartupType",),
        lambda template: template.clique_startup_type,
        "{item}.?cliqueStartupType.orValue({default})",
        text(ANY_ORDER),
    ),
    Immutable(
        ("resourceClaimTemplates",),
        lambda template: template.resource_claim_templates,
        "{item}.?resourceClaimTemplates.orValue({default})",
        "[]",
    ),
    Immutable(("resourceSharing",), lambda template: template.resource_sharing, SHARES, "[]"),
)


def _of_cliques(scheduler: str) -> tuple[Immutable, ...]:
    """What cliques keep. `scheduler`: that of pods that name none."""
    named = f"({NAMED} == '' ? {{default}} : {NAMED})"
    path = ("spec", "podSpec", "schedulerName")
    return *OF_CLIQUES, Immutable(path, lambda clique: clique.spec.pod_spec.get("schedulerName") or scheduler, named, text(scheduler))


def issues(old: SetTemplate, new: SetTemplate, references: References, *, topology: bool, scheduler: str) -> Iterator[Issue]:
    """The forbidden changes from `old` to `new`. Cliques and groups are matched by name. `scheduler`: that of pods that name none."""
    yield from _cliques(old, new, scheduler)
    yield from _groups(old.pod_clique_scaling_groups, new.pod_clique_scaling_groups)
    yield from _immutable(OF_TEMPLATE, TEMPLATE, old, new)
    yield from _topology(old, new, references, enabled=topology)


def warnings(old: SetTemplate, new: SetTemplate, references: References, *, topology: bool) -> Iterator[str]:
    """Warnings about deprecated fields, and about topology rules that could not be checked."""
    for holder in topology_rules.holders(new):
        if _is_deprecated(holder):
            yield f"{holder.field}.packDomain is deprecated; use {holder.field}.pack.required instead"
    if any(_is_repaired(old_holder, new_holder) for old_holder, new_holder in _pairs(old, new)):
        yield from topology_rules.warnings(new, references, enabled=topology)


def kept_number_warnings(old: PodCliqueSet, new: PodCliqueSet, metadata: Mapping[str, Any]) -> Iterator[str]:
    """A warning for each number that an edit changes although existing objects keep theirs, with what scales them instead.

    `metadata`: of the set. None for the set of a graph, whose services are scaled there, and none where an autoscaler has the number.
    """
    owners = mappings(metadata.get("ownerReferences"))
    if not min(old.spec.replicas, new.spec.replicas) or any(owner.get("kind") == DYNAMO_GRAPH.name for owner in owners):
        return
    first, others = f"{metadata.get('name')}-0", ", and so in each other replica" if new.spec.replicas > 1 else ""
    grouped = _grouped(new.spec.template)
    cliques = {clique.name: clique for clique in old.spec.template.cliques}
    for index, clique in enumerate(new.spec.template.cliques):
        stored = cliques.get(clique.name)
        if stored is None or stored.spec.replicas == clique.spec.replicas or clique.spec.auto_scaling_config is not None:
            continue
        group = grouped.get(clique.name)
        name = f"{first}-{group}-0-{clique.name}" if group else f"{first}-{clique.name}"
        rest = ", and so in each other replica" if group else others
        how = f"kubectl scale pclq/{name} --replicas={clique.spec.replicas}"
        yield _kept((*CLIQUES, index, "spec", "replicas"), "PodCliques", stored.spec.replicas, clique.spec.replicas, f"`{how}`{rest}")
    groups = {group.name: group for group in old.spec.template.pod_clique_scaling_groups}
    for index, config in enumerate(new.spec.template.pod_clique_scaling_groups):
        before = groups.get(config.name)
        if before is None or before.replicas == config.replicas or config.scale_config is not None:
            continue
        how = f"kubectl scale pcsg/{first}-{config.name} --replicas={config.replicas}"
        yield _kept((*GROUPS, index, "replicas"), "PodCliqueScalingGroups", before.replicas, config.replicas, f"`{how}`{others}")


def _grouped(template: SetTemplate) -> dict[str, str]:
    """Clique -> its scaling group."""
    return {name: group.name for group in template.pod_clique_scaling_groups for name in group.clique_names}


def _kept(path: Path, plural: str, old: int, new: int, how: str) -> Located:
    text = f"replicas: {old} → {new} counts for {plural} that are created later; those that exist keep their number: scale them by {how}"
    return Located(f"{spelled(path[:-1])}.{text}", path)


def _immutable(fields: Iterable[Immutable], path: Path, old: Any, new: Any) -> Iterator[Issue]:
    return (issue for field in fields for issue in field.issues(path, old, new))


def _cliques(old: SetTemplate, new: SetTemplate, scheduler: str) -> Iterator[Issue]:
    kept = _of_cliques(scheduler)
    if len(old.cliques) != len(new.cliques):
        yield Issue(CLIQUES, ErrorType.FORBIDDEN, COMPOSITION)
    before = {clique.name: (index, clique) for index, clique in enumerate(old.cliques)}
    for number, clique in enumerate(new.cliques):
        path = (*CLIQUES, number)
        if clique.name not in before:
            yield Issue((*path, "name"), ErrorType.FORBIDDEN, NEW_CLIQUE.format(name=clique.name))
            continue
        old_number, old_clique = before[clique.name]
        if new.clique_startup_type != ANY_ORDER and old_number != number:
            yield _order_issue(path, clique.name, number, old.cliques)
        yield from _immutable(kept, path, old_clique, clique)


def _order_issue(path: Path, name: str, number: int, before: Sequence[CliqueTemplate]) -> Issue:
    expected = before[number].name if number < len(before) else ""
    return Issue((*path, "name"), ErrorType.INVALID, ORDER.format(expected=expected, position=number, name=name), name)


def _groups(old: Sequence[ScalingGroupConfig], new: Sequence[ScalingGroupConfig]) -> Iterator[Issue]:
    if len(old) != len(new):
        yield Issue(GROUPS, ErrorType.FORBIDDEN, GROUP_COMPOSITION)
    before = {group.name: group for group in old}
    for number, group in enumerate(new):
        path = (*GROUPS, number)
        if old_group := before.get(group.name):
            yield from _immutable(OF_GROUPS, path, old_group, group)
        else:
            yield Issue((*path, "name"), ErrorType.FORBIDDEN, NEW_GROUP.format(name=group.name))


def _topology(old: SetTemplate, new: SetTemplate, references: References, *, enabled: bool) -> Iterator[Issue]:
    pairs = tuple(_pairs(old, new))
    changed = [issue for old_holder, new_holder in pairs for issue in _constraint_issues(old_holder, new_holder)]
    yield from changed
    if enabled and not changed and any(_is_repaired(old_holder, new_holder) for old_holder, new_holder in pairs):
        yield from topology_rules.issues(new, references, enabled=True)


def _pairs(old: SetTemplate, new: SetTemplate) -> Iterator[tuple[Holder, Holder]]:
    """The set, each group and each clique that both versions have: its old and its new holder."""
    before = {(holder.kind, holder.name): holder for holder in topology_rules.holders(old)}
    return ((before[key], holder) for holder in topology_rules.holders(new) if (key := (holder.kind, holder.name)) in before)


def _is_repaired(old: Holder, new: Holder) -> bool:
    """Whether the update adds the missing topologyName to a deprecated constraint, which is allowed."""
    return _is_deprecated(old) and not old.topology and bool(new.topology)


def _constraint_issues(old: Holder, new: Holder) -> Iterator[Issue]:
    """The forbidden changes of one constraint."""
    if old.constraint == new.constraint:
        return
    if old.constraint is None or new.constraint is None:
        message = CONSTRAINT_ADDED if old.constraint is None else CONSTRAINT_REMOVED
        yield Issue(new.path, ErrorType.FORBIDDEN, message.format(label=new.label))
        return
    if old.topology != new.topology and not _is_repaired(old, new):
        path, message = (*new.path, "topologyName"), TOPOLOGY_CHANGED
        if new.kind != SET:
            path, message = new.path, TOPOLOGY_OF_PART_CHANGED
        yield Issue(path, ErrorType.FORBIDDEN, message.format(label=new.label, old=old.topology, new=new.topology))
    before, after = _domains(old), _domains(new)
    was_deprecated, is_deprecated = _is_deprecated(old), _is_deprecated(new)
    if before != after or (is_deprecated and not was_deprecated):
        message = MORE_THAN_MIGRATED if was_deprecated and not is_deprecated else DOMAINS_CHANGED
        yield Issue(new.path, ErrorType.FORBIDDEN, message.format(label=new.label, old=before, new=after))


def _is_deprecated(holder: Holder) -> bool:
    return holder.constraint is not None and holder.constraint.pack_domain is not None


def _domains(holder: Holder) -> str:
    """The required and the preferred domain of a constraint; empty strings where it has none."""
    sides = holder.sides
    return " ".join(f'{side}="{sides[side][1] if side in sides else ""}"' for side in ("required", "preferred"))


def policy_rules(scheduler: str) -> Iterator[PolicyRule]:
    """The same as CEL, without what `topology_rules` says of the new version. `scheduler`: that of pods that name none."""
    return map(on_update, _policy_rules(scheduler))


def _policy_rules(scheduler: str) -> Iterator[PolicyRule]:
    yield rule("variables.cliques.size() != variables.oldCliques.size()", "spec.template.cliques", COMPOSITION)
    yield for_each_clique("!(c.name in variables.oldNames)", "name", general(NEW_CLIQUE))
    is_ordered = f"variables.template.?cliqueStartupType.orValue({text(ANY_ORDER)}) != {text(ANY_ORDER)}"
    is_moved = "c.name in variables.oldNames && variables.oldNames.indexOf(c.name) != variables.names.indexOf(c.name)"
    yield for_each_clique(f"{is_ordered} && {is_moved}", "name", general(ORDER))
    for field in _of_cliques(scheduler):
        yield for_each_clique(_of_stored("c", field.is_changed("o", "c")), field.field, IMMUTABLE)
    yield rule("variables.groups.size() != variables.oldGroups.size()", "spec.template.podCliqueScalingGroups", GROUP_COMPOSITION)
    yield for_each_group("!variables.oldGroups.exists(o, o.name == g.name)", "name", general(NEW_GROUP))
    for field in OF_GROUPS:
        yield for_each_group(_of_stored("g", field.is_changed("o", "g")), field.field, IMMUTABLE)
    for field in OF_TEMPLATE:
        yield for_template(field.is_changed("variables.oldTemplate", "variables.template"), field.field, IMMUTABLE)
    yield from _constraint_rules()


def _of_stored(item: str, bad: str) -> str:
    """CEL: whether something is true of a clique or group and the stored one `o` of the same name."""
    return f"variables.{'oldCliques' if item == 'c' else 'oldGroups'}.exists(o, o.name == {item}.name && {bad})"


def _constraint_rules() -> Iterator[PolicyRule]:
    path = "topologyConstraint"
    for bad, message in _forbidden_changes("variables.oldTemplate", "variables.template"):
        yield for_template(bad, path, general(message.replace("{label}", SET)))
    bad = _topology_changed("variables.oldTemplate", "variables.template")
    yield for_template(bad, f"{path}.topologyName", general(TOPOLOGY_CHANGED))
    for item, each, kind in (("g", for_each_group, GROUP), ("c", for_each_clique, CLIQUE)):
        for bad, message in (*_forbidden_changes("o", item), (_topology_changed("o", item), TOPOLOGY_OF_PART_CHANGED)):
            yield each(_of_stored(item, bad), path, general(message.replace("{label}", f"{kind} '{{name}}'")))


def _forbidden_changes(old: str, new: str) -> Iterator[tuple[str, str]]:
    """What must not happen to a constraint besides its binding, as CEL, and the message."""
    before, after = f"{old}.topologyConstraint", f"{new}.topologyConstraint"
    was_deprecated, is_deprecated = f"has({before}.packDomain)", f"has({after}.packDomain)"
    is_other = " || ".join(f"{side(before)} != {side(after)}" for side in (_required, _preferred))
    is_migrated = f"{was_deprecated} && !{is_deprecated}"
    has_both = f"has({before}) && has({after})"
    yield f"!has({before}) && has({after})", CONSTRAINT_ADDED
    yield f"has({before}) && !has({after})", CONSTRAINT_REMOVED
    yield f"{has_both} && {is_migrated} && ({is_other})", MORE_THAN_MIGRATED
    yield f"{has_both} && !({is_migrated}) && ({is_other} || !{was_deprecated} && {is_deprecated})", DOMAINS_CHANGED


def _topology_changed(old: str, new: str) -> str:
    """CEL: whether a constraint names another binding, and not because a deprecated one named none."""
    before, after = (f"{holder}.topologyConstraint.?topologyName.orValue('')" for holder in (old, new))
    has_both = f"has({old}.topologyConstraint) && has({new}.topologyConstraint)"
    return f"{has_both} && {before} != {after} && !{is_repaired(old, new)}"


def _required(constraint: str) -> str:
    pack = f"{constraint}.?pack.?required.orValue('')"
    return f"({pack} != '' ? {pack} : {constraint}.?packDomain.orValue(''))"


def _preferred(constraint: str) -> str:
    return f"{constraint}.?pack.?preferred.orValue('')"
