"""Identity: the ServiceAccount, role and token with which pods of a set watch the pods that they start after."""

from collections.abc import Iterator, Mapping

from engine.ids import Owner, ResourceId
from engine.observed import Live
from engine.resource import Policy, Want
from resources.base import kinds, labels, names
from resources.base.fields import manifest, omitted_fields
from resources.model.template import Template

RULES = [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}]


def service_account(template: Template, lives: Mapping[ResourceId, Live]) -> Iterator[Want]:
    """The ServiceAccount of the set's pods."""
    root, namespace = template.id.name, template.id.namespace
    name = names.service_account(root)
    body = manifest(
        kinds.SERVICE_ACCOUNT,
        namespace,
        name,
        labels.child(root, "pod-service-account", name),
        automountServiceAccountToken=True,
    )
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
    body = manifest(
        kinds.ROLE_BINDING,
        namespace,
        name,
        labels.child(root, "pod-role-binding", name.replace(":", "-")),
        roleRef={"apiGroup": kinds.ROLE.group, "kind": kinds.ROLE.name, "name": name},
        subjects=[account],
    )
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
