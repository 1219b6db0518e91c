"""Roles and their bindings."""

from grove_sandbox.kinds.rules import Draft, Rules
from grove_sandbox.product import Body
from grove_sandbox.types import causes, names
from grove_sandbox.types.status import Cause

_GROUP = "rbac.authorization.k8s.io"


def _default_binding(binding: Draft) -> None:
    binding["roleRef"]["apiGroup"] = binding["roleRef"].get("apiGroup") or _GROUP
    for subject in binding.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = _GROUP


def _role_faults(role: Body) -> list[Cause]:
    faults: list[Cause] = []
    for at, rule in enumerate(role.get("rules") or ()):
        path = f"rules[{at}]"
        if not rule.get("verbs"):
            faults.append(causes.required(f"{path}.verbs"))
        if rule.get("nonResourceURLs"):
            continue
        if not rule.get("apiGroups"):
            faults.append(causes.required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            faults.append(causes.required(f"{path}.resources", "resource rules must supply at least one resource"))
    return faults


def _binding_faults(binding: Body) -> list[Cause]:
    reference = binding["roleRef"]
    faults: list[Cause] = []
    if reference.get("apiGroup") != _GROUP:
        faults.append(causes.unsupported("roleRef.apiGroup", reference.get("apiGroup"), (_GROUP,)))
    kinds = ("Role", "ClusterRole") if binding["kind"] == "RoleBinding" else ("ClusterRole",)
    if reference.get("kind") not in kinds:
        faults.append(causes.unsupported("roleRef.kind", reference.get("kind"), kinds))
    if not reference.get("name"):
        faults.append(causes.required("roleRef.name"))
    return faults


def _binding_change_faults(new: Body, old: Body) -> list[Cause]:
    if new["roleRef"] == old["roleRef"]:
        return []
    reference = new["roleRef"]
    shown = {"APIGroup": reference.get("apiGroup", ""), "Kind": reference.get("kind", ""), "Name": reference.get("name", "")}
    return [causes.invalid("roleRef", shown, "field is immutable")]


ROLE = Rules(validate=_role_faults, name_faults=names.path_faults, creates_on_put=True)
BINDING = Rules(
    default=_default_binding,
    validate=_binding_faults,
    validate_change=_binding_change_faults,
    name_faults=names.path_faults,
    creates_on_put=True,
)
