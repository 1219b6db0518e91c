"""Planner: the graph minus the observed objects, as operations with reasons, causes and preconditions; and what is done about orphans."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine import ownership
from engine.blueprint import Blueprint, C, Desired, incomplete_kinds
from engine.conditions import completed_generation
from engine.diff import LABELLED, covers
from engine.graph import Part, Resources, part
from engine.health import RootHealth, health, with_health
from engine.ids import ResourceId
from engine.memo import Memo, as_tuple
from engine.observed import Live, Observed, World
from engine.operation import Cause, Delete, Expect, Operation, Release, WriteStatus
from engine.operation_order import PartContents, ordered
from engine.part_context import NOTHING_IN_SYNC, UNKNOWN, InSync, PartContext, digest_of, in_sync
from engine.plan import Plan, Wait
from engine.reason import Reason
from engine.resource import PLAIN, Body, Drop, Policy, Resource, Want
from engine.resource_plan import Action, actions_on, delete_unintended, kept, not_listed, not_served

LATER: Final = "9999"
"""After every time that an object can have."""


class PartPlan(Struct, frozen=True, eq=False):
    """The operations of one part before their edges are filled in, and what is deferred."""

    operations: tuple[Operation, ...]
    deferred: tuple[Wait, ...]
    in_sync: InSync = NOTHING_IN_SYNC


def plan(desired: Desired, observed: Observed, now: datetime, reads: Mapping[str, frozenset[str]], memo: Memo) -> Plan:
    """The operations that turn the observed objects into the desired ones, each after those it depends on.

    A part whose resources and objects are the same as in the last pass is not compared again. If the desired state has problems, only the
    status of the root is planned; if it has objections, or if the cluster does not serve the kind of a manifest, nothing is. Nor is
    anything of a root whose kind could not be listed completely and that was not found: what it owns would look like objects of others.
    """
    if desired.objections:
        return Plan(observed.root.id, objections=desired.objections, notes=desired.notes, alarms=desired.alarms)
    if observed.proposal is not None and not observed.unserved.isdisjoint(observed.root.id.keys()):
        return Plan(observed.root.id, deferred=(not_served(observed.root.id, observed.proposal),), notes=desired.notes)
    if not observed.root.uid and not observed.incomplete.isdisjoint(observed.root.id.keys()):
        return Plan(observed.root.id, deferred=(not_listed(observed.root.id),), problems=desired.problems)
    root, contents = observed.root, PartContents(desired.graph)
    parts = (*desired.graph.parts, *_obsolete_parts(desired, observed, memo)) if not desired.problems else desired.graph.parts
    planning = _Planning(observed, contents, reads, _absent_cause(observed), _labelled_at(observed), memo)
    with_root = [part for part in parts if root.id in part.ids]
    plans = planning.without_root([part for part in parts if part not in with_root])
    # What is blocked belongs to the health of the root: a part that has more than the root is planned before that is known, and with it.
    plans |= {part.key: planning.with_root(part, None) for part in with_root if len(part.ids) > 1}
    of_root = _health(desired, observed, [plans[part.key] for part in parts if part.key in plans], now)
    plans |= {part.key: planning.with_root(part, of_root) for part in with_root}
    part_plans = [plans[part.key] for part in parts]
    operations = ordered([operation for part_plan in part_plans for operation in part_plan.operations], contents)
    restate_at, types = (of_root.until, of_root.types) if of_root is not None else (None, ())
    if desired.problems:
        statuses = tuple(operation for operation in operations if isinstance(operation, WriteStatus))
        return Plan(root.id, statuses, problems=desired.problems, notes=desired.notes, restate_at=restate_at)
    return Plan(
        root=root.id,
        operations=operations,
        deferred=(*_deferred(part_plans, desired.pending, root), *desired.deferred),
        pending=desired.pending,
        notes=desired.notes,
        alarms=desired.alarms,
        wake_at=desired.wake_at,
        restate_at=restate_at,
        trials=desired.trials,
        health_types=types,
    )


def _health(desired: Desired, observed: Observed, part_plans: Sequence[PartPlan], now: datetime) -> RootHealth | None:
    """The health of the root, by the plans of what else it has; None if its status has none, or it does not exist."""
    root = observed.root
    if desired.readiness is None or not root.uid:
        return None
    deferred = (*_deferred(part_plans, desired.pending, root), *desired.deferred)
    return health(desired.readiness, deferred, desired.alarms, root, now)


def _deferred(part_plans: Sequence[PartPlan], pending: Sequence[Wait], root: Live) -> Iterator[Wait]:
    """What is deferred. While the root is being deleted, what finalizers keep is left out if it is pending: commands wait for its end."""
    awaited = {wait.id for wait in pending} if root.deleting_since is not None else set[ResourceId]()
    for part_plan in part_plans:
        if part_plan.deferred:
            yield from (wait for wait in part_plan.deferred if wait.reason is not Reason.KEPT or wait.id not in awaited)


def _absent_cause(observed: Observed) -> Cause:
    """Why an object or field is missing: DRIFT (others removed it) if the root's current generation has been applied, else INTENT."""
    root = observed.root
    if not root.uid or (observed.proposal is not None and (observed.proposer is None or not _is_applied(observed.proposal, root))):
        return Cause.INTENT
    return Cause.DRIFT if completed_generation(root.body) == root.generation else Cause.INTENT


