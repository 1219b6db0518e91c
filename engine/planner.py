"""Planner: the graph minus the observed objects, as operations with reasons, causes and preconditions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from engine.blueprint import Desired
from engine.diff import Difference, Rules, compare, compare_status, covers, touches
from engine.graph import Part
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.operation import BoundOwner, Cause, Change, Expect, Operation, Unknown
from engine.operation_order import ordered
from engine.plan import Plan, Wait
from engine.reason import BLOCKERS, Reason
from engine.resource import Body, Resource, Stance
from engine.verb import Verb

Action = Operation | Wait
"""What to do about one object: a call, or a reason not to make it now."""

LABELS_RESTORED = "its labels were removed or changed: they are restored"
UNINTENDED = "no set owns it"

GROWTH = (Reason.SCALED_OUT, Reason.CLIQUE_CREATED)
"""Reasons to create what a root has not had before."""


@dataclass(frozen=True, slots=True, eq=False)
class PartPlan:
    """The operations of one part before their edges are filled in, and what is deferred."""

    operations: tuple[Operation, ...]
    deferred: tuple[Wait, ...]


@dataclass(frozen=True, slots=True)
class PartContext:
    """Everything that the comparisons of one part depend on besides its resources."""

    root: Live
    slice: Slice
    foreign: Mapping[ResourceId, Live]
    mislabelled: frozenset[ResourceId]
    incomplete: frozenset[str]
    reads: Mapping[str, frozenset[str]]
    absent: Cause
    """Why an object or a field that does not exist is missing."""
    elsewhere: Mapping[ResourceId, Live]
    """The live objects of the part that are among the references or belong to nested roots, and the root that proposes this one."""

    def find(self, id: ResourceId) -> Live | None:
        """The root, an object of the slice, or one that is elsewhere."""
        return self.root if id == self.root.id else self.slice.objects.get(id) or self.elsewhere.get(id)

    def reason_to_create(self, resource: Resource) -> Reason:
        """Why an object of this part does not exist: the desired state has changed, or somebody has deleted it.

        The blueprint may know better, except for a root that is carried out for the first time.
        """
        if not _was_complete(self.root):
            return Reason.MANIFEST_CHANGED if resource.reason in (None, *GROWTH) else resource.reason
        if resource.reason is not None:
            return resource.reason
        if self.absent is Cause.INTENT:
            return Reason.TEMPLATE_CHANGED
        return Reason.SCALED_OUT if any(map(_has_new_generation, self.slice.objects.values())) else Reason.MISSING

    def unlisted(self, id: ResourceId) -> str | None:
        """A kind that could not be listed completely and without which objects of this one's kind cannot be judged."""
        if not self.incomplete:
            return None
        keys = id.keys()
        return min(self.incomplete & keys.union(*(self.reads.get(key, frozenset()) for key in keys)), default=None)


def _was_complete(root: Live) -> bool:
    """Whether some generation of the root has been carried out completely."""
    return bool(root.uid) and (root.body.get("status") or {}).get("observedGeneration") is not None


def _has_new_generation(live: Live) -> bool:
    """Whether its spec has been changed since its status was written."""
    if live.generation < 2:
        return False
    observed = (live.body.get("status") or {}).get("observedGeneration")
    return observed is not None and observed < live.generation


def plan(desired: Desired, observed: Observed, reads: Mapping[str, frozenset[str]], memo: Memo) -> Plan:
    """The operations that turn the observed objects into the desired ones, each after those it depends on.

    A part whose resources and objects are the same as in the last pass is not compared again. If the desired state has problems,
    nothing is planned.
    """
    if desired.problems:
        return Plan(observed.root.id, problems=desired.problems, notes=desired.notes)
    absent = _absent_cause(observed)
    parts = (*desired.graph.parts, *_obsolete_parts(desired, observed, memo))
    part_plans = [_recalled(part, observed, reads, absent, memo) for part in parts]
    operations = [operation for part_plan in part_plans for operation in part_plan.operations]
    return Plan(
        root=observed.root.id,
        operations=ordered(operations, desired),
        deferred=(*(wait for part_plan in part_plans for wait in part_plan.deferred), *desired.deferred),
        pending=desired.pending,
        notes=desired.notes,
        alarms=desired.alarms,
        wake_at=desired.wake_at,
    )


