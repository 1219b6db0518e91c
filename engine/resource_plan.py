"""Resource plan: what to do about one resource and its live object: at most a few calls, or a wait."""

from collections.abc import Iterable, Sequence
from functools import partial

from engine.diff import Difference, Rules, compare, compare_status, is_labelled, touches
from engine.ids import ResourceId
from engine.observed import Live
from engine.operation import (
    BoundOwner,
    Cause,
    Change,
    Create,
    Delete,
    Expect,
    Operation,
    Patch,
    Release,
    Replace,
    Scale,
    WriteStatus,
    owner_reference,
)
from engine.ownership import scaled_by_us
from engine.part_context import PartContext
from engine.plan import Wait
from engine.reason import BLOCKERS, Reason
from engine.resource import PLAIN, REPLICAS, Body, Drop, Hold, Policy, Resource, Scaled, Want

Action = Operation | Wait
"""What to do about one object: a call, or a reason not to make it now."""

LABELS_RESTORED = "its labels were removed or changed: they are restored"

COLLECTED = frozenset({"foregroundDeletion", "orphan"})
"""The finalizers that Kubernetes' garbage collector removes, from objects of any kind."""


def actions_on(resource: Resource, live: Live | None, context: PartContext) -> Iterable[Action]:
    """What to do about one resource; `live` is its object, None if it does not exist."""
    if isinstance(resource, Hold):
        return (Wait(resource.id, resource.why, blocked=resource.blocked, reason=resource.reason if resource.reason in BLOCKERS else None),)
    if isinstance(resource, Scaled):
        return _scale(resource, live, context)
    if not context.incomplete.isdisjoint(resource.id.keys()):
        return (not_listed(resource.id),)
    if live is None:
        return _create(resource, context) if isinstance(resource, Want) else ()
    unlisted = context.unlisted(resource.id)
    if isinstance(resource, Drop):
        if unlisted:
            why = f"is deleted once {unlisted} objects can be listed completely"
            return (Wait(resource.id, why, blocked=True, reason=Reason.NOT_LISTED),)
        return _drop(resource, live, context)
    is_terminating = live.deleting_since is not None and live.id != context.root.id
    if is_terminating and not resource.policy.until_gone:
        return (_terminating(resource, live),)
    operations = _update(resource, live, context)
    if operations and unlisted:
        why = f"is changed once {unlisted} objects can be listed completely"
        return (Wait(resource.id, why, blocked=True, reason=Reason.NOT_LISTED),)
    return operations


def _terminating(resource: Want, live: Live) -> Wait:
    """What is said of an object that is needed and is being deleted: it is blocked while finalizers of others keep it."""
    return kept(live, resource.policy) or Wait(
        resource.id, "is being deleted; it is created again once it is gone", reason=Reason.TERMINATING
    )


def kept(live: Live, policy: Policy) -> Wait | None:
    """What is said of an object that is being deleted and that finalizers of others keep; None if none do."""
    kept_by = keepers(live, policy)
    if not kept_by:
        return None
    keep = f"finalizer {kept_by[0]} keeps" if len(kept_by) == 1 else f"finalizers {', '.join(kept_by)} keep"
    why = f"is being deleted, and {keep} it; do: end what uses it, or repair the controller that has to remove the finalizer"
    return Wait(live.id, why, blocked=True, reason=Reason.KEPT)


def keepers(live: Live, policy: Policy) -> tuple[str, ...]:
    """The finalizers of an object that neither the engine nor the garbage collector removes.

    None where ours are released last: then it is known who removes the others. None while a pod has time left to end.
    """
    if policy.release_last:
        return ()
    others = tuple(each for each in live.finalizers if each not in policy.finalizers and each not in COLLECTED)
    # Few objects have any: of all others the body is not parsed.
    return others if others and not live.body["metadata"].get("deletionGracePeriodSeconds") else ()


