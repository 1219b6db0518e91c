"""Update rules: the changes of a PodCliqueSet that are forbidden."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from resources.admission import topology_rules
from resources.admission.topology_rules import SET, Holder
from resources.base.fields import CLIQUES, GROUPS, TEMPLATE
from resources.model.template import ANY_ORDER
from resources.ports.references import References
from resources.schema.issues import ErrorType, Issue, Path
from resources.schema.podcliqueset import CliqueTemplate, ScalingGroupConfig, SetTemplate

IMMUTABLE: Final = "field is immutable"

Fields = Iterable[tuple[Path, Any, Any]]
"""Fields to compare: the path, the old value, the new value."""


def issues(old: SetTemplate, new: SetTemplate, references: References, *, topology: bool) -> Iterator[Issue]:
    """The forbidden changes from `old` to `new`. Cliques and groups are matched by name."""
    yield from _cliques(old, new)
    yield from _groups(old.pod_clique_scaling_groups, new.pod_clique_scaling_groups)
    yield from _immutable(
        (
            ((*TEMPLATE, "cliqueStartupType"), old.clique_startup_type, new.clique_startup_type),
            ((*TEMPLATE, "resourceClaimTemplates"), old.resource_claim_templates, new.resource_claim_templates),
            ((*TEMPLATE, "resourceSharing"), old.resource_sharing, new.resource_sharing),
        )
    )
    yield from _topology(old, new, references, enabled=topology)


def warnings(old: SetTemplate, new: SetTemplate, references: References, *, topology: bool) -> Iterator[str]:
    """Warnings about deprecated fields, and about topology rules that could not be checked."""
    for holder in topology_rules.holders(new):
        if _is_deprecated(holder):
            yield f"{holder.field}.packDomain is deprecated; use {holder.field}.pack.required instead"
    if any(_is_repaired(old_holder, new_holder) for old_holder, new_holder in _pairs(old, new)):
        yield from topology_rules.warnings(new, references, enabled=topology)


def _immutable(fields: Fields) -> Iterator[Issue]:
    for path, old, new in fields:
        if old != new:
            yield Issue(path, ErrorType.INVALID, IMMUTABLE, new)


def _cliques(old: SetTemplate, new: SetTemplate) -> Iterator[Issue]:
    if len(old.cliques) != len(new.cliques):
        yield Issue(CLIQUES, ErrorType.FORBIDDEN, "not allowed to change clique composition")
    before = {clique.name: (index, clique) for index, clique in enumerate(old.cliques)}
    for number, clique in enumerate(new.cliques):
        path = (*CLIQUES, number)
        if clique.name not in before:
            message = f"not allowed to change clique composition, new clique name '{clique.name}' is not allowed"
            yield Issue((*path, "name"), ErrorType.FORBIDDEN, message)
            continue
        old_number, old_clique = before[clique.name]
        if new.clique_startup_type != ANY_ORDER and old_number != number:
            yield _order_issue(path, clique.name, number, old.cliques)
        yield from _immutable(_immutable_fields(path, old_clique, clique))


def _order_issue(path: Path, name: str, number: int, before: Sequence[CliqueTemplate]) -> Issue:
    expected = before[number].name if number < len(before) else ""
    message = (
        f"clique order cannot be changed when StartupType is InOrder or Explicit. Expected '{expected}' at position {number}, got '{name}'"
    )
    return Issue((*path, "name"), ErrorType.INVALID, message, name)


def _immutable_fields(path: Path, old: CliqueTemplate, new: CliqueTemplate) -> Fields:
    scheduler = (*path, "spec", "podSpec", "schedulerName")
    yield (*path, "spec", "roleName"), old.spec.role_name, new.spec.role_name
    yield (*path, "spec", "minAvailable"), old.spec.min_available, new.spec.min_available
    yield (*path, "spec", "startsAfter"), old.spec.starts_after, new.spec.starts_after
    yield scheduler, old.spec.pod_spec.get("schedulerName") or "", new.spec.pod_spec.get("schedulerName") or ""
    yield (*path, "resourceSharing"), old.resource_sharing, new.resource_sharing


def _groups(old: Sequence[ScalingGroupConfig], new: Sequence[ScalingGroupConfig]) -> Iterator[Issue]:
    if len(old) != len(new):
        yield Issue(GROUPS, ErrorType.FORBIDDEN, "not allowed to add or remove PodCliqueScalingGroupConfigs")
    before = {group.name: group for group in old}
    for number, group in enumerate(new):
        path = (*GROUPS, number)
        if old_group := before.get(group.name):
            fields = (
                ((*path, "cliqueNames"), old_group.clique_names, group.clique_names),
                ((*path, "minAvailable"), old_group.min_available, group.min_available),
                ((*path, "resourceSharing"), old_group.resource_sharing, group.resource_sharing),
            )
            yield from _immutable(fields)
        else:
            message = f"not allowed to change scaling group composition, new scaling group name '{group.name}' is not allowed"
            yield Issue((*path, "name"), ErrorType.FORBIDDEN, message)


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
    """The forbidden changes of one constraint. The messages are Grove's, which quotes names in two ways."""
    if old.constraint == new.constraint:
        return
    subject = f"{new.label} topology constraint"
    if old.constraint is None:
        yield Issue(new.path, ErrorType.FORBIDDEN, f"{subject} cannot be added after creation")
        return
    if new.constraint is None:
        yield Issue(new.path, ErrorType.FORBIDDEN, f"{subject} cannot be removed after creation")
        return
    if old.topology != new.topology and not _is_repaired(old, new):
        if new.kind == SET:
            message = f'topologyName cannot be changed from "{old.topology}" to "{new.topology}"'
            yield Issue((*new.path, "topologyName"), ErrorType.FORBIDDEN, message)
        else:
            message = f"{subject} topologyName cannot be changed from '{old.topology}' to '{new.topology}'"
            yield Issue(new.path, ErrorType.FORBIDDEN, message)
    if change := _forbidden_change(old, new):
        yield Issue(new.path, ErrorType.FORBIDDEN, f"{subject} {change}")


def _forbidden_change(old: Holder, new: Holder) -> str:
    """The forbidden change of the domains as a predicate; empty if there is none or they moved from packDomain to pack.required."""
    before, after = _domains(old), _domains(new)
    was_deprecated, is_deprecated = _is_deprecated(old), _is_deprecated(new)
    if before == after and (was_deprecated or not is_deprecated):
        return ""
    from_, to = (f'required="{domains["required"]}" preferred="{domains["preferred"]}"' for domains in (before, after))
    if was_deprecated and not is_deprecated:
        migration = "deprecated packDomain migration can only move packDomain to pack.required without changing"
        return f"{migration} the required or preferred topology domain (old {from_}, new {to})"
    return f"cannot be changed from {from_} to {to}"


def _is_deprecated(holder: Holder) -> bool:
    return holder.constraint is not None and holder.constraint.pack_domain is not None


def _domains(holder: Holder) -> Mapping[str, str]:
    """The required and the preferred domain of a constraint; empty strings where it has none."""
    sides = holder.sides
    return {side: sides[side][1] if side in sides else "" for side in ("required", "preferred")}
