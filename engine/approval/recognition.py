"""Recognition: what an approval must know about kinds of objects, to find in a later pass what was approved in an earlier one."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from engine.canonical import digest
from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import Body


class ObjectKey(Struct, frozen=True, order=True):
    """What an operation is about, whatever uids there are: an object or, as the names of pods depend on uids, an index of a clique."""

    group: str
    kind: str
    namespace: str
    name: str
    """The name of the object; with an index that of the clique."""
    index: str = ""
    """The index of the pod in its clique; empty for other objects."""

    def __str__(self) -> str:
        """`Kind/namespace/name`; for a pod with an index `Pod 0 of namespace/clique`."""
        if self.index:
            return f"{self.kind} {self.index} of {self.namespace}/{self.name}"
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)

    @property
    def text(self) -> str:
        """The subject as one word, unique among all subjects."""
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind}/{self.namespace}/{self.name}{f'[{self.index}]' if self.index else ''}"


class Recognition(Protocol):
    """The kinds of objects, as approvals need to know them."""

    def subject(self, id: ResourceId, labels: Mapping[str, Any]) -> ObjectKey:
        """What an object with these labels is to an approval."""
        ...

    def essence(self, body: Body) -> Body:
        """A manifest without what depends on uids, or on how far the cluster has got."""
        ...

    def is_replaceable(self, live: Live) -> bool:
        """Whether the object is one of many alike, which is created anew whenever it is lost: a pod."""
        ...

    def has_ended(self, live: Live) -> bool:
        """Whether the object has done its work and only waits to be replaced: a pod that has failed or completed."""
        ...


def content_digest(recognition: Recognition, body: Body) -> str:
    """The digest of a manifest without uids."""
    return digest(recognition.essence(body))
