"""PodGroups: kube-scheduler's kinds for gangs, as Kubernetes 1.37 serves them with its feature gates on."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from grove_sandbox.kinds.rules import Draft, Environment, Rules, keep_spec
from grove_sandbox.product import GROUP_PROTECTION, Body, label_faults, qualified_faults, subdomain_faults
from grove_sandbox.types import causes
from grove_sandbox.types.status import Cause

_MOST_TEMPLATES, _MOST_LEVELS, _HIGHEST_PRIORITY = 8, 4, 1_000_000_000
_MINIMUMS = {"podGroupTemplates": "minCount", "compositePodGroupTemplates": "minGroupCount"}
"""The lists of templates, and the field with the minimum of each."""
_ORDER = ("name", "schedulingPolicy", "schedulingConstraints", "disruptionMode", "priorityClassName", "priority", *_MINIMUMS)
"""The fields of a template in the order in which the server prints them."""
_OF_OTHER_GATES = ("preemptionPolicy", "resourceClaims")
"""Fields that the server drops."""


def _default(group: Draft) -> None:
    group["spec"].setdefault("disruptionMode", {"single": {}})


def _drop(body: Draft, *_: Any) -> None:
    """Drop fields whose feature gates are off."""
    for spec in (body["spec"], *(template for _, template in _templates(body["spec"], "spec"))):
        for field in _OF_OTHER_GATES:
            spec.pop(field, None)


def _protect(group: Draft, _: Environment) -> None:
    finalizers = group["metadata"].setdefault("finalizers", [])
    if GROUP_PROTECTION not in finalizers:
        finalizers.append(GROUP_PROTECTION)


def _validate(group: Body, minimum: str, *, needs_workload: bool) -> list[Cause]:
    """The faults of a PodGroup or CompositePodGroup."""
    spec, reference, parent = group["spec"], group["spec"].get("workloadRef"), group["spec"].get("parentCompositePodGroupName")
    faults = [*_common_faults(spec, "spec", minimum)]
    if parent is not None:
        faults += _named(parent, "spec.parentCompositePodGroupName", subdomain_faults)
    if reference is not None:
        faults += _name_faults(reference.get("workloadName"), "spec.workloadRef.workloadName", subdomain_faults)
        faults += _name_faults(reference.get("templateName"), "spec.workloadRef.templateName", label_faults)
    elif needs_workload:
        faults.append(causes.required("spec.workloadRef"))
    elif parent is not None:
        faults.append(causes.required("spec.workloadRef", "must be set when parentCompositePodGroupName is set"))
    return faults


def _common_faults(spec: Body, path: str, minimum: str) -> Iterator[Cause]:
    """The faults of what groups and templates of groups have in common."""
    policy, mode = spec["schedulingPolicy"], spec.get("disruptionMode")
    yield from _union_faults(policy, f"{path}.schedulingPolicy", ("basic", "gang"))
    if (gang := policy.get("gang")) is not None and gang[minimum] < 1:
        where = f"{path}.schedulingPolicy.gang.{minimum}"
        yield causes.invalid(where, gang[minimum], "must be greater than or equal to 1") if gang[minimum] else causes.required(where)
    if mode is not None:
        yield from _union_faults(mode, f"{path}.disruptionMode", ("single", "all"))
    yield from _topology_faults((spec.get("schedulingConstraints") or {}).get("topology") or (), f"{path}.schedulingConstraints.topology")
    if name := spec.get("priorityClassName"):
        yield from _named(name, f"{path}.priorityClassName", subdomain_faults)
    if (priority := spec.get("priority") or 0) > _HIGHEST_PRIORITY:
        yield causes.invalid(f"{path}.priority", priority, f"must be less than or equal to {_HIGHEST_PRIORITY}")


def _union_faults(value: Body, path: str, members: Collection[str]) -> list[Cause]:
    """The fault of an object that has not exactly one of these fields."""
    given, choices = [member for member in members if value.get(member) is not None], ", ".join(f"`{member}`" for member in members)
    if not given:
        return [causes.invalid(path, "", f"must specify one of: {choices}")]
    return [causes.invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {choices}")] if len(given) > 1 else []


def _topology_faults(topology: Collection[Body], path: str) -> list[Cause]:
    if len(topology) > 1:
        return [causes.too_many(path, len(topology), 1)]
    return [cause for at, level in enumerate(topology) for cause in _name_faults(level.get("key"), f"{path}[{at}].key", qualified_faults)]


def _name_faults(name: str | None, path: str, check: Callable[[str], list[str]]) -> list[Cause]:
    return _named(name, path, check) if name else [causes.required(path)]


def _named(name: str, path: str, check: Callable[[str], list[str]]) -> list[Cause]:
    return [causes.invalid(path, name, fault) for fault in check(name)]


def _templates(spec: Body, path: str) -> Iterator[tuple[str, Any]]:
    """The templates of a Workload, the outer ones first, with their paths."""
    for field in _MINIMUMS:
        for at, template in enumerate(spec.get(field) or ()):
            yield f"{path}.{field}[{at}]", template
            yield from _templates(template, f"{path}.{field}[{at}]")


def _validate_workload(workload: Body) -> list[Cause]:
    spec = workload["spec"]
    lists = {field: spec.get(field) or None for field in _MINIMUMS}
    faults = _union_faults(lists, "spec", tuple(_MINIMUMS))
    used: dict[str, str] = {}
    priorities = set()
    for path, template in (("spec", spec), *_templates(spec, "spec")):
        for field in _MINIMUMS:
            if len(template.get(field) or ()) > _MOST_TEMPLATES:
                faults.append(causes.too_many(f"{path}.{field}", len(template[field]), _MOST_TEMPLATES))
        if path == "spec":
            continue
        faults += _template_faults(template, path, used)
        priorities.add((template.get("priorityClassName"), template.get("priority")))
    if len(priorities) > 1:
        several = "all priority and priorityClassName values must be identical, detected multiple values"
        faults.append(
            causes.invalid("spec", None, several if lists["compositePodGroupTemplates"] else "detected multiple priority configurations")
        )
    return faults + _depth_faults(spec) + _reference_faults(spec.get("controllerRef"))


def _template_faults(template: Body, path: str, used: dict[str, str]) -> list[Cause]:
    """The faults of one template; its name is added to `used`, with the list that it is in."""
    name, siblings = str(template.get("name") or ""), path.rpartition("[")[0]
    is_composite = siblings.endswith("compositePodGroupTemplates")
    faults = _name_faults(name, f"{path}.name", label_faults)
    if used.get(name) == siblings:
        faults.append(causes.duplicate(path, {field: template[field] for field in _ORDER if field in template}))
    elif name in used:
        faults.append(causes.duplicate(f"{path}.name", name))
    used.setdefault(name, siblings)
    if is_composite and not any(template.get(field) for field in _MINIMUMS):
        faults.append(causes.invalid(path, name, "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"))
    minimum = _MINIMUMS["compositePodGroupTemplates" if is_composite else "podGroupTemplates"]
    return [*faults, *_common_faults(template, path, minimum)]


def _depth_faults(spec: Body) -> list[Cause]:
    return [
        causes.invalid(f"spec.compositePodGroupTemplates[{at}]", None, f"maximum template hierarchy depth is {_MOST_LEVELS}")
        for at, template in enumerate(spec.get("compositePodGroupTemplates") or ())
        if _depth(template) >= _MOST_LEVELS
    ]


def _depth(template: Body) -> int:
    """How many composite templates are above each other, this one included."""
    return 1 + max((_depth(inner) for inner in template.get("compositePodGroupTemplates") or ()), default=0)


def _reference_faults(reference: Body | None) -> list[Cause]:
    if reference is None:
        return []
    return [causes.required(f"spec.controllerRef.{field}") for field in ("kind", "name") if not reference.get(field)]


# --- changes: all but the minimum of a PodGroup is immutable


def _changed(new: Body, old: Body, path: str, ignored: Collection[str] = ()) -> list[Cause]:
    return [
        causes.invalid(f"{path}.{field}", None, "field is immutable")
        for field in sorted({*new, *old} - set(ignored))
        if new.get(field) != old.get(field)
    ]


def _change_faults(new: Body, old: Body) -> list[Cause]:
    return _changed(new["spec"], old["spec"], "spec", ("schedulingPolicy",)) + _policy_changes(new["spec"], old["spec"], "spec")


def _policy_changes(new: Body, old: Body, path: str) -> list[Cause]:
    """The minimum of a gang may change, but not whether it is one."""
    now, before = new["schedulingPolicy"], old["schedulingPolicy"]
    faults = _changed(now, before, f"{path}.schedulingPolicy", ("gang",))
    if (now.get("gang") is None) != (before.get("gang") is None):
        why = "field cannot be cleared once set" if now.get("gang") is None else "field cannot be set once created"
        faults.append(causes.invalid(f"{path}.schedulingPolicy.gang", None, why))
    return faults


def _composite_change_faults(new: Body, old: Body) -> list[Cause]:
    return _changed(new["spec"], old["spec"], "spec")


def _workload_change_faults(new: Body, old: Body) -> list[Cause]:
    faults = _changed(new["spec"], old["spec"], "spec", tuple(_MINIMUMS))
    return faults + _template_changes(new["spec"], old["spec"], "spec")


def _template_changes(new: Body, old: Body, path: str) -> list[Cause]:
    """No template is added or removed; of one that stays only the minimum may change."""
    faults = []
    for field in _MINIMUMS:
        before = {template["name"]: template for template in old.get(field) or ()}
        now = {template["name"]: (at, template) for at, template in enumerate(new.get(field) or ())}
        where = f"{path}.{field}"
        faults += [causes.forbidden(f"{where}[{at}]", "item may not be added") for name, (at, _) in now.items() if name not in before]
        faults += [causes.forbidden(where, "item may not be removed") for name in before if name not in now]
        if now.keys() == before.keys():
            for name, (at, template) in now.items():
                faults += _changed(template, before[name], f"{where}[{at}]", ("schedulingPolicy", *_MINIMUMS))
                faults += _policy_changes(template, before[name], f"{where}[{at}]")
                faults += _template_changes(template, before[name], f"{where}[{at}]")
    return faults


POD_GROUP = Rules(
    default=_default,
    admit=_protect,
    create=_drop,
    update=_drop,
    status=keep_spec,
    validate=partial(_validate, minimum="minCount", needs_workload=False),
    validate_change=_change_faults,
    unconditional=False,
)
COMPOSITE_POD_GROUP = Rules(
    default=_default,
    create=_drop,
    update=_drop,
    status=keep_spec,
    validate=partial(_validate, minimum="minGroupCount", needs_workload=True),
    validate_change=_composite_change_faults,
    unconditional=False,
)
WORKLOAD = Rules(
    create=_drop,
    update=_drop,
    validate=_validate_workload,
    validate_change=_workload_change_faults,
    unconditional=False,
)
