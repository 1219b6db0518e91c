"""Plan: the graph minus what is observed, as operations with reasons, causes and preconditions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from engine.blueprint import Desired
from engine.diff import Difference, Rules, compare, compare_status, touches
from engine.graph import Part, edges_of
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.operation import BoundOwner, Cause, Change, Expect, Operation, Unknown
from engine.paths import stamp
from engine.plan import Plan, Wait
from engine.resource import Body, Resource, Stance
from engine.verb import Verb

Answer = Operation | Wait


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What is to be done about one part: its operations before edges and time are filled in, and what is held."""

    operations: tuple[Operation, ...]
    deferred: tuple[Wait, ...]


@dataclass(frozen=True, slots=True)
class PartContext:
    """What the comparisons of one part share: the root, the part's objects, references, what was not seen, why something is missing."""

    root: Live
    lives: Slice
    foreign: Mapping[ResourceId, Live]
    unseen: frozenset[str]
    reads: Mapping[str, frozenset[str]]
    absent: Cause
    outside: Mapping[ResourceId, Live]
    """What is there of what is found among the references."""

    def find(self, id: ResourceId) -> Live | None:
        """The root, an object of the part, or one of its among the references."""
        return self.root if id == self.root.id else self.lives.objects.get(id) or self.outside.get(id)

    def cause(self) -> Cause:
        """Why something of this part is not there: it is new, a new number asks for it, or somebody has taken it away."""
        if self.absent is Cause.DRIFT and any(map(_is_asking, self.lives.objects.values())):
            return Cause.INTENT
        return self.absent

    def blind_spot(self, kind: str) -> str | None:
        """The kind whose incomplete listing makes it impossible to judge what is there of this kind."""
        if not self.unseen:
            return None
        return min(self.unseen & ({kind} | self.reads.get(kind, frozenset())), default=None)


def _is_asking(live: Live) -> bool:
    """Whether somebody has changed what it asks for since its state was written."""
    if live.generation < 2:
        return False
    observed = (live.body.get("status") or {}).get("observedGeneration")
    return observed is not None and observed < live.generation


def plan(desired: Desired, observed: Observed, reads: Mapping[str, frozenset[str]], memo: Memo) -> Plan:
    """The operations that make the difference, each after those it depends on.

    A part whose wish and whose slice are the same as last time is not compared again. Where what is intended for cannot be understood
    nothing is planned: what is there stays.
    """
    if desired.problems:
        return Plan(observed.root.id, problems=desired.problems, notes=desired.notes)
    absent = _why_absent(observed)
    parts = (*desired.graph.parts, *_unwanted(desired, observed, memo))
    steps = [_recalled(part, observed, reads, absent, memo) for part in parts]
    operations = [operation for step in steps for operation in step.operations]
    return Plan(
        root=observed.root.id,
        operations=_ordered(operations, desired),
        deferred=(*(held for step in steps for held in step.deferred), *desired.deferred),
        pending=desired.pending,
        problems=desired.problems,
        notes=desired.notes,
        alarms=desired.alarms,
        wake_at=desired.wake_at,
    )


def stamped(plan: Plan, now: datetime) -> Plan:
    """The plan with its moment in place of every `NOW`: only states have any."""
    if not any(operation.verb is Verb.STATUS for operation in plan.operations):
        return plan
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return replace(plan, operations=tuple(_stamped(operation, moment) for operation in plan.operations))


def _stamped(operation: Operation, moment: str) -> Operation:
    if operation.verb is not Verb.STATUS:
        return operation
    changes = tuple(replace(change, new=stamp(change.new, moment)) for change in operation.changes)
    return replace(operation, body=stamp(operation.body, moment), changes=changes)


def _why_absent(observed: Observed) -> Cause:
    """What is missing although the root has been dealt with in this very form has been taken away by somebody."""
    root = observed.root
    if observed.proposal is not None or not root.uid:
        return Cause.INTENT
    status = root.body.get("status") or {}
    return Cause.DRIFT if status.get("observedGeneration") == root.generation else Cause.INTENT


def _unwanted(desired: Desired, observed: Observed, memo: Memo) -> Iterable[Part]:
    """An empty part for every slice that no part of the graph speaks for."""
    wanted = {part.key for part in desired.graph.parts}
    for key in observed.slices.keys() - wanted:
        yield memo.recall(("unwanted", key), (), partial(Part, key, {}, frozenset()))


