"""Roles: the ServiceAccount of an installation and the roles and bindings that allow it exactly its permissions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from engine.ids import Kind
from resources.base import kinds
from resources.install import modes
from resources.install.permissions import VERBS, Permission, is_of_workloads, of_the_cluster, without_implied
from resources.install.publication import NAME, NAMESPACE

CLUSTER_ROLE: Final = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING: Final = Kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)

ENGINE_ROLE: Final = "grove:system:grove-engine"
"""The ClusterRole of the engine's account, the Role in each namespace where only some are managed, and their bindings."""
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
CERTIFICATE_ROLE: Final = "grove:system:grove-engine-certificate"
"""The Role for the Secret with the certificate of the webhooks, and its binding, where only some namespaces are managed."""
EVENTS_ROLE: Final = "grove:system:grove-engine-events"
"""The Role for Events about objects that are in no namespace, and its binding, where only some namespaces are managed."""
OF_CLUSTER: Final = "-cluster"
"""The end of the names of the ClusterRoles of people with what is in no namespace, where only some namespaces are managed."""
ROLE_OF_KIND: Final[Mapping[Kind, str]] = {
    kinds.CONFIG_MAP: PUBLICATION_ROLE,
    kinds.SECRET: CERTIFICATE_ROLE,
    kinds.EVENT: EVENTS_ROLE,
    kinds.LEASE: NAMESPACE_ROLE,
}
"""Kind of an object of the installation itself -> the name of the Role for it."""
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


def account_objects(account: Account, needed: Iterable[Permission], namespaces: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """The ServiceAccount, and a role with a binding for each place in which it needs permissions: the whole cluster, or one namespace.

    `namespaces`: the only ones with workloads that it manages; none: all.
    """
    yield {"apiVersion": "v1", "kind": kinds.SERVICE_ACCOUNT.name, "metadata": _metadata(account.name, account.namespace)}
    subject = {"kind": kinds.SERVICE_ACCOUNT.name, "name": account.name, "namespace": account.namespace}
    for (namespace, name), permissions in sorted(_roles_of_account(tuple(needed), namespaces).items()):
        role, binding = (kinds.ROLE, kinds.ROLE_BINDING) if namespace else (CLUSTER_ROLE, CLUSTER_ROLE_BINDING)
        yield _role(role, name, namespace, permissions)
        yield _binding(binding, role, name, namespace, subject)


def _roles_of_account(needed: Sequence[Permission], namespaces: Sequence[str]) -> Mapping[tuple[str, str], list[Permission]]:
    """Namespace (empty: the whole cluster) and name of each role -> what it allows."""
    roles: dict[tuple[str, str], list[Permission]] = {}
    in_each, elsewhere = _divided(needed, namespaces)
    for permission in without_implied(elsewhere):
        name = ROLE_OF_KIND[permission.kind] if permission.namespace else ENGINE_ROLE
        roles.setdefault((permission.namespace, name), []).append(permission)
    return roles | {(namespace, ENGINE_ROLE): in_each for namespace in namespaces}


def _divided(needed: Sequence[Permission], namespaces: Sequence[str]) -> tuple[list[Permission], list[Permission]]:
    """What is needed in each of the namespaces, and the rest; without namespaces everything is the rest."""
    if not namespaces:
        return [], list(needed)
    rest = [permission for permission in needed if not is_of_workloads(permission)]
    return [permission for permission in needed if is_of_workloads(permission)], [*rest, *of_the_cluster(needed)]


def public_objects() -> Iterator[dict[str, Any]]:
    """The Role to read what the installation publishes by its name, and its binding to everybody who is authenticated."""
    everybody = {"apiGroup": kinds.ROLE.group, "kind": "Group", "name": "system:authenticated"}
    yield _role(kinds.ROLE, PUBLIC_ROLE, NAMESPACE, (Permission(kinds.CONFIG_MAP, ("get",), names=(NAME,)),))
    yield _binding(kinds.ROLE_BINDING, kinds.ROLE, PUBLIC_ROLE, NAMESPACE, everybody)


def writer_roles(needed: Iterable[Permission], namespaces: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """The ClusterRole for `engine sync`, and the Role for the Leases of the installation. No account has them until they are bound.

    With `namespaces` there are two ClusterRoles: one to be bound in each of these, and one with what is in no namespace.
    """
    in_each, rest = _divided([permission for permission in needed if permission.kind != kinds.CONFIG_MAP], namespaces)
    if in_each:
        yield _role(CLUSTER_ROLE, WRITER_ROLE, "", in_each)
    listed = tuple(without_implied(rest))
    for namespace in sorted({permission.namespace for permission in listed}):
        kind = kinds.ROLE if namespace else CLUSTER_ROLE
        name = f"{WRITER_ROLE}{OF_CLUSTER}" if in_each and not namespace else WRITER_ROLE
        yield _role(kind, name, namespace, (permission for permission in listed if permission.namespace == namespace))


def reader_roles(needed: Iterable[Permission], namespaces: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """The ClusterRole for commands that write nothing, and for the plan and the pages of `engine run`. No account has it until it is bound.

    With `namespaces` there are two: one to be bound in each of these, and one with what is in no namespace.
    """
    in_each, rest = _divided(tuple(needed), namespaces)
    if in_each:
        yield _role(CLUSTER_ROLE, READER_ROLE, "", in_each)
    role = _role(CLUSTER_ROLE, f"{READER_ROLE}{OF_CLUSTER}" if in_each else READER_ROLE, "", without_implied(rest))
    yield {**role, "rules": [*role["rules"], {"nonResourceURLs": [PLAN_URL], "verbs": ["get"]}]}


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