def _absent_cause(observed: Observed) -> Cause:
    """Why an object or field is missing: DRIFT (somebody removed it) if the root's current generation has been applied, else INTENT."""
    root = observed.root
    if not root.uid or (observed.proposal is not None and (observed.proposer is None or not _is_applied(observed.proposal, root))):
        return Cause.INTENT
    status = root.body.get("status") or {}
    return Cause.DRIFT if status.get("observedGeneration") == root.generation else Cause.INTENT


def _is_applied(proposal: Body, root: Live) -> bool:
    """Whether the root already has the proposed spec."""
    return covers(proposal.get("spec"), root.body.get("spec"))


def _obsolete_parts(desired: Desired, observed: Observed, memo: Memo) -> Iterable[Part]:
    """An empty part for every slice that the graph has no part for."""
    for key in sorted(observed.slices.keys() - {part.key for part in desired.graph.parts}):
        yield memo.recall(("obsolete", key), (), partial(Part, key, {}, frozenset()))


def _recalled(part: Part, observed: Observed, reads: Mapping[str, frozenset[str]], absent: Cause, memo: Memo) -> PartPlan:
    """The plan of a part, from the memo if nothing that it depends on has changed (`reads` is the same in all passes)."""
    objects = observed.slice(part.key)
    root = observed.root
    elsewhere = {id: live for id in part.found_elsewhere if (live := observed.elsewhere(id)) is not None}
    if observed.proposer is not None:
        elsewhere[observed.proposer.id] = observed.proposer
    root_fact = root if root.id in part.resources else root.uid
    context = PartContext(root, objects, observed.foreign, observed.mislabelled, observed.incomplete, reads, absent, elsewhere)
    facts = (part, objects, root_fact, observed.foreign, observed.mislabelled, observed.incomplete, absent, tuple(elsewhere.values()))
    return memo.recall(("part", part.key), facts, lambda: _part_plan(part, context))


def _part_plan(part: Part, context: PartContext) -> PartPlan:
    """The actions on the objects of a part, as operations and waits."""
    operations: list[Operation] = []
    deferred: list[Wait] = []
    for action in _actions(part, context):
        if isinstance(action, Wait):
            deferred.append(action)
        else:
            operations.append(action)
    return PartPlan(tuple(operations), tuple(deferred))


def _actions(part: Part, context: PartContext) -> Iterable[Action]:
    """The actions on the resources of a part, and on live objects that it does not have."""
    not_created: dict[ResourceId, bool] = {}
    for id, resource in part.resources.items():
        known = context.find(id)
        live = known if known is not None and known.uid else None  # A proposed root has no uid.
        actions = list(_actions_on(resource, live, context))
        if live is None and resource.stance is not Stance.DROP:
            actions = _after_owners(resource, actions, not_created)
        yield from actions
    for live in context.slice.objects.values():
        if live.id not in part.resources:
            yield from _delete_unintended(live, context)


def _after_owners(resource: Resource, actions: list[Action], not_created: dict[ResourceId, bool]) -> list[Action]:
    """The actions on a missing object, deferred if an owner is. `not_created` collects deferred objects: id -> whether it is blocked."""
    missing_owners = not_created.keys() & {owner.id for owner in resource.owners}
    if missing_owners and any(isinstance(action, Operation) for action in actions):
        owner = min(missing_owners, key=lambda id: (not not_created[id], id))
        actions = [
            Wait(
                resource.id,
                f"waits for its owner {owner}, which is not created yet",
                blocked=not_created[owner],
                reason=Reason.OWNER_MISSING,
            )
        ]
    if not any(isinstance(action, Operation) for action in actions):
        not_created[resource.id] = any(isinstance(action, Wait) and action.blocked for action in actions)
    return actions


