"""Intent: what a command asks for: manifests, roots that it removes, and the object in which it notes what it works on."""

from collections.abc import Iterator, Mapping, Sequence, Set

from msgspec import Struct, field
from msgspec.structs import replace

from engine.diff import Rules, compare, covers
from engine.focus import EVERYTHING, Focus
from engine.ids import ResourceId
from engine.memo import Memo, as_tuple
from engine.namespaces import held_back
from engine.observed import Live, Observed, World
from engine.operation import Cause, Create, Delete, Expect, Operation, Patch, WriteStatus
from engine.plan import Objection, Plan, Wait, changed
from engine.reason import Reason
from engine.resource import PLAIN, Body


class Removal(Struct, frozen=True):
    """That one root is to be removed, and why."""

    uid: str
    """The uid of the root that was judged. One of the same name that is made later stays."""
    why: str
    after_manifests: bool = False
    """Whether it is only deleted once every manifest of the intent is applied."""

    @property
    def reason(self) -> Reason:
        """Pruned if it has left the manifests, else the deletion itself was asked for."""
        return Reason.PRUNED if self.after_manifests else Reason.SET_DELETED


class RootRemovals(Struct, frozen=True, eq=False):
    """What a command removes, and why it may not."""

    roots: Mapping[ResourceId, Removal]
    objections: tuple[Objection, ...] = ()
    """With objections nothing at all is changed."""
    notes: tuple[str, ...] = ()
    """About roots that stay."""


NO_REMOVALS = RootRemovals({})


def is_removed(observed: Observed, removals: Mapping[ResourceId, Removal]) -> bool:
    """Whether the root is one of those that are to be removed."""
    removal = removals.get(observed.root.id)
    return removal is not None and removal.uid == observed.root.uid


def to_delete(world: World, removals: Mapping[ResourceId, Removal]) -> Set[ResourceId]:
    """The roots that are to be removed and are not being deleted yet, and the roots that are nested in them: they get no ordinary plan."""
    if not removals:
        return frozenset()
    removed = [each.root for each in world.roots if is_removed(each, removals) and each.root.deleting_since is None]
    ids, uids = {root.id for root in removed}, {root.uid for root in removed}
    nested = (each.root.id for each in world.roots if each.root.controller is not None and each.root.controller.uid in uids)
    proposed = (each.root.id for each in world.roots if each.proposer is not None and each.proposer.uid in uids)
    return ids.union(nested, proposed)


def with_removals(plans: Sequence[Plan], world: World, removals: Mapping[ResourceId, Removal]) -> tuple[Plan, ...]:
    """The plans, with the delete of each root that is to be removed, and with what those that are being deleted still wait for."""
    if not removals:
        return as_tuple(plans)
    observed = {each.root.id: each for each in world.roots}
    first_unapplied = next(unapplied(plans, observed), None)
    return tuple(
        _removing(plan, observed[plan.root], removals[plan.root], first_unapplied)
        if plan.root in observed and is_removed(observed[plan.root], removals)
        else plan
        for plan in plans
    )


def unapplied(plans: Sequence[Plan], observed: Mapping[ResourceId, Observed]) -> Iterator[ResourceId]:
    """The roots whose manifests are not applied: they are to be written, cannot be written, or are being deleted."""
    for plan in plans:
        each = observed.get(plan.root)
        if each is None or each.proposal is None or each.proposer is not None:
            continue
        is_written = any(operation.id == plan.root and not isinstance(operation, WriteStatus) for operation in plan.operations)
        is_deferred = any(wait.id == plan.root for wait in plan.deferred)
        is_refused = plan.problems or plan.error or (plan.objections and not plan.operations)
        if is_written or is_deferred or is_refused or not each.root.uid or each.root.deleting_since is not None:
            yield plan.root


def _removing(plan: Plan, observed: Observed, removal: Removal, unapplied: ResourceId | None) -> Plan:
    """The plan of a root that is to be removed. `unapplied`: a root whose manifest is not applied, if there is one."""
    root = observed.root
    if root.deleting_since is not None:
        return _waiting(plan, observed)
    if removal.after_manifests and unapplied is not None:
        return replace(plan, deferred=(Wait(root.id, f"{removal.why}; it is deleted once all manifests are applied, {unapplied} is not"),))
    operation = Delete(root.id, removal.why, Cause.INTENT, expect=Expect(root.uid), controller=root.controller, reason=removal.reason)
    return replace(plan, operations=(operation,))


