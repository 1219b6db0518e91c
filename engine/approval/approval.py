"""Approval: the roots as they were, the operations that may be made, how objects may look, and how they are found again later."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from engine.canonical import digest
from engine.ids import ResourceId
from engine.intent import Removal
from engine.observed import Live
from engine.resource import Body
from engine.scalers import Scaler
from engine.verb import Verb


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


class RootState(Struct, frozen=True):
    """A root as it was when the plan was made."""

    id: ResourceId
    uid: str = ""
    """Empty: it did not exist."""
    generation: int = 0
    revision: str = ""
    spec: Body | None = None
    """None: it did not exist, or has none."""
    is_deleting: bool = False


class Allowance(Struct, frozen=True):
    """An operation that was forecast."""

    verb: Verb
    subject: ObjectKey
    uid: str
    """The uid of the object when the plan was made; empty if it did not exist, or if the index of a clique stands for it."""
    revision: str
    times: int
    """How often it was forecast."""


class Approval(Struct, frozen=True, eq=False):
    """What was approved, and nothing else."""

    roots: tuple[RootState, ...]
    allow: tuple[Allowance, ...]
    """Every operation that was forecast, statuses apart."""
    desired: Mapping[str, frozenset[str]]
    """Text of an object key -> the digests of the manifests that it may be made to match."""
    manifests: tuple[Body, ...] = ()
    """The manifests that are applied first."""
    removals: Mapping[ResourceId, Removal] = field(default_factory=dict)
    """The roots that are removed, and why."""
    pods: Mapping[ResourceId, ObjectKey] = field(default_factory=dict)
    """Each object of the operations for which an index stands, with that index."""
    scalers: tuple[Scaler, ...] = ()
    """What is asked of scalers (`Intent.replicas`), with the number that each had."""

    def subject(self, id: ResourceId) -> ObjectKey:
        """What an object among the operations is to this approval."""
        return self.pods.get(id) or ObjectKey(*id)


def root_state(root: Live) -> RootState:
    """A root as it is; one that exists as a manifest only has no uid."""
    if not root.uid:
        return RootState(root.id)
    is_deleting = root.deleting_since is not None
    return RootState(root.id, root.uid, root.generation, root.revision, root.body.get("spec"), is_deleting)


class Deviation(Struct, frozen=True):
    """What differs, how it was when the plan was approved, and how it is."""

    about: str
    """An object, or what else is compared, e.g. `the cluster`."""
    then: str
    now: str

    def __str__(self) -> str:
        """`ABOUT: then THEN, now NOW`."""
        return f"{self.about}: then {self.then}, now {self.now}"


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