def _actions_on(resource: Resource, live: Live | None, context: PartContext) -> Iterable[Action]:
    """What to do about one resource; `live` is its object, None if it does not exist."""
    kind = resource.id.kind
    if resource.stance is Stance.HOLD:
        return (Wait(resource.id, resource.why, blocked=resource.blocked, reason=resource.reason if resource.reason in BLOCKERS else None),)
    if resource.scale is not None:
        return _scale(resource, live, context)
    if not context.incomplete.isdisjoint(resource.id.keys()):
        return (Wait(resource.id, f"{kind} objects could not be listed completely", blocked=True, reason=Reason.NOT_LISTED),)
    if live is None:
        return (_create(resource, context),) if resource.stance is Stance.WANT else ()
    unlisted = context.unlisted(resource.id)
    if resource.stance is Stance.DROP:
        if unlisted:
            why = f"is deleted once {unlisted} objects can be listed completely"
            return (Wait(resource.id, why, blocked=True, reason=Reason.NOT_LISTED),)
        return _drop(resource, live, context)
    if live.deleting_since is not None and live.id != context.root.id:
        return (Wait(resource.id, "is being deleted; it is created again once it is gone", reason=Reason.TERMINATING),)
    operations = _update(resource, live, context)
    if operations and unlisted:
        why = f"is changed once {unlisted} objects can be listed completely"
        return (Wait(resource.id, why, blocked=True, reason=Reason.NOT_LISTED),)
    return operations


def _create(resource: Resource, context: PartContext) -> Action:
    """Create the object, or wait because a foreign object has its name; blocked unless that object is being deleted."""
    foreign = context.foreign.get(resource.id)
    if foreign is not None:
        why = _name_taken(resource, foreign, context.root)
        return Wait(resource.id, why, blocked=foreign.deleting_since is None, reason=Reason.NAME_CONFLICT)
    owners, reason = _bound_owners(resource, context), context.reason_to_create(resource)
    cause = Cause.DRIFT if reason is Reason.MISSING else Cause.INTENT
    return Operation(Verb.CREATE, resource.id, resource.why, cause, body=resource.body, owners=owners, reason=reason)


def _name_taken(resource: Resource, foreign: Live, root: Live) -> str:
    """The reason why an object is not created: a foreign object has its name."""
    owner = resource.owners[0].id if resource.owners else root.id
    place = f"{foreign.id.namespace}/" if foreign.id.namespace else ""
    return f"{foreign.id.kind} {place}{foreign.id.name} already exists but is not controlled by {owner.kind} {place}{owner.name}"


def _bound_owners(resource: Resource, context: PartContext) -> tuple[BoundOwner, ...]:
    """The owners of a resource with their uids, or with placeholders for owners that this plan creates."""
    return tuple(BoundOwner(owner, _uid(owner.id, context)) for owner in resource.owners)


def _uid(id: ResourceId, context: PartContext) -> str | Unknown:
    """The uid of an owner, which is the root or in the same part; a placeholder if this plan creates it."""
    live = context.find(id)
    return live.uid if live is not None and live.uid else Unknown(id)


def _update(resource: Resource, live: Live, context: PartContext) -> Sequence[Operation]:
    """At most one write: each is bound to the observed revision, so the status is written once the object itself is in sync."""
    body = live.body
    if not resource.policy.create_only:
        absent = Cause.DRIFT if live.id in context.mislabelled else context.absent
        difference = compare(resource.body, body, Rules(resource.policy, absent))
        _compare_finalizers(resource, body, difference, context)
        _compare_owners(resource, live, body, difference, context)
        if any(touches(change, resource.policy.immutable) for change in difference.changes):
            return (_replace(resource, live, difference.changes, context),)
        if difference.changes:
            why = LABELS_RESTORED if live.id in context.mislabelled else resource.why
            follows = Reason.MANIFEST_CHANGED if live.id == context.root.id else resource.follows
            return (_patch(resource, live, difference, why, follows),)
    if resource.status is not None:
        status_difference = compare_status(resource.status, body.get("status") or {})
        if status_difference.changes:
            return (_status(resource, live, status_difference),)
    return ()