def _waiting(plan: Plan, observed: Observed) -> Plan:
    """The deletion plan of a root; if nothing is left in it, with the finalizers of others that the root waits for."""
    if plan.operations or plan.deferred or plan.pending or plan.problems or plan.error:
        return plan
    finalizers = observed.root.finalizers
    why = f"is being deleted; waits for the removal of finalizer {', '.join(map(str, finalizers))}" if finalizers else "is being deleted"
    return replace(plan, pending=(Wait(observed.root.id, why),))


class Record(Struct, frozen=True, eq=False):
    """What is to be noted in one object. A body that is noted has metadata alone, besides what identifies it."""

    id: ResourceId
    before: Body | None
    """What the object said when it was read; None: it did not exist."""
    during: Body
    """The manifest of the object while something is written."""
    after: Body
    """The manifest of the object when every manifest is applied and every removed root is gone."""
    rule: str
    """The name of the objection if another program has changed it."""
    why: str


class Recording(Struct, frozen=True, eq=False):
    """What is written in a record now."""

    plans: tuple[Plan, ...] = ()
    """The plan of the record, if it is to be written."""
    objections: tuple[Objection, ...] = ()
    is_first: bool = False
    """Whether it is written before anything else is."""


def recording(record: Record | None, world: World, plans: Sequence[Plan], removals: Mapping[ResourceId, Removal]) -> Recording:
    """What is written in the record, given the plans of all roots: nothing if it says already what it has to say.

    It is not written over a change that another program has made since it was read.
    """
    if record is None:
        return Recording()
    live, is_done = world.record, _is_done(world, plans, removals)
    if live is not None and not any(_says(live, body) for body in (record.before, record.during, record.after)):
        return Recording(
            objections=(Objection(record.rule, f"{record.id} was changed meanwhile by another program: run the command again"),)
        )
    target = record.after if is_done else record.during
    if (live is not None and _says(live, target)) or not (is_done or any(changed(plan) and not plan.objections for plan in plans)):
        return Recording()
    plan = Plan(record.id, (_written(record, target, live),))
    return Recording((held_back(plan, world.closed_namespaces.get(record.id.namespace)),), is_first=not is_done)


def _is_done(world: World, plans: Sequence[Plan], removals: Mapping[ResourceId, Removal]) -> bool:
    """Whether every manifest is applied and every removed root is gone."""
    if world.incomplete or any(is_removed(observed, removals) for observed in world.roots):
        return False
    return next(unapplied(plans, {observed.root.id: observed for observed in world.roots}), None) is None


def _says(live: Live, body: Body | None) -> bool:
    return body is not None and covers(body["metadata"], live.body["metadata"])


def _written(record: Record, target: Body, live: Live | None) -> Operation:
    """The operation after which the object says what it has to say."""
    if live is None:
        return Create(record.id, record.why, Cause.INTENT, manifest=target, reason=Reason.MANIFEST_CHANGED)
    difference = compare(target, live.body, Rules(PLAIN, Cause.INTENT))
    return Patch(
        record.id,
        record.why,
        Cause.INTENT,
        patch=difference.patch,
        changes=difference.changes,
        expect=Expect(live.uid, live.revision),
        target=target,
        reason=Reason.MANIFEST_CHANGED,
    )


class Intent(Struct, frozen=True, eq=False):
    """What a preview or a sync is about; `engine run` asks for nothing of its own."""

    manifests: tuple[Body, ...] = ()
    """Root manifests that are applied first."""
    focus: Focus = EVERYTHING
    """The roots that it concerns: only they are planned, written and waited for."""
    removals: Mapping[ResourceId, Removal] = field(default_factory=dict)
    """The roots that are removed, and why. They are in the focus."""
    record: Record | None = None
    """Where it is noted what the command works on; None: it is not noted."""
    memo: Memo = field(default_factory=Memo)
    """What has been read from the manifests and the roots before, and need not be read again. Passes begin with it and do not change it."""
    warned: Mapping[ResourceId, frozenset[str]] = field(default_factory=dict)
    """Root -> the warnings about its manifest that were written to stderr already: what follows on a terminal does not repeat them."""
    replicas: Mapping[ResourceId, Mapping[str, int]] = field(default_factory=dict)
    """Root of a manifest -> part of it -> how many replicas manifests beside its own ask for. A sync writes them once."""
    beside: Mapping[ResourceId, str] = field(default_factory=dict)
    """The objects beside the manifests, which nobody applies here -> where each is written."""
    world: World | None = None
    """What an earlier pass with that memo was planned for, as listed: what has not changed is not computed again. None: there was none."""


NOTHING = Intent()