def _recalled(part: Part, observed: Observed, reads: Mapping[str, frozenset[str]], absent: Cause, memo: Memo) -> Step:
    lives = observed.slice(part.key)
    root = observed.root
    outside = {id: there for id in part.outside if (there := observed.references.objects.get(id)) is not None}
    whole = root if root.id in part.resources else root.uid
    facts = (part, lives, whole, observed.foreign, absent, *sorted(observed.incomplete), *outside.values())
    judging = PartContext(root, lives, observed.foreign, observed.incomplete, reads, absent, outside)
    return memo.recall(("step", part.key), facts, lambda: _step(part, judging))


def _step(part: Part, judging: PartContext) -> Step:
    operations: list[Operation] = []
    held: list[Wait] = []
    for answer in _answers(part, judging):
        if isinstance(answer, Wait):
            held.append(answer)
        else:
            operations.append(answer)
    return Step(tuple(operations), tuple(held))


def _answers(part: Part, judging: PartContext) -> Iterable[Answer]:
    unmade: set[ResourceId] = set()
    for id, resource in part.resources.items():
        live = judging.find(id)
        there = live if live is not None and live.uid else None
        answers = list(_judge(resource, there, judging))
        if there is None and resource.stance is not Stance.DROP:
            answers = _after_its_owners(resource, answers, unmade)
        yield from answers
    for live in judging.lives.objects.values():
        if live.id not in part.resources:
            yield from _unasked(live, judging)


def _after_its_owners(resource: Resource, answers: list[Answer], unmade: set[ResourceId]) -> list[Answer]:
    """What is not there is not made before its owners: where one of them is held, it is held as well. `unmade` grows by what is."""
    missing = unmade.intersection(owner.id for owner in resource.owners)
    if missing and any(isinstance(answer, Operation) for answer in answers):
        answers = [Wait(resource.id, f"comes after its owner {min(missing)}, which is held")]
    if not any(isinstance(answer, Operation) for answer in answers):
        unmade.add(resource.id)
    return answers


def _judge(resource: Resource, live: Live | None, judging: PartContext) -> Iterable[Answer]:
    """What is to be done about one resource."""
    if resource.stance is Stance.HOLD:
        return (Wait(resource.id, resource.why),)
    if resource.id.kind in judging.unseen:
        return (Wait(resource.id, f"{resource.id.kind} objects were not seen completely"),)
    if live is None:
        return _create(resource, judging) if resource.stance is Stance.WANT else ()
    blind = judging.blind_spot(resource.id.kind)
    if resource.stance is Stance.DROP:
        return (Wait(resource.id, f"goes once {blind} objects are seen completely"),) if blind else _leave(resource, live, judging)
    if live.deleting_since is not None and live.id != judging.root.id:
        return (Wait(resource.id, "is being deleted; it is made again once it is gone"),)
    answers = _change(resource, live, judging)
    if answers and blind:
        return (Wait(resource.id, f"changes once {blind} objects are seen completely"),)
    return answers


def _create(resource: Resource, judging: PartContext) -> Iterable[Answer]:
    holder = judging.foreign.get(resource.id)
    if holder is not None:
        return (Wait(resource.id, _taken(resource, holder, judging.root)),)
    owners = _bound_owners(resource, judging)
    return (Operation(Verb.CREATE, resource.id, resource.why, judging.cause(), body=resource.body, owners=owners),)


def _taken(resource: Resource, holder: Live, root: Live) -> str:
    owner = resource.owners[0].id if resource.owners else root.id
    place = f"{holder.id.namespace}/" if holder.id.namespace else ""
    return f"{holder.id.kind} {place}{holder.id.name} already exists but is not controlled by {owner.kind} {place}{owner.name}"


def _bound_owners(resource: Resource, judging: PartContext) -> tuple[BoundOwner, ...]:
    return tuple(BoundOwner(owner, _uid(owner.id, judging)) for owner in resource.owners)


def _uid(id: ResourceId, judging: PartContext) -> str | Unknown:
    """The uid of an owner, which is the root or stands in the same part; one that is made (again) by this plan has none yet."""
    found = judging.find(id)
    return found.uid if found is not None and found.uid else Unknown(id)


