"""Staleness: whether the roots are still those for which a plan was approved."""

from collections.abc import Iterator, Mapping

from engine.approval.approval import Approval, Deviation, ObjectKey, RootState, root_state
from engine.diff import covers, same
from engine.ids import ResourceId
from engine.intent import Removal
from engine.leaves import leaves
from engine.observed import Live, World
from engine.operation import Cause, Change
from engine.paths import spell
from engine.proposal import proposed_root
from engine.report.fields import as_shown, sides
from engine.resource import Body
from engine.scalers import replicas_of
from engine.verb import Verb

ABSENT = "absent"
NAMED = 3
"""How many edited fields of a spec are named."""
REMOVING = (Verb.DELETE, Verb.REPLACE, Verb.RELEASE)


def changed_roots(approval: Approval, world: World) -> Iterator[tuple[ResourceId, Deviation]]:
    """Each root that is not as it was when the plan was approved, and in what it differs.

    A root that already is as the plan makes it does not differ: the plan may have been carried out in part or in full.
    """
    existing = {observed.root.id: observed.root for observed in world.roots if observed.root.uid}
    manifests = {proposed_root(manifest).id: manifest for manifest in approval.manifests}
    removed = {each.subject for each in approval.allow if each.verb in REMOVING}
    for then in approval.roots:
        now = existing.get(then.id)
        if ObjectKey(*then.id) in removed and (now is None or (now.uid == then.uid and now.deleting_since is not None)):
            continue
        if deviation := _deviation(then, now, manifests.get(then.id)):
            yield then.id, deviation


def changed_scalers(approval: Approval, world: World) -> Iterator[tuple[ResourceId, Deviation]]:
    """The root of each scaler that has neither the number that it had when the plan was approved nor the one that the plan asks for, with
    how it differs."""
    roots = {observed.root.id: observed for observed in world.roots}
    for then in approval.scalers:
        observed = roots.get(then.root)
        now = replicas_of(observed.find(then.id) or observed.foreign.get(then.id)) if observed is not None else None
        if now not in (then.live, then.asked):
            yield then.root, Deviation(str(then.id), _counted(then.live), _counted(now))


def _counted(replicas: int | None) -> str:
    return f"{replicas} replica{'' if replicas == 1 else 's'}" if replicas is not None else ABSENT


def changed_removals(approval: Approval, removals: Mapping[ResourceId, Removal], world: World) -> Iterator[tuple[ResourceId, Deviation]]:
    """Each existing root that would be removed now and was not to be when the plan was approved, or the other way round.

    `removals`: what would be removed now.
    """
    for id in sorted(observed.root.id for observed in world.roots if observed.root.uid):
        then, now = approval.removals.get(id), removals.get(id)
        if (then is None) != (now is None):
            yield id, Deviation(str(id), _planned(then), _planned(now))


def _planned(removal: Removal | None) -> str:
    return f"to be removed: {removal.why}" if removal is not None else "not to be removed"


def _deviation(then: RootState, live: Live | None, manifest: Body | None) -> Deviation | None:
    """How a root differs; None if it does not."""
    about = str(then.id)
    if live is None:
        return Deviation(about, _spelled(then), ABSENT) if then.uid else None
    now = root_state(live)
    is_applied = manifest is not None and covers(manifest.get("spec"), live.body.get("spec"))
    if then.uid != now.uid:
        is_created = not then.uid and is_applied and not now.is_deleting
        return None if is_created else Deviation(about, _spelled(then), _spelled(now))
    if then.is_deleting != now.is_deleting:
        return Deviation(about, _spelled(then), _spelled(now))
    if same(then.spec, now.spec) or is_applied:
        return None
    return Deviation(about, _spelled(then), f"{_spelled(now)} with another spec: {_edits(then, now)}")


def _edits(then: RootState, now: RootState) -> str:
    """The fields of the spec that have other values, each with both, the first of them only."""
    edited = [as_shown(then.id.kind, leaf) for leaf in leaves(Change(("spec",), then.spec, now.spec, Cause.INTENT))]
    texts = [f"{spell(edit.path)}{': order' if edit.order else ''} {' → '.join(sides(edit))}" for edit in edited[:NAMED]]
    more = [f"{len(edited) - NAMED} more"] if len(edited) > NAMED else []
    return ", ".join((*texts, *more))


def _spelled(state: RootState) -> str:
    if not state.uid:
        return ABSENT
    return f"generation {state.generation} (uid {state.uid}){', being deleted' if state.is_deleting else ''}"
