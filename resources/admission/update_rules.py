"""Update rules: what about a PodCliqueSet is said once and for all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from resources.admission import topology_rules
from resources.admission.topology_rules import SET, Holder
from resources.model.template import ANY_ORDER
from resources.ports.references import References
from resources.schema.issues import Fault, Issue, Path
from resources.schema.podcliqueset import CliqueTemplate, ScalingGroupConfig, Template

TEMPLATE: Final[Path] = ("spec", "template")
CLIQUES: Final[Path] = (*TEMPLATE, "cliques")
GROUPS: Final[Path] = (*TEMPLATE, "podCliqueScalingGroups")
IMMUTABLE: Final = "field is immutable"

Fields = Iterable[tuple[Path, Any, Any]]
"""Fields of which one is as good as the other, unless they differ: the path, what it was, what it is to be."""


def issues(old: Template, new: Template, around: References, *, topology: bool) -> Iterator[Issue]:
    """What the new version of a set must not change. Cliques and groups are told apart by their names."""
    yield from _cliques(old, new)
    yield from _groups(old.pod_clique_scaling_groups, new.pod_clique_scaling_groups)
    yield from _unchangeable(
        (
            ((*TEMPLATE, "cliqueStartupType"), old.clique_startup_type, new.clique_startup_type),
            ((*TEMPLATE, "resourceClaimTemplates"), old.resource_claim_templates, new.resource_claim_templates),
            ((*TEMPLATE, "resourceSharing"), old.resource_sharing, new.resource_sharing),
        )
    )
    yield from _topology(old, new, around, enabled=topology)


def warnings(old: Template, new: Template, around: References, *, topology: bool) -> Iterator[str]:
    """What an old set may keep, and should not; and what of a mended one could not be judged."""
    for one in topology_rules.holders(new):
        if one.constraint is not None and one.constraint.pack_domain is not None:
            yield f"{one.field}.packDomain is deprecated; use {one.field}.pack.required instead"
    if any(_is_repaired(was, one) for was, one in _pairs(old, new)):
        yield from topology_rules.warnings(new, around, enabled=topology)


def _unchangeable(fields: Fields) -> Iterator[Issue]:
    for path, old, new in fields:
        if old != new:
            yield Issue(path, Fault.INVALID, IMMUTABLE, new)


def _cliques(old: Template, new: Template) -> Iterator[Issue]:
    if len(old.cliques) != len(new.cliques):
        yield Issue(CLIQUES, Fault.FORBIDDEN, "not allowed to change clique composition")
    before = {clique.name: (place, clique) for place, clique in enumerate(old.cliques)}
    for number, clique in enumerate(new.cliques):
        path = (*CLIQUES, number)
        if clique.name not in before:
            message = f"not allowed to change clique composition, new clique name '{clique.name}' is not allowed"
            yield Issue((*path, "name"), Fault.FORBIDDEN, message)
            continue
        place, was = before[clique.name]
        if new.clique_startup_type != ANY_ORDER and place != number:
            yield _moved(path, clique.name, number, old.cliques)
        yield from _unchangeable(_fixed(path, was, clique))


def _moved(path: Path, name: str, place: int, before: Sequence[CliqueTemplate]) -> Issue:
    expected = before[place].name if place < len(before) else ""
    message = (
        f"clique order cannot be changed when StartupType is InOrder or Explicit. Expected '{expected}' at position {place}, got '{name}'"
    )
    return Issue((*path, "name"), Fault.INVALID, message, name)


def _fixed(path: Path, old: CliqueTemplate, new: CliqueTemplate) -> Fields:
    scheduler = (*path, "spec", "podSpec", "schedulerName")
    yield (*path, "spec", "roleName"), old.spec.role_name, new.spec.role_name
    yield (*path, "spec", "minAvailable"), old.spec.min_available, new.spec.min_available
    yield (*path, "spec", "startsAfter"), old.spec.starts_after, new.spec.starts_after
    yield scheduler, old.spec.pod_spec.get("schedulerName") or "", new.spec.pod_spec.get("schedulerName") or ""
    yield (*path, "resourceSharing"), old.resource_sharing, new.resource_sharing


def _groups(old: Sequence[ScalingGroupConfig], new: Sequence[ScalingGroupConfig]) -> Iterator[Issue]:
    if len(old) != len(new):
        yield Issue(GROUPS, Fault.FORBIDDEN, "not allowed to add or remove PodCliqueScalingGroupConfigs")
    before = {group.name: group for group in old}
    for number, group in enumerate(new):
        path = (*GROUPS, number)
        if was := before.get(group.name):
            fields = (
                ((*path, "cliqueNames"), was.clique_names, group.clique_names),
                ((*path, "minAvailable"), was.min_available, group.min_available),
                ((*path, "resourceSharing"), was.resource_sharing, group.resource_sharing),
            )
            yield from _unchangeable(fields)
        else:
            message = f"not allowed to change scaling group composition, new scaling group name '{group.name}' is not allowed"
            yield Issue((*path, "name"), Fault.FORBIDDEN, message)


def _topology(old: Template, new: Template, around: References, *, enabled: bool) -> Iterator[Issue]:
    pairs = tuple(_pairs(old, new))
    changed = [issue for was, one in pairs for issue in _constraint(was, one)]
    yield from changed
    if enabled and not changed and any(_is_repaired(was, one) for was, one in pairs):
        yield from topology_rules.issues(new, around, enabled=True)


def _pairs(old: Template, new: Template) -> Iterator[tuple[Holder, Holder]]:
    """Who holds constraints, or might, as it was and as it is to be."""
    before = {(one.kind, one.name): one for one in topology_rules.holders(old)}
    return ((before[key], one) for one in topology_rules.holders(new) if (key := (one.kind, one.name)) in before)


def _is_repaired(old: Holder, new: Holder) -> bool:
    """A constraint from before bindings had names may be given one."""
    return old.constraint is not None and old.constraint.pack_domain is not None and not old.topology and bool(new.topology)


def _constraint(old: Holder, new: Holder) -> Iterator[Issue]:
    """What must not become of a constraint. The wording is that of upstream, which quotes names in two ways."""
    if old.constraint == new.constraint:
        return
    told = f"{new.label} topology constraint"
    if old.constraint is None:
        yield Issue(new.path, Fault.FORBIDDEN, f"{told} cannot be added after creation")
        return
    if new.constraint is None:
        yield Issue(new.path, Fault.FORBIDDEN, f"{told} cannot be removed after creation")
        return
    if old.topology != new.topology and not _is_repaired(old, new):
        if new.kind == SET:
            message = f'topologyName cannot be changed from "{old.topology}" to "{new.topology}"'
            yield Issue((*new.path, "topologyName"), Fault.FORBIDDEN, message)
        else:
            yield Issue(new.path, Fault.FORBIDDEN, f"{told} topologyName cannot be changed from '{old.topology}' to '{new.topology}'")
    if moved := _moved_domains(old, new):
        yield Issue(new.path, Fault.FORBIDDEN, f"{told} {moved}")


def _moved_domains(old: Holder, new: Holder) -> str:
    """How domains have changed that must not; empty where they have not, or only moved from the deprecated field to the new one."""
    was, now = _said(old), _said(new)
    uses, used = _is_deprecated(new), _is_deprecated(old)
    if was == now and (used or not uses):
        return ""
    from_, to = (f'required="{said["required"]}" preferred="{said["preferred"]}"' for said in (was, now))
    if used and not uses:
        migration = "deprecated packDomain migration can only move packDomain to pack.required without changing"
        return f"{migration} the required or preferred topology domain (old {from_}, new {to})"
    return f"cannot be changed from {from_} to {to}"


def _is_deprecated(one: Holder) -> bool:
    return one.constraint is not None and one.constraint.pack_domain is not None


def _said(one: Holder) -> Mapping[str, str]:
    sides = one.sides
    return {side: sides[side][1] if side in sides else "" for side in ("required", "preferred")}