def _change(resource: Resource, live: Live, judging: PartContext) -> Sequence[Operation]:
    """One write at most: the state follows once the object itself is as wanted, for each is bound to the revision it judged."""
    body = live.body
    if not resource.policy.create_only:
        difference = compare(resource.body, body, Rules(resource.policy, judging.absent))
        _compare_finalizers(resource, body, difference, judging)
        _compare_owners(resource, live, body, difference, judging)
        if any(touches(change, resource.policy.immutable) for change in difference.changes):
            return (_replace(resource, live, difference.changes, judging),)
        if difference.changes:
            return (_patch(Verb.PATCH, resource, live, difference),)
    if resource.status is not None:
        state = compare_status(resource.status, body.get("status") or {})
        if state.changes:
            return (_patch(Verb.STATUS, resource, live, state),)
    return ()


def _compare_finalizers(resource: Resource, body: Body, difference: Difference, judging: PartContext) -> None:
    has = body["metadata"].get("finalizers") or []
    lacking = [finalizer for finalizer in resource.policy.finalizers if finalizer not in has]
    if lacking:
        difference.add(("metadata", "finalizers"), has or None, [*has, *lacking], judging.absent)


def _compare_owners(resource: Resource, live: Live, body: Body, difference: Difference, judging: PartContext) -> None:
    has = {owner.uid for owner in live.owners}
    owners = _bound_owners(resource, judging)
    lacking = [owner_reference(wanted) for wanted in owners if isinstance(wanted.uid, str) and wanted.uid not in has]
    if lacking:
        old = list(body["metadata"].get("ownerReferences") or [])
        difference.add(("metadata", "ownerReferences"), old or None, [*old, *lacking], judging.absent)


def owner_reference(wanted: BoundOwner, uids: Mapping[ResourceId, str] | None = None) -> dict[str, object]:
    """An owner reference as the API takes it. Raises `KeyError` when its uid is neither known nor among `uids`."""
    uid = wanted.uid if isinstance(wanted.uid, str) else (uids or {})[wanted.uid.id]
    entry: dict[str, object] = {
        "apiVersion": wanted.owner.api_version,
        "kind": wanted.owner.id.kind,
        "name": wanted.owner.id.name,
        "uid": uid,
    }
    return entry | {"controller": True, "blockOwnerDeletion": True} if wanted.owner.controller else entry


def _patch(verb: Verb, resource: Resource, live: Live, difference: Difference) -> Operation:
    cause = Cause.INTENT if any(change.cause is Cause.INTENT for change in difference.changes) else Cause.DRIFT
    why = resource.why if verb is Verb.PATCH else "its state has changed"
    return Operation(
        verb,
        resource.id,
        why,
        cause,
        body=difference.patch,
        changes=difference.changes,
        expect=Expect(live.uid, live.revision),
        controller=live.controller,
        urgent=verb is Verb.STATUS and resource.urgent,
    )


def _replace(resource: Resource, live: Live, changes: tuple[Change, ...], judging: PartContext) -> Operation:
    return Operation(
        Verb.REPLACE,
        resource.id,
        f"{resource.why}; the server does not allow to change this in place",
        Cause.INTENT,
        body=resource.body,
        owners=_bound_owners(resource, judging),
        changes=changes,
        expect=Expect(live.uid),
        intended=resource.intended,
    )


def _leave(resource: Resource, live: Live, judging: PartContext) -> Iterable[Answer]:
    """Drop it, or, where others want it too, no more than our part in it."""
    ours = {reference.uid for reference in _bound_owners(resource, judging)}
    if not resource.policy.shared or all(owner.uid in ours for owner in live.owners):
        return _drop(resource, live, _bound_owners(resource, judging))
    old = live.body["metadata"]["ownerReferences"]
    kept = [entry for entry in old if entry["uid"] not in ours]
    if len(kept) == len(old):
        return ()
    difference = Difference()
    difference.add(("metadata", "ownerReferences"), old, kept, Cause.INTENT)
    return (_patch(Verb.PATCH, resource, live, difference),)