def _labelled_at(observed: Observed) -> str:
    """When labels or annotations of the root have changed last; `LATER` if a proposal changes them now."""
    root, proposal = observed.root, observed.proposal
    if proposal is not None and not all(
        covers(proposal["metadata"].get(field) or {}, root.body["metadata"].get(field) or {}) for field in LABELLED
    ):
        return LATER
    return ownership.labelled_at(root.body) if root.uid else ""


def _is_applied(proposal: Body, root: Live) -> bool:
    """Whether the root already has the proposed spec."""
    return covers(proposal.get("spec"), root.body.get("spec"))


def _obsolete_parts(desired: Desired, observed: Observed, memo: Memo) -> Iterable[Part]:
    """An empty part for every slice that the graph has no part for."""
    for key in sorted(observed.slices.keys() - {each.key for each in desired.graph.parts}):
        yield memo.recall(("obsolete", key), (), partial(part, key, ()))


class _Planning(Struct, frozen=True, eq=False):
    """Plans the parts of a root. The plan of a part is remembered until something changes that it depends on."""

    observed: Observed
    contents: PartContents
    reads: Mapping[str, frozenset[str]]
    """The same in all passes."""
    absent: Cause
    labelled_at: str
    memo: Memo

    def without_root(self, parts: Sequence[Part]) -> dict[str, PartPlan]:
        """Key -> plan of parts that do not have the root: of the root they depend on its uid."""

        def make(position: int, before: PartPlan | None) -> PartPlan:
            return self._plan(parts[position], None, before.in_sync if before is not None else NOTHING_IN_SYNC)

        keys = tuple(part.key for part in parts)
        columns = (tuple(parts), tuple(map(self.observed.slice, keys)), tuple(map(self._elsewhere, parts)))
        return dict(zip(keys, self.memo.recall_all("parts", keys, (self.observed.root.uid, *self._facts()), columns, make), strict=True))

    def with_root(self, part: Part, of_root: RootHealth | None) -> PartPlan:
        """The plan of a part with the root, whose status gets this health; None: it is not known yet."""
        facts = (part, self.observed.slice(part.key), self._elsewhere(part), self.observed.root, of_root, *self._facts())
        key = ("part", part.key) if of_root is None else ("part with health", part.key)
        return self.memo.recall(key, facts, lambda: self._plan(part, of_root))

    def _facts(self) -> tuple[Any, ...]:
        """What the plans of all parts depend on."""
        observed = self.observed
        return (
            observed.foreign,
            observed.mislabelled,
            observed.incomplete,
            observed.unserved,
            observed.proposer,
            self.absent,
            self.labelled_at,
        )

    def _elsewhere(self, part: Part) -> tuple[Live, ...]:
        """The live objects of a part that are not in its slice."""
        return (
            tuple(live for id in part.found_elsewhere if (live := self.observed.elsewhere(id)) is not None) if part.found_elsewhere else ()
        )

    def _plan(self, part: Part, of_root: RootHealth | None, before: InSync = NOTHING_IN_SYNC) -> PartPlan:
        observed, resources = self.observed, self.contents.of(part)
        root, proposer = observed.root, observed.proposer
        context = PartContext(
            root,
            observed.slice(part.key),
            observed.foreign,
            observed.mislabelled,
            observed.incomplete,
            observed.unserved,
            self.reads,
            self.absent,
            self.labelled_at,
            {live.id: live for live in (*self._elsewhere(part), *([proposer] if proposer is not None else ()))},
        )
        if of_root is not None and (own := resources.get(root.id)) is not None:
            resources = {**resources, root.id: _with_health(own, of_root, root)}
        digests: dict[ResourceId, int] = {}
        actions = tuple(self.memo.steps.counted(_actions(resources, context, before.known(), digests)))
        deferred = tuple(action for action in actions if isinstance(action, Wait))
        operations = tuple(action for action in actions if not isinstance(action, Wait))
        return PartPlan(operations, deferred, in_sync(context.slice, digests))