def _scale(resource: Resource, live: Live | None, context: PartContext) -> Sequence[Operation]:
    """Set the number of replicas of an existing object; what does not exist yet is created with it."""
    if live is None or live.deleting_since is not None:
        return ()
    replicas = (live.body.get("spec") or {}).get("replicas")
    if replicas == resource.scale:
        return ()
    change = Change(("spec", "replicas"), replicas, resource.scale, context.absent)
    body = {"spec": {"replicas": resource.scale}}
    return (
        Operation(
            Verb.SCALE,
            live.id,
            resource.why,
            change.cause,
            body,
            changes=(change,),
            expect=Expect(live.uid, live.revision),
            controller=live.controller,
            reason=_reason_to_scale(change),
        ),
    )


def _reason_to_scale(change: Change) -> Reason:
    """Why the number of replicas is set: somebody else changed it, or more or fewer are specified."""
    if change.cause is Cause.DRIFT:
        return Reason.DRIFTED
    return Reason.SCALED_OUT if (change.old or 0) < change.new else Reason.SCALED_IN


def _compare_finalizers(resource: Resource, body: Body, difference: Difference, context: PartContext) -> None:
    """Add our missing finalizers to the difference; finalizers of others stay."""
    finalizers = body["metadata"].get("finalizers") or []
    missing = [finalizer for finalizer in resource.policy.finalizers if finalizer not in finalizers]
    if missing:
        difference.add(("metadata", "finalizers"), finalizers or None, [*finalizers, *missing], context.absent)


def _compare_owners(resource: Resource, live: Live, body: Body, difference: Difference, context: PartContext) -> None:
    """Add our missing owner references to the difference; those of others stay."""
    uids = {owner.uid for owner in live.owners}
    owners = _bound_owners(resource, context)
    missing = [owner_reference(owner) for owner in owners if isinstance(owner.uid, str) and owner.uid not in uids]
    if missing:
        old = list(body["metadata"].get("ownerReferences") or [])
        difference.add(("metadata", "ownerReferences"), old or None, [*old, *missing], context.absent)


def owner_reference(owner: BoundOwner, uids: Mapping[ResourceId, str] | None = None) -> dict[str, object]:
    """An entry of `metadata.ownerReferences`. Raises `KeyError` if the uid is neither known nor in `uids`."""
    uid = owner.uid if isinstance(owner.uid, str) else (uids or {})[owner.uid.id]
    entry: dict[str, object] = {
        "apiVersion": owner.owner.api_version,
        "kind": owner.owner.id.kind,
        "name": owner.owner.id.name,
        "uid": uid,
    }
    return entry | {"controller": True, "blockOwnerDeletion": True} if owner.owner.controller else entry


def _patch(resource: Resource, live: Live, difference: Difference, why: str, follows: Reason) -> Operation:
    """The patch of an object. Its reason is `follows` if the desired state has changed."""
    cause = Cause.INTENT if any(change.cause is Cause.INTENT for change in difference.changes) else Cause.DRIFT
    return Operation(
        Verb.PATCH,
        resource.id,
        why,
        cause,
        body=difference.patch,
        changes=difference.changes,
        expect=Expect(live.uid, live.revision),
        controller=live.controller,
        target=resource.body,
        reason=follows if cause is Cause.INTENT else Reason.DRIFTED,
    )


def _status(resource: Resource, live: Live, difference: Difference) -> Operation:
    return Operation(
        Verb.STATUS,
        resource.id,
        resource.status_why,
        Cause.STATUS,
        body=difference.patch,
        changes=difference.changes,
        expect=Expect(live.uid, live.revision),
        controller=live.controller,
        urgent=resource.urgent,
        reason=Reason.STATUS_CHANGED,
    )


