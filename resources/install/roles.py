"""Roles: the ServiceAccount of an installation and the roles and bindings that allow it exactly its permissions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from engine.ids import Kind
from resources.base import kinds
from resources.install import modes
from resources.install.permissions import VERBS, Permission, without_implied
from resources.install.publication import NAME, NAMESPACE

CLUSTER_ROLE: Final = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING: Final = Kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)

ENGINE_ROLE: Final = "grove:system:grove-engine"
"""The ClusterRole of the engine's account, and its binding."""
NAMESPACE_ROLE: Final = "grove:system:grove-engine-lease"
"""The Role for what is in the installation's own namespace, the Lease above all, and its binding."""
PUBLICATION_ROLE: Final = "grove:system:grove-engine-publication"
"""The Role to keep what the installation publishes up to date, and its binding."""
PUBLIC_ROLE: Final = "grove:system:grove-engine-public"
"""The Role to read what the installation publishes, and its binding to everybody who is authenticated."""
WRITER_ROLE: Final = "grove:system:grove-engine-writer"
"""The ClusterRole of people and jobs that run `engine sync`, and the Role for the Leases that they take; the administrator binds both."""
READER_ROLE: Final = "grove:system:grove-engine-reader"
"""The ClusterRole of people and jobs that only read; the administrator binds it."""
ROLE_OF_NAMESPACE: Final[Mapping[str, str]] = {NAMESPACE: PUBLICATION_ROLE}
"""Namespace -> the name of the Role there; elsewhere `NAMESPACE_ROLE`."""
PLAN_URL: Final = "/debug/plan"
"""The non-resource URL whose `get` permits a caller to see the pending plan and the pages."""
LABELS: Final = {"app.kubernetes.io/name": "grove-engine", "app.kubernetes.io/part-of": "grove"}
"""The labels of an installation's objects. They lack the one of managed objects, for those are deleted without their set."""


class Account(Struct, frozen=True):
    """The ServiceAccount that the engine runs as."""

    namespace: str = modes.NAMESPACE
    name: str = "grove-engine"

    @property
    def user(self) -> str:
        """Its user name, as the API server and audit logs have it."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"


def account_objects(account: Account, needed: Iterable[Permission]) -> Iterator[dict[str, Any]]:
    """The ServiceAccount, and a role with a binding for each place in which it needs permissions: the whole cluster, or one namespace."""
    yield {"apiVersion": "v1", "kind": kinds.SERVICE_ACCOUNT.name, "metadata": _metadata(account.name, account.namespace)}
    places: dict[str, list[Permission]] = {}
    for permission in without_implied(needed):
        places.setdefault(permission.namespace, []).append(permission)
    for namespace, permissions in sorted(places.items()):
        role, binding = (kinds.ROLE, kinds.ROLE_BINDING) if namespace else (CLUSTER_ROLE, CLUSTER_ROLE_BINDING)
        name = ROLE_OF_NAMESPACE.get(namespace, NAMESPACE_ROLE) if namespace else ENGINE_ROLE
        subject = {"kind": kinds.SERVICE_ACCOUNT.name, "name": account.name, "namespace": account.namespace}
        yield _role(role, name, namespace, permissions)
        yield _binding(binding, role, name, namespace, subject)


def public_objects() -> Iterator[dict[str, Any]]:
    """The Role to read what the installation publishes by its name, and its binding to everybody who is authenticated."""
    everybody = {"apiGroup": kinds.ROLE.group, "kind": "Group", "name": "system:authenticated"}
    yield _role(kinds.ROLE, PUBLIC_ROLE, NAMESPACE, (Permission(kinds.CONFIG_MAP, ("get",), names=(NAME,)),))
    yield _binding(kinds.ROLE_BINDING, kinds.ROLE, PUBLIC_ROLE, NAMESPACE, everybody)


def writer_roles(needed: Iterable[Permission]) -> Iterator[dict[str, Any]]:
    """The ClusterRole for `engine sync`, and the Role for the Leases of the installation. Nobody has them until they are bound."""
    listed = [permission for permission in without_implied(needed) if permission.kind != kinds.CONFIG_MAP]
    for namespace in sorted({permission.namespace for permission in listed}):
        kind = kinds.ROLE if namespace else CLUSTER_ROLE
        yield _role(kind, WRITER_ROLE, namespace, (permission for permission in listed if permission.namespace == namespace))


def reader_role(needed: Iterable[Permission]) -> dict[str, Any]:
    """The ClusterRole for commands that write nothing, and for the plan and the pages of `engine run`. Nobody has it until it is bound."""
    role = _role(CLUSTER_ROLE, READER_ROLE, "", needed)
    return {**role, "rules": [*role["rules"], {"nonResourceURLs": [PLAN_URL], "verbs": ["get"]}]}


def _role(kind: Kind, name: str, namespace: str, permissions: Iterable[Permission]) -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": _metadata(name, namespace),
        "rules": list(role_rules(permissions)),
    }


def role_rules(permissions: Iterable[Permission]) -> Iterator[dict[str, Any]]:
    """The rules that allow exactly these permissions, sorted. Resources of one group with the same verbs and names are in one rule."""
    verbs_of: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for permission in permissions:
        verbs_of.setdefault((permission.kind.group, permission.resource, tuple(sorted(permission.names))), set()).update(permission.verbs)
    resources: dict[tuple[str, tuple[str, ...], tuple[str, ...]], set[str]] = {}
    for (group, resource, names), allowed in verbs_of.items():
        resources.setdefault((group, tuple(sorted(allowed, key=VERBS.index)), names), set()).add(resource)
    rows = sorted((group, sorted(plurals), verbs, names) for (group, verbs, names), plurals in resources.items())
    for group, plurals, verbs, names in rows:
        rule: dict[str, Any] = {"apiGroups": [group], "resources": plurals}
        yield {**rule, **({"resourceNames": list(names)} if names else {}), "verbs": list(verbs)}


def _binding(kind: Kind, role: Kind, name: str, namespace: str, subject: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": role.group, "kind": role.name, "name": name},
        "subjects": [dict(subject)],
    }


def _metadata(name: str, namespace: str) -> dict[str, Any]:
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(LABELS)}
