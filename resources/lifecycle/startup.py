"""Start order: which cliques a clique starts after, and the init container with which its pods wait for them.

The pods wait by themselves: the init container counts the ready pods of its own gang. The engine defers only the creation of pods with such
a container, until the token that the container needs exists.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from engine.ids import ResourceId
from engine.observed import Live
from resources.base import kinds, labels, names
from resources.base.added_to_pods import NON_ROOT, RESTRICTED
from resources.base.fields import mapping
from resources.base.names import POD_INFO, TOKEN, WAITER
from resources.model.template import Clique
from resources.model.view import CliqueView, GroupView, View

POD_INFO_PATH = "/var/grove/pod-info"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
READABLE: Final = 0o644
"""The mode of the mounted files. They belong to root, and the user's pod gets no fsGroup for them: any user may read them."""


class Parent(Struct, frozen=True):
    """A clique that must be ready before another one starts."""

    name: str
    """The name of its PodClique."""
    minimum: int
    """How many of its pods must be ready."""


def parents(view: View, clique: CliqueView) -> tuple[Parent, ...]:
    """The PodCliques that a clique starts after.

    In the base gang, a parent in a scaling group stands for each replica that the group has in that gang. In a scaled gang only parents of
    the same group replica count: its pods see no pods of other gangs.
    """
    return tuple(parent for name in clique.clique.starts_after for parent in _parents_of_name(view, clique, name))


def _parents_of_name(view: View, clique: CliqueView, name: str) -> Iterator[Parent]:
    parent = next(template for template in view.template.cliques if template.name == name)
    group = next((group for group in view.groups if parent in group.group.cliques), None)
    if clique.base_gang:
        if group is not None and group is clique.group:
            yield _member(group, clique.group_replica, parent)
    elif group is not None:
        yield from (_member(group, replica, parent) for replica in range(group.in_base_gang))
    else:
        yield Parent(names.podclique(view.root, view.index, parent.name), parent.min_available)


def _member(group: GroupView, replica: int, parent: Clique) -> Parent:
    return Parent(names.member(group.name, replica, parent.name), parent.min_available)


def with_waiter(view: View, spec: Mapping[str, Any], parents: Sequence[Parent]) -> dict[str, Any]:
    """The pod spec with the init container that waits for these parents. It is the last init container."""
    return {
        **spec,
        "volumes": [*(spec.get("volumes") or ()), *_volumes(view.root)],
        "initContainers": [*(spec.get("initContainers") or ()), _waiter(view.configuration.waiter_image, parents, spec)],
    }


def _waiter(image: str, parents: Sequence[Parent], spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": WAITER,
        "image": image,
        "args": [f"--podcliques={parent.name}:{parent.minimum}" for parent in parents],
        "volumeMounts": [
            {"name": POD_INFO, "mountPath": POD_INFO_PATH, "readOnly": True},
            {"name": TOKEN, "mountPath": TOKEN_PATH, "readOnly": True},
        ],
        "securityContext": _security(spec),
    }


def _security(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The security context of the init container in a pod with that spec.

    Where the pod itself says that its containers run as root, so does this one: the kubelet would start none that is to be root and not.
    """
    is_root = mapping(spec.get("securityContext")).get("runAsUser") == 0
    is_windows = mapping(spec.get("os")).get("name") == "windows"
    return {**({} if is_windows else RESTRICTED), **({} if is_root else NON_ROOT)}


def _volumes(root: str) -> list[dict[str, Any]]:
    fields = {"namespace": "metadata.namespace", "podgangname": f"metadata.labels['{labels.PODGANG}']"}
    items = [{"path": path, "fieldRef": {"fieldPath": field}} for path, field in fields.items()]
    return [
        {"name": TOKEN, "secret": {"secretName": names.token_secret(root), "defaultMode": READABLE}},
        {"name": POD_INFO, "downwardAPI": {"items": items, "defaultMode": READABLE}},
    ]


def identity(view: View) -> frozenset[ResourceId]:
    """The objects that must exist before a pod with the init container: the token Secret and the RoleBinding."""
    secret = kinds.SECRET.id(view.namespace, names.token_secret(view.root))
    return frozenset({secret, kinds.ROLE_BINDING.id(view.namespace, names.role(view.root))})


def is_filled(secret: Live | None) -> bool:
    """Whether a token Secret exists, is not being deleted and contains a token. With an empty one the init container never ends."""
    return secret is not None and secret.deleting_since is None and bool((secret.body.get("data") or {}).get("token"))


def why_deferred(view: View, clique: CliqueView, parents: Sequence[Parent]) -> str:
    """Why a pod with the init container is not created yet: its token Secret is empty."""
    listed = ", ".join(parent.name for parent in parents)
    return f"{clique.name} starts after {listed}; Secret {names.token_secret(view.root)} does not contain the token to watch them yet"