def _replace(resource: Resource, live: Live, changes: tuple[Change, ...], context: PartContext) -> Operation:
    is_intent = any(change.cause is Cause.INTENT for change in changes)
    return Operation(
        Verb.REPLACE,
        resource.id,
        f"{resource.why}; the server does not allow changing it in place",
        Cause.INTENT if is_intent else Cause.DRIFT,
        body=resource.body,
        owners=_bound_owners(resource, context),
        changes=changes,
        expect=Expect(live.uid),
        intended=resource.intended,
        reason=resource.follows if is_intent else Reason.DRIFTED,
    )


def _drop(resource: Resource, live: Live, context: PartContext) -> Iterable[Action]:
    """Delete the object or, if it is shared and has other owners, remove our owner references only."""
    owners = _bound_owners(resource, context)
    our_uids = {owner.uid for owner in owners}
    if not resource.policy.shared or all(owner.uid in our_uids for owner in live.owners):
        return _delete(resource, live, owners)
    old = live.body["metadata"]["ownerReferences"]
    kept = [entry for entry in old if entry["uid"] not in our_uids]
    if len(kept) == len(old):
        return ()
    difference = Difference()
    difference.add(("metadata", "ownerReferences"), old, kept, Cause.INTENT)
    return (_patch(resource, live, difference, resource.why, _reason_to_remove(resource)),)


def _reason_to_remove(resource: Resource) -> Reason:
    return resource.reason or (Reason.TEMPLATE_CHANGED if resource.intended else Reason.ORPHANED)


def _delete(resource: Resource, live: Live, owners: tuple[BoundOwner, ...]) -> Iterable[Action]:
    """Delete the object unless it is being deleted, then release our finalizers: at once or, with `release_last`, after all others."""
    if live.deleting_since is None:
        yield _removal(Verb.DELETE, resource, live, {}, owners)
    policy = resource.policy
    if not policy.finalizers or (policy.release_last and live.deleting_since is None):
        return
    finalizers = live.body["metadata"].get("finalizers") or ()
    own = [finalizer for finalizer in policy.finalizers if finalizer in finalizers]
    foreign = [finalizer for finalizer in finalizers if finalizer not in own]
    if policy.release_last and foreign:
        yield Wait(live.id, f"{resource.why}; waits for the removal of finalizer {', '.join(foreign)}")
    elif own:
        yield _removal(Verb.RELEASE, resource, live, {"finalizers": own, "of": list(finalizers)}, owners)


def _removal(verb: Verb, resource: Resource, live: Live, body: Body, owners: tuple[BoundOwner, ...]) -> Operation:
    # That we are the last owner, or that the object's state calls for a delete, is only true of the observed revision.
    bind_revision = verb is Verb.DELETE and (resource.policy.shared or resource.bind_revision)
    return Operation(
        verb,
        resource.id,
        resource.why,
        Cause.INTENT if resource.intended else Cause.DRIFT,
        body=body,
        owners=owners,
        expect=Expect(live.uid, live.revision if bind_revision else ""),
        intended=resource.intended,
        controller=live.controller,
        event_group=resource.event_group,
        reason=_reason_to_remove(resource),
    )


def _delete_unintended(live: Live, context: PartContext) -> Iterable[Action]:
    """Delete an object of the root that the graph does not have."""
    if live.deleting_since is not None:
        return ()
    if context.incomplete:
        kinds = ", ".join(sorted(context.incomplete))
        why = f"{UNINTENDED}; it is deleted once {kinds} objects can be listed completely"
        return (Wait(live.id, why, blocked=True, reason=Reason.NOT_LISTED),)
    return (
        Operation(
            Verb.DELETE,
            live.id,
            UNINTENDED,
            Cause.DRIFT,
            expect=Expect(live.uid),
            intended=False,
            controller=live.controller,
            reason=Reason.ORPHANED,
        ),
    )
