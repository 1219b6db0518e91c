"""Approval: the roots as they were, the operations that may be made, and how objects may look."""

from collections.abc import Mapping

from msgspec import Struct, field

from engine.approval.recognition import ObjectKey
from engine.ids import ResourceId
from engine.observed import Live
from engine.record import Removal
from engine.resource import Body
from engine.verb import Verb


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

    def subject(self, id: ResourceId) -> ObjectKey:
        """What an object among the operations is to this approval."""
        return self.pods.get(id) or ObjectKey(*id)


def root_state(root: Live) -> RootState:
    """A root as it is; one that exists as a manifest only has no uid."""
    if not root.uid:
        return RootState(root.id)
    is_deleting = root.deleting_since is not None
    return RootState(root.id, root.uid, root.generation, root.revision, root.body.get("spec"), is_deleting)
