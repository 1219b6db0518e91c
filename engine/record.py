"""Record: an object in which a command notes what it works on, before the first change and again when everything is done."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from engine.diff import Rules, compare, covers
from engine.ids import ResourceId
from engine.namespaces import held_back
from engine.observed import Live, World
from engine.operation import Cause, Expect, Operation
from engine.plan import Objection, Plan, changed
from engine.reason import Reason
from engine.removal import Removal, is_removed, unapplied
from engine.resource import PLAIN, Body
from engine.verb import Verb


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
        return Operation(Verb.CREATE, record.id, record.why, Cause.INTENT, body=target, reason=Reason.MANIFEST_CHANGED)
    difference = compare(target, live.body, Rules(PLAIN, Cause.INTENT))
    return Operation(
        Verb.PATCH,
        record.id,
        record.why,
        Cause.INTENT,
        body=difference.patch,
        changes=difference.changes,
        expect=Expect(live.uid, live.revision),
        target=target,
        reason=Reason.MANIFEST_CHANGED,
    )