def _create(resource: Want, context: PartContext) -> tuple[Action, ...]:
    """Create the object, or wait because the cluster does not serve its kind, or because a foreign object has its name.

    That is blocked, unless the foreign object is being deleted and nothing keeps it. One that still has its effect, and is deleted with an
    earlier owner of the same name, is not waited for.
    """
    if context.is_unserved(resource.id):
        return (not_served(resource.id, resource.body),)
    foreign = context.foreign.get(resource.id)
    if foreign is not None:
        if resource.policy.until_gone and any(is_of_predecessor(foreign, owner.id) for owner in resource.owners):
            return ()
        if foreign.deleting_since is not None:
            return (_terminating(resource, foreign),)
        return (Wait(resource.id, _name_taken(resource, foreign, context.root), blocked=True, reason=Reason.NAME_CONFLICT),)
    owners, reason = context.bound_owners(resource), context.reason_to_create(resource)
    cause = Cause.DRIFT if reason is Reason.MISSING else Cause.INTENT
    return (Create(resource.id, resource.why, cause, manifest=resource.body, owners=owners, reason=reason, seal=resource.policy.seal),)


def is_of_predecessor(foreign: Live, owner: ResourceId) -> bool:
    """Whether a foreign object has belonged to an earlier object with the identity of this owner: the garbage collector deletes it."""
    controller = foreign.controller
    return controller is not None and (controller.kind, controller.name) == (owner.kind, owner.name)


def not_served(id: ResourceId, body: Body) -> Wait:
    """What is said of an object that cannot exist, since the cluster does not serve its kind."""
    return Wait(id, f"the cluster does not serve {id.kind} of {body['apiVersion']}", blocked=True, reason=Reason.NOT_SERVED)


def not_listed(id: ResourceId) -> Wait:
    """What is said of an object of which it is not known whether it exists."""
    return Wait(id, f"{id.kind} objects could not be listed completely", blocked=True, reason=Reason.NOT_LISTED)


def _name_taken(resource: Want, foreign: Live, root: Live) -> str:
    """The reason why an object is not created: a foreign object has its name."""
    owner = resource.owners[0].id if resource.owners else root.id
    place = f"{foreign.id.namespace}/" if foreign.id.namespace else ""
    return f"{foreign.id.kind} {place}{foreign.id.name} already exists but is not controlled by {owner.kind} {place}{owner.name}"


def _update(resource: Want, live: Live, context: PartContext) -> Sequence[Operation]:
    """At most one write: each is bound to the observed revision, so the status is written once the object itself is in sync."""
    body = live.body
    if not resource.policy.create_only:
        difference = compare(resource.body, body, Rules(resource.policy, context.absent_field(live), partial(context.absent_label, live)))
        difference.intend(path for path, _ in resource.own_reasons if is_labelled(path))
        _compare_finalizers(resource, body, difference, context)
        _compare_owners(resource, live, body, difference, context)
        if any(touches(change, resource.policy.immutable) for change in difference.changes):
            return (_replace(resource, live, difference.changes, context),)
        if difference.changes:
            why = LABELS_RESTORED if live.id in context.mislabelled else resource.why
            return (_patch(resource, live, difference, why, context),)
    if resource.status is not None:
        write = status_write(live, resource.status, resource.status_why, urgent=resource.urgent, provisional=resource.provisional)
        return (write,) if write is not None else ()
    return ()


def _scale(resource: Scaled, live: Live | None, context: PartContext) -> Sequence[Operation]:
    """Set the number of replicas of an existing object; what does not exist yet is created with it.

    It is not drift where we have set it last: then what the number follows has changed, which need not be the root.
    """
    if live is None or live.deleting_since is not None:
        return ()
    replicas = (live.body.get("spec") or {}).get("replicas")
    if replicas == resource.replicas:
        return ()
    cause = Cause.INTENT if scaled_by_us(live.body) else context.absent
    change = Change(REPLICAS, replicas, resource.replicas, cause)
    return (
        Scale(
            live.id,
            resource.why,
            change.cause,
            replicas=resource.replicas,
            changes=(change,),
            expect=Expect(live.uid, live.revision),
            controller=live.controller,
            reason=_reason_to_scale(change),
        ),
    )


