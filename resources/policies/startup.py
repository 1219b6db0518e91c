"""Start order: which cliques a clique starts after, and the init container in which its pods wait for them.

The waiting is done in the pods, by a container that counts ready pods of its own gang. Nothing here waits but for the token that this
container needs, and only pods that have one are held back for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.ids import ResourceId
from engine.observed import Live
from resources.base import kinds, labels, names
from resources.model.template import Clique
from resources.model.view import CliqueView, GroupView, View

WAITER = "grove-initc"
"""The name of the container that waits."""
POD_INFO, TOKEN = "pod-info-vol", "sa-token-secret-vol"
POD_INFO_PATH = "/var/grove/pod-info"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, slots=True)
class Parent:
    """A clique that must be up before another starts."""

    name: str
    """Its full name."""
    minimum: int
    """How many of its pods must be ready."""


def parents(view: View, clique: CliqueView) -> tuple[Parent, ...]:
    """Those that a clique starts after: all that its gang needs of them.

    In the base gang that is every replica of theirs up to the minimum of their scaling group, whichever replica asks. A scaled gang sees
    nothing but itself, so what is outside of it is not waited for.
    """
    return tuple(parent for name in clique.clique.starts_after for parent in _expanded(view, clique, name))


def _expanded(view: View, clique: CliqueView, name: str) -> Iterator[Parent]:
    parent = next(one for one in view.template.cliques if one.name == name)
    group = next((one for one in view.groups if parent in one.group.cliques), None)
    if clique.base_gang:
        if group is not None and group is clique.group:
            yield _member(group, clique.group_replica, parent)
    elif group is not None:
        yield from (_member(group, replica, parent) for replica in range(group.group.min_available))
    else:
        yield Parent(names.podclique(view.root, view.index, parent.name), parent.min_available)


def _member(group: GroupView, replica: int, parent: Clique) -> Parent:
    return Parent(names.member(group.name, replica, parent.name), parent.min_available)


def with_waiter(view: View, spec: Mapping[str, Any], after: Sequence[Parent]) -> dict[str, Any]:
    """The pod spec with the container that waits for those parents: the last one before the pod's own containers start."""
    return {
        **spec,
        "volumes": [*(spec.get("volumes") or ()), *_volumes(view.root)],
        "initContainers": [*(spec.get("initContainers") or ()), _waiter(view.configuration.waiter, after)],
    }


def _waiter(image: str, after: Sequence[Parent]) -> dict[str, Any]:
    return {
        "name": WAITER,
        "image": image,
        "args": [f"--podcliques={parent.name}:{parent.minimum}" for parent in after],
        "volumeMounts": [
            {"name": POD_INFO, "mountPath": POD_INFO_PATH, "readOnly": True},
            {"name": TOKEN, "mountPath": TOKEN_PATH, "readOnly": True},
        ],
    }


def _volumes(root: str) -> list[dict[str, Any]]:
    fields = {"namespace": "metadata.namespace", "podgangname": f"metadata.labels['{labels.PODGANG}']"}
    items = [{"path": path, "fieldRef": {"fieldPath": field}} for path, field in fields.items()]
    return [
        {"name": TOKEN, "secret": {"secretName": names.token_secret(root), "defaultMode": 0o644}},
        {"name": POD_INFO, "downwardAPI": {"items": items}},
    ]


def identity(view: View) -> frozenset[ResourceId]:
    """What must be there before a pod that waits: its token, and the right to see the others."""
    secret = kinds.SECRET.id(view.namespace, names.token_secret(view.root))
    return frozenset({secret, kinds.ROLE_BINDING.id(view.namespace, names.role(view.root))})


def is_filled(secret: Live | None) -> bool:
    """Whether a token Secret is there to stay and holds its token: a pod that mounts an empty one would never see anybody."""
    return secret is not None and secret.deleting_since is None and bool((secret.body.get("data") or {}).get("token"))


def why_held(view: View, clique: CliqueView, after: Sequence[Parent]) -> str:
    """Why a pod that waits is not made yet."""
    others = ", ".join(parent.name for parent in after)
    return f"{clique.name} starts after {others}, which it cannot see until Secret {names.token_secret(view.root)} holds its token"
