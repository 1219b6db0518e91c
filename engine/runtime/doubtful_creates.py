"""Doubtful creates: what has become of a create whose answer does not say it."""

from collections.abc import Mapping

from engine.errors import AlreadyExists, ClusterError, Forbidden
from engine.ids import ResourceId
from engine.observed import Live
from engine.operation import BoundOwner, Creation, Outcome, Result, Unknown, is_shared
from engine.runtime.provider import Provider


async def result_of_create(
    operation: Creation, uids: Mapping[ResourceId, str], provider: Provider, error: ClusterError, *, otherwise: Outcome
) -> Result:
    """The result of a create that did not plainly succeed, judged by the object that has the name now.

    DONE if it is the object that we meant to create: an earlier answer was lost. CONFLICT with the existing object if the name is
    taken. `otherwise` if there is no such object. `uids`: those of the objects that the same plan has created.
    """
    try:
        existing = await provider.get(operation.id)
    except Forbidden as forbidden:
        return Result(operation, Outcome.FAILED, error=Forbidden(f"{error}; who has the name is not known: {forbidden}"))
    except ClusterError:
        return Result(operation, Outcome.FAILED, error=error)
    if existing is None:
        return Result(operation, otherwise, error=error)
    if _is_the_intended_object(existing, operation, uids):
        return Result(operation, Outcome.DONE, uid=existing.uid)
    conflict = AlreadyExists(f"{operation.id} {_status_of(existing)}")
    # An object that roots share is created by whichever root comes first; the others join it in their next pass.
    return Result(operation, Outcome.CONFLICT, None if is_shared(operation) else existing, conflict)


def _is_the_intended_object(existing: Live, operation: Creation, uids: Mapping[ResourceId, str]) -> bool:
    """Whether the object is not being deleted and has every owner and label that the operation sets."""
    owners = {(_uid(reference, uids), reference.owner.controller) for reference in operation.owners}
    labels = operation.manifest.get("metadata", {}).get("labels", {})
    return (
        existing.deleting_since is None
        and owners <= {(owner.uid, owner.controller) for owner in existing.owners}
        and labels.items() <= existing.labels.items()
    )


def _uid(reference: BoundOwner, uids: Mapping[ResourceId, str]) -> str | None:
    """The uid of an owner; None if the same plan creates it and has not yet."""
    return uids.get(reference.uid.id) if isinstance(reference.uid, Unknown) else reference.uid


def _status_of(existing: Live) -> str:
    """Who has the name, as the end of a message."""
    if existing.deleting_since is not None:
        return "is still being deleted"
    if owner := existing.controller:
        return f"exists and belongs to {owner.kind}/{owner.name}"
    return "exists and is not ours"
