"""Identity: the ServiceAccount, role and token with which pods of a set watch the pods that they start after.

What names the account exists for the set's own one only: a token Secret for the account of others would be a lasting token of theirs.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from engine.ids import Owner, ResourceId
from engine.observed import Live, Observed
from engine.plan import Alarm
from engine.reason import Reason
from engine.resource import Drop, Hold, Policy, Resource, Want, held
from resources.base import kinds, labels, names
from resources.base.fields import annotations_of, manifest, mapping, mappings, omitted_fields
from resources.lifecycle.startup import is_filled
from resources.model.template import Template
from resources.status.podcliqueset import ACCOUNT_CONFLICT

RULES = [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}]

ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
"""The annotation with which Kubernetes says on a token Secret which account the token is of."""


def service_account(template: Template, lives: Mapping[ResourceId, Live]) -> Iterator[Want]:
    """The ServiceAccount of the set's pods."""
    root, namespace = template.id.name, template.id.namespace
    name = names.service_account(root)
    own_labels = labels.child(root, "pod-service-account", name)
    body = manifest(kinds.SERVICE_ACCOUNT, namespace, name, own_labels, automountServiceAccountToken=True)
    policy = Policy(omitted=omitted_fields(kinds.SERVICE_ACCOUNT))
    yield Want(kinds.SERVICE_ACCOUNT.id(namespace, name), "ServiceAccount of the set's pods", _owners(template), body=body, policy=policy)


def role(template: Template, lives: Mapping[ResourceId, Live]) -> Iterator[Want]:
    """The Role that lets the set's pods watch each other."""
    root, namespace = template.id.name, template.id.namespace
    name = names.role(root)
    body = manifest(kinds.ROLE, namespace, name, labels.child(root, "pod-role", name.replace(":", "-")), rules=RULES)
    yield Want(kinds.ROLE.id(namespace, name), "allows the set's pods to watch each other", _owners(template), body=body)


def role_binding(template: Template, lives: Mapping[ResourceId, Live]) -> Iterator[Want]:
    """Grants the Role to the ServiceAccount."""
    root, namespace = template.id.name, template.id.namespace
    name = names.role(root)
    account = {"kind": "ServiceAccount", "name": names.service_account(root), "namespace": namespace}
    role = {"apiGroup": kinds.ROLE.group, "kind": kinds.ROLE.name, "name": name}
    own_labels = labels.child(root, "pod-role-binding", name.replace(":", "-"))
    body = manifest(kinds.ROLE_BINDING, namespace, name, own_labels, roleRef=role, subjects=[account])
    yield Want(
        kinds.ROLE_BINDING.id(namespace, name),
        "grants the Role to the ServiceAccount",
        _owners(template),
        body=body,
        after=frozenset({kinds.ROLE.id(namespace, name), kinds.SERVICE_ACCOUNT.id(namespace, names.service_account(root))}),
        policy=Policy(immutable=(("roleRef",),), omitted=omitted_fields(kinds.ROLE_BINDING)),
    )


def token_secret(template: Template, lives: Mapping[ResourceId, Live]) -> Iterator[Want]:
    """The token of the ServiceAccount."""
    root, namespace = template.id.name, template.id.namespace
    name = names.token_secret(root)
    account = names.service_account(root)
    body = manifest(
        kinds.SECRET,
        namespace,
        name,
        labels.child(root, "pod-sa-token-secret", name),
        annotations={"kubernetes.io/service-account.name": account},
        type="kubernetes.io/service-account-token",
    )
    yield Want(
        kinds.SECRET.id(namespace, name),
        "token of the ServiceAccount",
        _owners(template),
        body=body,
        after=frozenset({kinds.SERVICE_ACCOUNT.id(namespace, account)}),
        policy=Policy(immutable=(("type",),), omitted=omitted_fields(kinds.SECRET)),
    )


def _owners(template: Template) -> tuple[Owner, ...]:
    return (Owner(template.id, kinds.PODCLIQUESET.api_version),)