def _with_health(resource: Resource, of_root: RootHealth, root: Live) -> Resource:
    """The root with these conditions in its status; unchanged if no status is wanted."""
    if not isinstance(resource, Want) or resource.status is None:
        return resource
    return replace(resource, status=with_health(resource.status, of_root, root))


def _actions(
    resources: Resources, context: PartContext, before: Mapping[ResourceId, tuple[Live, int]], digests: dict[ResourceId, int]
) -> Iterable[Action]:
    """The actions on the resources of a part, and on live objects that it does not have.

    Objects that were in sync with the same `before` are not compared. `digests` collects those of what objects are in sync with.
    """
    not_created: dict[ResourceId, bool] = {}
    for id, resource in resources.items():
        known = context.find(id)
        live = known if known is not None and known.uid else None  # A proposed root has no uid.
        digest = digest_of(resource, live, context)
        if digest != UNKNOWN and before.get(id) == (live, digest):
            digests[id] = digest
            continue
        actions: Sequence[Action] = list(actions_on(resource, live, context))
        if not actions and digest != UNKNOWN:
            digests[id] = digest
        if live is None and not isinstance(resource, Drop):
            actions = _after_owners(resource, actions, not_created)
        yield from actions
    for live in context.slice.objects.values():
        if live.id not in resources:
            yield from delete_unintended(live, context)


def _after_owners(resource: Resource, actions: Sequence[Action], not_created: dict[ResourceId, bool]) -> Sequence[Action]:
    """The actions on a missing object, deferred if an owner is. `not_created` collects deferred objects: id -> whether it is blocked."""
    missing_owners = not_created.keys() & {owner.id for owner in resource.owners}
    waits = [action for action in actions if isinstance(action, Wait)]
    if missing_owners and len(waits) < len(actions):
        owner = min(missing_owners, key=lambda id: (not not_created[id], id))
        why = f"waits for its owner {owner}, which is not created yet"
        actions = waits = [Wait(resource.id, why, blocked=not_created[owner], reason=Reason.OWNER_MISSING)]
    if len(waits) == len(actions):
        not_created[resource.id] = any(wait.blocked for wait in waits)
    return actions


WHY: Final = "is being deleted, and no root owns it any more"


def with_orphans(plans: Sequence[Plan], blueprints: Sequence[Blueprint[C]], world: World, configuration: C) -> tuple[Plan, ...]:
    """The plans with the operations on orphans: the objects that they own are deleted, then our finalizers are released.

    The operations are in the plan of the root that an orphan's labels name; if there is none, in a new plan. Operations on objects
    that the root's own plan writes are left out. What an orphan waits for is pending, and blocked if finalizers of others keep it. While a
    kind that a blueprint depends on could not be listed completely, its orphans stay.
    """
    if all(live.deleting_since is None for live in world.rootless()):
        return as_tuple(plans)
    complete = [blueprint for blueprint in blueprints if not incomplete_kinds(blueprint, world.incomplete, configuration)]
    cleanups = _cleanups(complete, world, configuration)
    if not cleanups:
        return as_tuple(plans)
    released_last = {kind for blueprint in blueprints for kind, policy in blueprint.policies(configuration).items() if policy.release_last}
    extended = [_extended(plan, cleanups.pop(plan.root), released_last) if plan.root in cleanups else plan for plan in plans]
    return (*extended, *(_extended(Plan(root), cleanup, released_last) for root, cleanup in sorted(cleanups.items())))