def _drop(resource: Resource, live: Live, owners: tuple[BoundOwner, ...]) -> Iterable[Answer]:
    """Delete it unless that has happened, then take our finalizers off; at once, or when those of others have fallen."""
    if live.deleting_since is None:
        yield _going(Verb.DELETE, resource, live, {}, owners)
    policy = resource.policy
    if not policy.finalizers or (policy.release_last and live.deleting_since is None):
        return
    has = live.body["metadata"].get("finalizers") or ()
    ours = [finalizer for finalizer in policy.finalizers if finalizer in has]
    others = [finalizer for finalizer in has if finalizer not in ours]
    if policy.release_last and others:
        yield Wait(live.id, f"{resource.why}; waits for {', '.join(others)} to let go of it")
    elif ours:
        yield _going(Verb.RELEASE, resource, live, {"finalizers": ours, "of": list(has)}, owners)


def _going(verb: Verb, resource: Resource, live: Live, body: Body, owners: tuple[BoundOwner, ...]) -> Operation:
    cause = Cause.INTENT if resource.intended else Cause.DRIFT
    # Whether we are the last is only true of this revision: another root may be joining at this moment. So is a state that it goes for.
    is_bound = verb is Verb.DELETE and (resource.policy.shared or resource.bind_revision)
    expect = Expect(live.uid, live.revision if is_bound else "")
    return Operation(
        verb,
        resource.id,
        resource.why,
        cause,
        body=body,
        owners=owners,
        expect=expect,
        intended=resource.intended,
        controller=live.controller,
        event_group=resource.event_group,
    )


def _unasked(live: Live, judging: PartContext) -> Iterable[Answer]:
    """An object of ours that nothing asks for any more."""
    if live.deleting_since is not None:
        return ()
    if judging.unseen:
        return (Wait(live.id, "would be deleted, but not everything was seen"),)
    why, expect = "nothing asks for it", Expect(live.uid)
    return (Operation(Verb.DELETE, live.id, why, Cause.DRIFT, expect=expect, intended=False, controller=live.controller),)


def _ordered(operations: Sequence[Operation], desired: Desired) -> tuple[Operation, ...]:
    """The operations with their edges, in an order that respects them: the graph's own for what is made, its reverse for what goes."""
    if not operations:
        return ()
    calls: dict[ResourceId, dict[Verb, str]] = {}
    for operation in operations:
        calls.setdefault(operation.id, {})[operation.verb] = operation.key
    followers = _followers(operations, desired)
    finished = [_finished(operation, desired, calls, followers) for operation in operations]
    place = {id: number for number, id in enumerate(desired.graph.resources)}
    made = [operation for operation in finished if operation.verb not in GOING]
    gone = [operation for operation in finished if operation.verb in GOING]
    made.sort(key=lambda operation: (place[operation.id], operation.id))
    gone.sort(key=lambda operation: (-place.get(operation.id, -1), operation.id, operation.verb is Verb.RELEASE))
    return (*gone, *made)


GOING = (Verb.DELETE, Verb.RELEASE)
MAKING = (Verb.CREATE, Verb.REPLACE, Verb.PATCH)


def _followers(operations: Sequence[Operation], desired: Desired) -> dict[ResourceId, list[ResourceId]]:
    """For what goes: what has to have gone before it, being made after it."""
    found: dict[ResourceId, list[ResourceId]] = {}
    for operation in operations:
        resource = desired.graph.resources.get(operation.id) if operation.verb in GOING else None
        for need in edges_of(resource) if resource else ():
            found.setdefault(need, []).append(operation.id)
    return found


def _finished(
    operation: Operation,
    desired: Desired,
    calls: Mapping[ResourceId, Mapping[Verb, str]],
    followers: Mapping[ResourceId, Sequence[ResourceId]],
) -> Operation:
    """The operation with the keys of those it comes after."""
    if operation.verb in GOING:
        after = {key for id in followers.get(operation.id, ()) for verb, key in calls[id].items() if verb in GOING}
        if operation.verb is Verb.RELEASE:
            after.update(key for verb, key in calls[operation.id].items() if verb is Verb.DELETE)
        return replace(operation, after=frozenset(after))
    if operation.verb is Verb.STATUS:
        return operation
    needs = edges_of(desired.graph.resources[operation.id])
    after = {key for need in needs if need in calls for verb, key in calls[need].items() if verb in MAKING}
    return replace(operation, after=frozenset(after)) if after else operation