def _account_id(template: Template) -> ResourceId:
    return kinds.SERVICE_ACCOUNT.id(template.id.namespace, names.service_account(template.id.name))


def foreign_account(observed: Observed, template: Template) -> Live | None:
    """The ServiceAccount that has the name of the set's own one and that the set does not control; None if there is none."""
    return observed.foreign.get(_account_id(template)) if observed.foreign else None


def account_conflict(observed: Observed, template: Template) -> str:
    """What is wrong with the account of others that has the name of the set's own one, and the way out; empty if nothing is."""
    account = foreign_account(observed, template)
    if account is None or account.deleting_since is not None:
        return ""
    name, root = account.id.name, template.id.name
    return (
        f"ServiceAccount {name} is not controlled by PodCliqueSet {root}: no token and no rights are given for it, and pods that start "
        f"after others are not created; create the set under another name, or delete the account if nothing uses it"
    )


def conflict_alarms(conflict: str) -> Iterator[Alarm]:
    """The alarm of a set with this conflict (`account_conflict`); none if it is empty."""
    if conflict:
        yield Alarm(ACCOUNT_CONFLICT, conflict, blocking=True)


def former_token_id(template: Template) -> ResourceId:
    """The token Secret under the name that it had in earlier releases of Grove."""
    return kinds.SECRET.id(template.id.namespace, names.former_token_secret(template.id.name))


def former_token(template: Template, lives: Mapping[ResourceId, Live], *, is_mounted: bool) -> Iterator[Want | Drop]:
    """That Secret, where it exists: it stays while a pod mounts it, because the kubelet restarts no container without it (M23)."""
    id = former_token_id(template)
    if id not in lives:
        return
    if is_mounted:
        body = manifest(kinds.SECRET, id.namespace, id.name, labels.default(template.id.name))
        yield Want(id, "pods mount it", _owners(template), body=body)
    else:
        yield Drop(id, "an earlier release of Grove has made it, and no pod mounts it", reason=Reason.ORPHANED)


def mounts_secret(observed: Observed, name: str) -> bool:
    """Whether a pod of the set mounts the Secret of that name."""
    pods = (pod for part in observed.slices.values() for pod in part.of(kinds.POD.name))
    volumes = (volume for pod in pods for volume in mappings(mapping(pod.body.get("spec")).get("volumes")))
    return any(mapping(volume.get("secret")).get("secretName") == name for volume in volumes)


def for_own_account(
    resources: Iterable[Resource], template: Template, lives: Mapping[ResourceId, Live], foreign: Live | None, *, is_mounted: bool
) -> Iterator[Resource]:
    """The shared objects of a set; without those that name the account while `foreign`, an account of others, has its name.

    Those that exist are deleted, since they are of use for the other account alone, unless a pod mounts the token (`is_mounted`).
    """
    namespace, root = template.id.namespace, template.id.name
    dependents = (kinds.SECRET.id(namespace, names.token_secret(root)), kinds.ROLE_BINDING.id(namespace, names.role(root)))
    for resource in resources:
        if foreign is None or resource.id not in dependents or not isinstance(resource, Want | Hold):
            yield resource
            continue
        why = f"ServiceAccount {foreign.id.name} is not controlled by PodCliqueSet {root}"
        if resource.id not in lives or is_mounted:
            stays = "; it stays, because pods mount the token" if resource.id in lives else ""
            yield held(resource, f"{why}{stays}", blocked=foreign.deleting_since is None)
        else:
            yield Drop(resource.id, why, resource.owners, resource.after, resource.policy, Reason.ORPHANED)


def has_own_token(template: Template, lives: Mapping[ResourceId, Live]) -> bool:
    """Whether the token Secret contains a token of the account that the set controls. `lives` are the shared objects of the set."""
    account = lives.get(_account_id(template))
    secret = lives.get(kinds.SECRET.id(template.id.namespace, names.token_secret(template.id.name)))
    if account is None or secret is None or not is_filled(secret):
        return False
    return bool(annotations_of(secret.body).get(ACCOUNT_UID, account.uid) == account.uid)