def _extended(plan: Plan, cleanup: Sequence[Action], released_last: Set[str]) -> Plan:
    """The plan with the cleanup. A shared object (one without a controller) that the plan defers is left out: its root releases it."""
    deferred = {wait.id for wait in plan.deferred if wait.id.kind in released_last}
    written = {operation.id for operation in plan.operations}
    waits = [each for each in cleanup if isinstance(each, Wait)]
    due = [each for each in cleanup if not isinstance(each, Wait) and each.id not in written]
    due = [operation for operation in due if operation.controller is not None or operation.id not in deferred]
    return replace(
        plan,
        operations=(*plan.operations, *due),
        deferred=(*plan.deferred, *(wait for wait in waits if wait.blocked)),
        pending=(*plan.pending, *(wait for wait in waits if not wait.blocked)),
    )


def _cleanups(blueprints: Sequence[Blueprint[C]], world: World, configuration: C) -> dict[ResourceId, tuple[Action, ...]]:
    """The operations on orphans, and what these wait for, by the root that their labels name."""
    lives = list(world.rootless())
    orphans = [live for live in lives if live.deleting_since is not None]
    if not orphans:
        return {}
    owned: dict[str, list[Live]] = {}
    for live in lives:
        for owner in live.owners:
            owned.setdefault(owner.uid, []).append(live)
    cleanups: dict[ResourceId, tuple[Action, ...]] = {}
    for blueprint in blueprints:
        policies, reads = blueprint.policies(configuration), blueprint.reads(configuration)
        used = blueprint.in_use(orphans, world, configuration)
        kinds = _kinds_by_root(blueprint, lives)
        for live in orphans:
            root, policy = blueprint.root_of(live), policies.get(live.id.kind)
            if root is None or policy is None:
                continue
            users = reads.get(live.id.kind, frozenset())
            in_use = policy.release_last and (live.uid in used or not users.isdisjoint(kinds[root]))
            if actions := tuple(_cleanup(live, policies, owned.get(live.uid, ()), in_use=in_use)):
                cleanups[root] = (*cleanups.get(root, ()), *actions)
    return cleanups


def _kinds_by_root(blueprint: Blueprint[C], lives: Sequence[Live]) -> dict[ResourceId, set[str]]:
    """Root that labels name -> the kinds of the objects with these labels."""
    kinds: dict[ResourceId, set[str]] = {}
    for live in lives:
        root = blueprint.root_of(live)
        if root is not None:
            kinds.setdefault(root, set()).add(live.id.kind)
    return kinds


def _cleanup(orphan: Live, policies: Mapping[str, Policy], owned: Sequence[Live], *, in_use: bool) -> Iterator[Action]:
    """The operations on one orphan: deletes of the objects that it owns, or the release of our finalizers when nothing needs them.

    While these objects end, that is waited for. `policies`: by kind; that of the orphan is among them.
    """
    policy = policies[orphan.id.kind]
    for live in owned:
        if live.deleting_since is None:
            why = f"its owner {orphan.id} {WHY}"
            yield Delete(live.id, why, Cause.INTENT, expect=Expect(live.uid), controller=live.controller, reason=Reason.ORPHANED)
    finalizers = orphan.finalizers
    own = [finalizer for finalizer in policy.finalizers if finalizer in finalizers]
    # An object that is released last waits for those that use it or may use it, and for the finalizers of others.
    is_too_early = bool(owned) or in_use or (policy.release_last and len(own) < len(finalizers))
    if own and owned:
        ending = [kept(live, policies.get(live.id.kind, PLAIN)) for live in owned if live.deleting_since is not None]
        yield from (wait for wait in ending if wait is not None)
        if count := ending.count(None):
            yield Wait(orphan.id, f"{WHY}; waits for {count} object{'s' if count > 1 else ''} of it to be gone")
    if own and not is_too_early:
        yield Release(
            orphan.id,
            f"it {WHY}",
            Cause.INTENT,
            expect=Expect(orphan.uid),
            finalizers=tuple(own),
            existing=tuple(finalizers),
            controller=orphan.controller,
            reason=Reason.ORPHANED,
        )
