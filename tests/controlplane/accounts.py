"""Accounts: ServiceAccounts of a control plane with exactly the roles of an installation, and their kubeconfigs."""

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from engine.ids import Kind
from providers.registry import SCHEDULERS, fabrics
from providers.schedulers.kube import KUBE, kube_scheduler
from resources.base import kinds
from resources.install.modes import Use
from resources.install.permissions import ACCESS_REVIEW, Permission, installation_permissions, permissions
from resources.install.publication import LeasePlace
from resources.install.roles import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, Account, account_objects, public_objects
from resources.ports.configuration import Configuration, GangMode
from resources.registry import BLUEPRINTS
from resources.settings import Settings
from tests.controlplane.cluster import SYSTEM, ControlPlane, kubeconfig, write_secret
from tests.waiting import until

OPERATOR = "operator"
"""The name of the kubeconfig of the engine's own account."""
LEASE = "grove-operator-leader-election"
BACK_ENDS = {**SCHEDULERS, KUBE: kube_scheduler(GangMode.AUTO)}
EVERYTHING = Configuration(BACK_ENDS, KUBE, topology=True, fabrics=fabrics(Settings()))
"""The configuration with every scheduler back end and every feature."""
PLACES = (LeasePlace(SYSTEM, LEASE), LeasePlace("default", LEASE))
"""The Lease of an installation, and that of a command without a configuration."""
TOKEN_SECONDS = 24 * 3600
KINDS = {kind.name: kind for kind in (*kinds.KINDS, CLUSTER_ROLE, CLUSTER_ROLE_BINDING)}


def operator_permissions() -> tuple[Permission, ...]:
    """What the account `operator` may do: `engine run` and `engine sync` under every configuration of this package."""
    managed = permissions(BLUEPRINTS, EVERYTHING, use=Use.SYNC) + permissions(BLUEPRINTS, EVERYTHING)
    return (*managed, *_leases(), *installation_permissions(Use.RUN))


def user_of(plane: ControlPlane, configuration: Configuration, use: Use) -> str:
    """The name of the kubeconfig of an account that may do exactly what this use needs under this configuration; made if there is none."""
    leases = _leases() if use is not Use.READ else ()
    managed = permissions(BLUEPRINTS, configuration, PLACES[1] if use is Use.READ else None, use)
    needed = (*managed, *leases, *installation_permissions(use))
    digest = sha256(repr(sorted(map(repr, needed))).encode()).hexdigest()[:8]
    user = f"engine-{use.value}-{digest}"
    if not plane.kubeconfig(user).exists():
        grant(plane, needed, Account(SYSTEM, user), user)
    return user


def _leases() -> Iterator[Permission]:
    for place in PLACES:
        yield from (each for each in permissions((), Configuration({}, ""), place) if each.kind == kinds.LEASE)


def grant(plane: ControlPlane, needed: Iterable[Permission], account: Account = Account(SYSTEM), user: str = OPERATOR) -> None:  # noqa: B008
    """Create the account with roles that allow exactly that, and leave its kubeconfig under the name `user`."""
    allowed = tuple(needed)
    create(plane, kinds.NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": account.namespace}})
    for body in account_objects(account, allowed):
        create(plane, KINDS[body["kind"]], _renamed(body, account))
    for body in public_objects():
        create(plane, KINDS[body["kind"]], body)
    for permission in {each.namespace: each for each in allowed}.values():
        _wait_until_allowed(plane, permission, account)
    write_secret(plane.kubeconfig(user), json.dumps(kubeconfig(plane, user, token(plane, account)), indent=1))


def grant_everything(plane: ControlPlane, user: str) -> None:
    """Create an account that may do everything, for operators whose needs are not known, and leave its kubeconfig under its name."""
    account = Account(SYSTEM, user)
    create(plane, kinds.NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    metadata = {"name": user, "namespace": SYSTEM}
    create(plane, kinds.SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    subject = {"kind": "ServiceAccount", **metadata}
    binding = {
        "apiVersion": CLUSTER_ROLE_BINDING.api_version,
        "kind": CLUSTER_ROLE_BINDING.name,
        "metadata": {"name": user},
        "roleRef": {"apiGroup": CLUSTER_ROLE_BINDING.group, "kind": CLUSTER_ROLE.name, "name": "cluster-admin"},
        "subjects": [subject],
    }
    create(plane, CLUSTER_ROLE_BINDING, binding)
    write_secret(plane.kubeconfig(user), json.dumps(kubeconfig(plane, user, token(plane, account)), indent=1))


def _renamed(body: dict[str, Any], account: Account) -> dict[str, Any]:
    """A role or a binding under a name of its own for each account."""
    if body["kind"] == kinds.SERVICE_ACCOUNT.name:
        return body
    name = f"{body['metadata']['name']}:{account.name}"
    reference = {"roleRef": {**body["roleRef"], "name": name}} if "roleRef" in body else {}
    return {**body, "metadata": {**body["metadata"], "name": name}, **reference}


def _wait_until_allowed(plane: ControlPlane, permission: Permission, account: Account) -> None:
    """The server takes a moment to know a new role."""
    attributes = {
        "verb": permission.verbs[-1],
        "group": permission.kind.group,
        "resource": permission.kind.plural,
        "subresource": permission.subresource,
        "namespace": permission.namespace,
        "name": permission.names[0] if permission.names else "",
    }
    spec = {"user": account.user, "groups": [f"system:serviceaccounts:{account.namespace}"], "resourceAttributes": attributes}
    review = {"apiVersion": ACCESS_REVIEW.api_version, "kind": ACCESS_REVIEW.name, "spec": spec}
    path = collection(ACCESS_REVIEW, "")
    until(lambda: json.loads(plane.call(path, review)[1])["status"]["allowed"], lambda: f"{account.user} is not allowed {attributes}")


def token(plane: ControlPlane, account: Account) -> str:
    """A token of the account from the API server (TokenRequest), valid for a day."""
    path = f"/api/v1/namespaces/{account.namespace}/serviceaccounts/{account.name}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": TOKEN_SECONDS}}
    code, answer = plane.call(path, request)
    assert code == 201, answer
    return str(json.loads(answer)["status"]["token"])


def create(plane: ControlPlane, kind: Kind, body: dict[str, Any]) -> None:
    """Create an object as the administrator; one that exists stays as it is."""
    code, answer = plane.call(collection(kind, body["metadata"].get("namespace", "")), body)
    assert code in (201, 409), answer


def collection(kind: Kind, namespace: str) -> str:
    """The path of the objects of a kind."""
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/{namespace}/{kind.plural}" if kind.namespaced and namespace else f"{root}/{kind.plural}"