def _reason_to_scale(change: Change) -> Reason:
    """Why the number of replicas is set: another writer changed it, or more or fewer are specified."""
    if change.cause is Cause.DRIFT:
        return Reason.DRIFTED
    return Reason.SCALED_OUT if (change.old or 0) < change.new else Reason.SCALED_IN


def _compare_finalizers(resource: Want, body: Body, difference: Difference, context: PartContext) -> None:
    """Add our missing finalizers to the difference; finalizers of others stay."""
    finalizers = body["metadata"].get("finalizers") or []
    missing = [finalizer for finalizer in resource.policy.finalizers if finalizer not in finalizers]
    if missing:
        difference.add(("metadata", "finalizers"), finalizers or None, [*finalizers, *missing], context.absent)


def _compare_owners(resource: Want, live: Live, body: Body, difference: Difference, context: PartContext) -> None:
    """Add our missing owner references to the difference; those of others stay."""
    uids = {owner.uid for owner in live.owners}
    owners = context.bound_owners(resource)
    missing = [owner_reference(owner) for owner in owners if isinstance(owner.uid, str) and owner.uid not in uids]
    if missing:
        old = list(body["metadata"].get("ownerReferences") or [])
        difference.add(("metadata", "ownerReferences"), old or None, [*old, *missing], context.absent)


def _patch(resource: Want, live: Live, difference: Difference, why: str, context: PartContext) -> Operation:
    reason = _reason_to_patch(resource, difference.changes, context)
    cause = Cause.DRIFT if reason is Reason.DRIFTED else Cause.INTENT
    return Patch(
        resource.id,
        why,
        cause,
        patch=difference.patch,
        changes=difference.changes,
        expect=Expect(live.uid, live.revision),
        controller=live.controller,
        target=resource.body,
        reason=reason,
        seal=resource.policy.seal,
    )


def _reason_to_patch(resource: Want, changes: Sequence[Change], context: PartContext) -> Reason:
    """Why an object is patched: DRIFTED if only what others did is repaired."""
    intents = [change for change in changes if change.cause is Cause.INTENT]
    if not intents:
        return Reason.DRIFTED
    if resource.id == context.root.id:
        return Reason.MANIFEST_CHANGED
    own = {_own_reason(resource, change) for change in intents}
    return own.pop() if len(own) == 1 else Reason.TEMPLATE_CHANGED


def _own_reason(resource: Want, change: Change) -> Reason:
    """The reason of a change of the desired state."""
    otherwise = _reason_to_scale(change) if change.path == REPLICAS and isinstance(change.new, int) else Reason.TEMPLATE_CHANGED
    reasons = (reason for path, reason in resource.own_reasons if change.path[: len(path)] == path)
    return next(reasons, otherwise)


def status_write(live: Live, status: Body, why: str, *, urgent: bool = False, provisional: bool = False) -> WriteStatus | None:
    """The write after which the status of an object has these fields; None if it has them already. The others: see `WriteStatus`."""
    difference = compare_status(status, live.body.get("status") or {})
    if not difference.changes:
        return None
    return WriteStatus(
        live.id,
        why,
        Cause.STATUS,
        patch=difference.patch,
        changes=difference.changes,
        expect=Expect(live.uid, live.revision),
        controller=live.controller,
        urgent=urgent,
        provisional=provisional,
        reason=Reason.STATUS_CHANGED,
    )


def _replace(resource: Want, live: Live, changes: tuple[Change, ...], context: PartContext) -> Operation:
    reason = _reason_to_patch(resource, changes, context)
    return Replace(
        resource.id,
        f"{resource.why}; the server does not allow changing it in place",
        Cause.DRIFT if reason is Reason.DRIFTED else Cause.INTENT,
        manifest=resource.body,
        owners=context.bound_owners(resource),
        changes=changes,
        expect=Expect(live.uid),
        reason=reason,
        seal=resource.policy.seal,
    )


