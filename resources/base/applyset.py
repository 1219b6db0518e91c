"""ApplySet: the labels and annotations by which tools mark the objects that they apply together, as KEP-3659 defines them.

An ApplySet has a parent, whose annotations say where its members may be. Members bear its id in a label.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from engine.ids import ResourceId
from engine.intent import Record
from engine.observed import Live
from engine.report.printable import clipped
from engine.resource import Body
from engine.version import VERSION
from resources.base import kinds
from resources.base.fields import mapping

ID: Final = "applyset.kubernetes.io/id"
"""The label of a parent."""
PART_OF: Final = "applyset.kubernetes.io/part-of"
"""The label of a member. Its value is the id of the ApplySet."""
TOOLING: Final = "applyset.kubernetes.io/tooling"
"""The annotation of a parent that names the tool which manages it, and its version."""
GROUP_KINDS: Final = "applyset.kubernetes.io/contains-group-kinds"
"""The annotation of a parent that names the kinds of its members."""
NAMESPACES: Final = "applyset.kubernetes.io/additional-namespaces"
"""The annotation of a parent that names the namespaces of its members, without its own."""

TOOL: Final = "grove-engine"
"""Our name in the annotation `TOOLING`. Only parents with this name are ours."""
PARENTS: Final = (kinds.CONFIG_MAP, kinds.SECRET)
"""The kinds that a parent may have; the first is the default."""


class Extent(Struct, frozen=True):
    """Where the members of an ApplySet may be."""

    group_kinds: frozenset[str] = frozenset()
    """Their kinds, as `Kind.group`."""
    namespaces: frozenset[str] = frozenset()
    """The namespaces besides that of the parent."""

    def union(self, other: "Extent") -> "Extent":
        """What either of them has."""
        return Extent(self.group_kinds | other.group_kinds, self.namespaces | other.namespaces)


NOWHERE: Final = Extent()


def applyset_id(parent: ResourceId) -> str:
    """The id of the ApplySet with this parent, in version 1 of the format."""
    text = ".".join((parent.name, parent.namespace, parent.kind, parent.group))
    return f"applyset-{urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b'=').decode()}-v1"


def extent_of_roots(roots: Iterable[ResourceId], parent: ResourceId) -> Extent:
    """The extent of an ApplySet with these members."""
    listed = tuple(roots)
    namespaces = {id.namespace for id in listed} - {"", parent.namespace}
    return Extent(frozenset(group_kind(id) for id in listed), frozenset(namespaces))


def group_kind(id: ResourceId) -> str:
    """The kind of an object as `Kind.group`."""
    return f"{id.kind}.{id.group}" if id.group else id.kind


def recorded_extent(parent: Body) -> Extent:
    """What the annotations of a parent say."""
    annotations = mapping(parent["metadata"].get("annotations"))
    return Extent(_listed(annotations.get(GROUP_KINDS)), _listed(annotations.get(NAMESPACES)))


def _listed(value: Any) -> frozenset[str]:
    return frozenset(part for each in str(value or "").split(",") if (part := each.strip()))


def parent_fault(parent: Body, id: ResourceId) -> str:
    """Why an existing object cannot be the parent of an ApplySet of ours; empty if it can."""
    labels, annotations = mapping(parent["metadata"].get("labels")), mapping(parent["metadata"].get("annotations"))
    if labels.get(ID) != applyset_id(id):
        return f"{id} exists and is not the parent of an ApplySet: choose another name with --applyset"
    tooling = str(annotations.get(TOOLING) or "")
    if tooling.partition("/")[0] != TOOL:
        tool = f"is managed by {clipped(tooling, 80)}" if tooling else "names no tool"
        return f"{id} is the parent of an ApplySet that {tool}, not by {TOOL}: choose another name with --applyset"
    return ""


def parent_metadata(id: ResourceId, extent: Extent) -> dict[str, Any]:
    """The labels and annotations of the parent of an ApplySet."""
    return {
        "labels": {ID: applyset_id(id)},
        "annotations": {
            TOOLING: f"{TOOL}/v{VERSION}",
            GROUP_KINDS: ",".join(sorted(extent.group_kinds)),
            NAMESPACES: ",".join(sorted(extent.namespaces)),
        },
    }


def record_of(parent: ResourceId, existing: Live | None, needed: Extent) -> Record:
    """What is noted in the parent, as it was read: while members are written those before and after, at the end those that are `needed`.

    A parent that names what is to be named stays as it is, whichever version of the tool has written it.
    """
    recorded = recorded_extent(existing.body) if existing is not None else None
    before = _manifest(parent, _own_metadata(existing.body)) if existing is not None else None

    def saying(extent: Extent) -> Body:
        return before if before is not None and recorded == extent else _manifest(parent, parent_metadata(parent, extent))

    during = saying(recorded.union(needed) if recorded is not None else needed)
    why = f"records where the members of ApplySet {parent.name} are"
    return Record(parent, before, during, saying(needed), "applyset-parent", why)


def _manifest(parent: ResourceId, metadata: Mapping[str, Any]) -> Body:
    kind = next(kind for kind in PARENTS if kind.name == parent.kind)
    named = {"name": parent.name, "namespace": parent.namespace, **metadata}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": named}


def _own_metadata(parent: Body) -> dict[str, Any]:
    """The labels and annotations of a parent that are about the ApplySet."""
    metadata = parent["metadata"]
    labels, annotations = mapping(metadata.get("labels")), mapping(metadata.get("annotations"))
    kept = {key: annotations[key] for key in (TOOLING, GROUP_KINDS, NAMESPACES) if key in annotations}
    return {"labels": {key: value for key, value in labels.items() if key == ID}, "annotations": kept}


def with_membership(body: Body, set_id: str) -> Body:
    """The manifest of a root as a member of an ApplySet."""
    metadata: Mapping[str, Any] = body["metadata"]
    labels = metadata.get("labels")
    if labels is not None and not isinstance(labels, Mapping):
        return body  # The rules of admission report it.
    return {**body, "metadata": {**metadata, "labels": {**(labels or {}), PART_OF: set_id}}}
