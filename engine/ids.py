"""Kinds, identities and owner references of objects."""

from typing import Final, NamedTuple

from msgspec import Struct


class Kind(Struct, frozen=True):
    """One kind that an API server serves: everything needed to build its URL and its `apiVersion`."""

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool = True
    status: bool = False
    """Whether it has a status subresource: then the status is written by a separate call."""
    ambiguous: bool = False
    """Whether another kind that the engine works with has the same name: two schedulers have a PodGroup."""
    newer: tuple[str, ...] = ()
    """Newer versions in which its objects are read and written where a server does not serve `version`."""

    @property
    def key(self) -> str:
        """The key of the kind in maps and sets of kinds: its name or, if another kind has the same name, `name.group`."""
        return f"{self.name}.{self.group}" if self.ambiguous else self.name

    @property
    def api_version(self) -> str:
        """`v1` for the core group, `group/version` elsewhere."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def id(self, namespace: str, name: str) -> "ResourceId":
        """The identity of the object of this kind with that name; a cluster-scoped kind drops the namespace."""
        return ResourceId(self.group, self.name, namespace if self.namespaced else "", name)


NAMESPACE: Final = Kind("", "v1", "Namespace", "namespaces", namespaced=False, status=True)
"""The kind of what every namespaced object is in."""
RESOURCE_QUOTA: Final = Kind("", "v1", "ResourceQuota", "resourcequotas", status=True)
"""The kind of what limits the objects in a namespace."""


class ResourceId(NamedTuple):
    """The identity of an object; version and plural are in `Kind`. A tuple, so that hashing and ordering run at C speed."""

    group: str
    kind: str
    namespace: str
    name: str

    def keys(self) -> frozenset[str]:
        """What `Kind.key` of its kind may be."""
        return frozenset((self.kind, f"{self.kind}.{self.group}"))

    def __str__(self) -> str:
        """`Kind/namespace/name`, without the namespace for cluster-scoped kinds."""
        return f"{self.kind}/{self.namespace}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"


class Owner(Struct, frozen=True):
    """A desired owner reference, without the uid: the planner takes it from the live owner, or from the create call of the same plan."""

    id: ResourceId
    api_version: str
    controller: bool = True


class OwnerRef(Struct, frozen=True):
    """An owner reference of a live object, as found in `metadata.ownerReferences`."""

    kind: str
    name: str
    uid: str
    controller: bool = False