def _drop(resource: Drop, live: Live, context: PartContext) -> Iterable[Action]:
    """Delete the object or, if it is shared and has other owners, remove our owner references only."""
    owners = context.bound_owners(resource)
    our_uids = {owner.uid for owner in owners}
    if not resource.policy.shared or all(owner.uid in our_uids for owner in live.owners):
        return _delete(resource, live, owners, is_root=live.id == context.root.id)
    old = live.body["metadata"]["ownerReferences"]
    kept = [entry for entry in old if entry["uid"] not in our_uids]
    if len(kept) == len(old):
        return ()
    difference = Difference()
    difference.add(("metadata", "ownerReferences"), old, kept, Cause.INTENT)
    return (
        Patch(
            resource.id,
            resource.why,
            Cause.INTENT,
            patch=difference.patch,
            changes=difference.changes,
            expect=Expect(live.uid, live.revision),
            controller=live.controller,
            target={},
            reason=_reason_to_remove(resource),
            seal=resource.policy.seal,
        ),
    )


def _reason_to_remove(resource: Drop) -> Reason:
    return resource.reason or (Reason.TEMPLATE_CHANGED if resource.intended else Reason.ORPHANED)


def _delete(resource: Drop, live: Live, owners: tuple[BoundOwner, ...], *, is_root: bool) -> Iterable[Action]:
    """Delete the object unless it is being deleted, then release our finalizers: at once or, with `release_last`, after all others.

    What finalizers of others keep is named, except the root itself: commands wait for that one.
    """
    if live.deleting_since is None:
        # That we are the last owner, or that the object's state calls for a delete, is only true of the observed revision.
        bind_revision = resource.policy.shared or resource.bind_revision
        yield Delete(
            resource.id,
            resource.why,
            Cause.INTENT if resource.intended else Cause.DRIFT,
            expect=Expect(live.uid, live.revision if bind_revision else ""),
            owners=owners,
            intended=resource.intended,
            controller=live.controller,
            event_group=resource.event_group,
            reason=_reason_to_remove(resource),
        )
    policy = resource.policy
    if policy.release_last and live.deleting_since is None:
        return
    own = [finalizer for finalizer in policy.finalizers if finalizer in live.finalizers]
    foreign = [finalizer for finalizer in live.finalizers if finalizer not in own]
    if policy.release_last and foreign:
        yield Wait(live.id, f"{resource.why}; waits for the removal of finalizer {', '.join(foreign)}")
    elif own:
        yield Release(
            resource.id,
            resource.why,
            Cause.INTENT if resource.intended else Cause.DRIFT,
            expect=Expect(live.uid),
            finalizers=tuple(own),
            existing=live.finalizers,
            owners=owners,
            intended=resource.intended,
            controller=live.controller,
            event_group=resource.event_group,
            reason=_reason_to_remove(resource),
        )
    elif live.deleting_since is not None and not is_root and not policy.nested and (wait := kept(live, policy)) is not None:
        yield wait


def delete_unintended(live: Live, context: PartContext) -> Iterable[Action]:
    """Delete an object of the root that the graph does not have."""
    if live.deleting_since is not None:
        wait = kept(live, PLAIN)
        return (wait,) if wait is not None else ()
    unintended = f"{context.root.id.kind} {context.root.id.name} does not specify it"
    if context.incomplete:
        kinds = ", ".join(sorted(context.incomplete))
        why = f"{unintended}; it is deleted once {kinds} objects can be listed completely"
        return (Wait(live.id, why, blocked=True, reason=Reason.NOT_LISTED),)
    return (
        Delete(
            live.id, unintended, Cause.DRIFT, expect=Expect(live.uid), intended=False, controller=live.controller, reason=Reason.ORPHANED
        ),
    )
