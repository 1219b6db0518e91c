"""Updates: the forbidden changes of a PodCliqueSet, as CEL. They say the same as `resources.admission.update_rules`."""

from collections.abc import Iterator
from typing import Final

from resources.admission_policies.rules import for_each_clique, for_each_group, on_update, text
from resources.model.template import ANY_ORDER
from resources.ports.fabric import PolicyRule

IMMUTABLE: Final = "field is immutable"


def update_rules() -> Iterator[PolicyRule]:
    """The rules for changes of stored PodCliqueSets. Cliques and groups are matched by name."""
    return map(on_update, _update_rules())


def _update_rules() -> Iterator[PolicyRule]:
    yield from _cliques()
    yield from _groups()
    for field, default in (("cliqueStartupType", text(ANY_ORDER)), ("resourceClaimTemplates", "[]"), ("resourceSharing", "[]")):
        same = f"variables.template.?{field}.orValue({default}) == variables.oldTemplate.?{field}.orValue({default})"
        yield PolicyRule(same, f"spec.template.{field}: {IMMUTABLE}")
    yield from _topology()


def _cliques() -> Iterator[PolicyRule]:
    reason = "not allowed to change clique composition"
    yield PolicyRule("variables.cliques.size() == variables.oldCliques.size()", f"spec.template.cliques: {reason}")
    yield for_each_clique("!variables.oldCliques.exists(o, o.name == c.name)", "name", f"{reason}, a new clique name is not allowed")
    names, old_names = "variables.cliques.map(c, c.name)", "variables.oldCliques.map(c, c.name)"
    any_order = f"variables.template.?cliqueStartupType.orValue({text(ANY_ORDER)}) == {text(ANY_ORDER)}"
    reason = "clique order cannot be changed when StartupType is InOrder or Explicit"
    yield PolicyRule(f"{any_order} || {names} == {old_names}", f"spec.template.cliques: {reason}")
    for field, default in (("roleName", "''"), ("minAvailable", "0")):
        # A field that the new version leaves out keeps its value.
        changed = f"has(c.spec.{field}) && {_changed('variables.oldCliques', 'c', f'spec.?{field}', default)}"
        yield for_each_clique(changed, f"spec.{field}", IMMUTABLE)
    yield for_each_clique(_changed("variables.oldCliques", "c", "spec.?startsAfter", "[]"), "spec.startsAfter", IMMUTABLE)
    path = "spec.podSpec.schedulerName"
    yield for_each_clique(_changed("variables.oldCliques", "c", "spec.podSpec.?schedulerName", "''"), path, IMMUTABLE)
    yield for_each_clique(_changed("variables.oldCliques", "c", "?resourceSharing", "[]"), "resourceSharing", IMMUTABLE)


def _groups() -> Iterator[PolicyRule]:
    reason = "not allowed to add or remove PodCliqueScalingGroupConfigs"
    yield PolicyRule("variables.groups.size() == variables.oldGroups.size()", f"spec.template.podCliqueScalingGroups: {reason}")
    reason = "not allowed to change scaling group composition, a new scaling group name is not allowed"
    yield for_each_group("!variables.oldGroups.exists(o, o.name == g.name)", "name", reason)
    for field, default in (("cliqueNames", "[]"), ("minAvailable", "1"), ("resourceSharing", "[]")):
        yield for_each_group(_changed("variables.oldGroups", "g", f"?{field}", default), field, IMMUTABLE)


def _changed(old: str, item: str, field: str, default: str) -> str:
    """CEL: whether the stored entry of the same name has another value in this field."""
    return f"{old}.exists(o, o.name == {item}.name && o.{field}.orValue({default}) != {item}.{field}.orValue({default}))"


def _topology() -> Iterator[PolicyRule]:
    """A constraint cannot change, with two exceptions: packDomain becomes pack.required with the same domain, and a deprecated constraint
    gets the topologyName that it lacks."""
    reason = "the topology constraint cannot be added, changed or removed after creation"
    path = "topologyConstraint"
    yield PolicyRule(_allowed("variables.oldTemplate", "variables.template"), f"spec.template.{path}: {reason}")
    yield for_each_group(f"variables.oldGroups.exists(o, o.name == g.name && !({_allowed('o', 'g')}))", path, reason)
    yield for_each_clique(f"variables.oldCliques.exists(o, o.name == c.name && !({_allowed('o', 'c')}))", path, reason)


def _allowed(old: str, new: str) -> str:
    """CEL: whether the constraint of a holder may change as it does."""
    before, after = f"{old}.topologyConstraint", f"{new}.topologyConstraint"
    same_domains = " && ".join(f"{side(before)} == {side(after)}" for side in (_required, _preferred))
    was_deprecated, is_deprecated = f"has({before}.packDomain)", f"has({after}.packDomain)"
    name = "{}.?topologyName.orValue('')"
    same_name = f"({name.format(before)} == {name.format(after)} || ({was_deprecated} && {name.format(before)} == ''))"
    both = f"{same_domains} && ({was_deprecated} || !{is_deprecated}) && {same_name}"
    return f"has({before}) == has({after}) && (!has({after}) || ({both}))"


def _required(constraint: str) -> str:
    pack = f"{constraint}.?pack.?required.orValue('')"
    return f"({pack} != '' ? {pack} : {constraint}.?packDomain.orValue(''))"


def _preferred(constraint: str) -> str:
    return f"{constraint}.?pack.?preferred.orValue('')"
