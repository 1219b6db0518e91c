"""A guard refuses what looks like an accident, and says what to do."""

import pytest

from engine.guard import Limits, refuse_unowned_cluster, within_budget
from engine.ids import ResourceId
from engine.observed import Live, Observed, World, live, slice_of
from engine.operation import Cause, Operation
from engine.plan import Plan
from engine.verb import Verb
from resources.registry import BLUEPRINTS


def thing(number: int, kind: str = "Service") -> ResourceId:
    """An identity."""
    return ResourceId("", kind, "default", f"thing-{number}")


def delete(number: int, *, intended: bool = False) -> Operation:
    """A delete, asked for or not."""
    return Operation(Verb.DELETE, thing(number), "nothing asks for it", Cause.DRIFT, intended=intended)


def world_of(count: int, *, orphans: bool = False) -> World:
    """A root with so many objects, or the objects without their root."""
    lives = [
        live({"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"thing-{n}", "namespace": "default"}}) for n in range(count)
    ]
    root = live({"apiVersion": "v1", "kind": "Root", "metadata": {"name": "root", "namespace": "default", "uid": "u"}})
    return World((), tuple(lives)) if orphans else World((Observed(root, {"": slice_of(lives)}),))


@pytest.mark.parametrize(("observed", "deletes", "refused"), [(5, 10, False), (5, 11, True), (200, 20, False), (200, 21, True)])
def test_ten_or_a_tenth_may_go_unasked(observed: int, deletes: int, refused: bool) -> None:
    plan = Plan(thing(0, "Root"), tuple(map(delete, range(deletes))))

    (judged,) = within_budget([plan], world_of(observed), Limits())

    assert bool(judged.objections) is refused


def test_what_was_asked_for_is_never_counted() -> None:
    plan = Plan(thing(0, "Root"), tuple(delete(number, intended=True) for number in range(500)))

    (judged,) = within_budget([plan], world_of(500), Limits(max_deletes=0))

    assert judged.objections == ()


def test_the_budget_is_one_for_all_roots_and_stops_only_those_that_use_it() -> None:
    greedy, other, innocent = (
        Plan(thing(0, "Root"), (delete(1),)),
        Plan(thing(1, "Root"), (delete(2),)),
        Plan(thing(2, "Root"), (delete(3, intended=True),)),
    )

    judged = within_budget([greedy, other, innocent], world_of(3), Limits(max_deletes=1))

    assert [bool(plan.objections) for plan in judged] == [True, True, False]
    assert "--max-deletes 2" in judged[0].objections[0].message


def test_children_without_any_root_are_a_wrong_place_not_a_wish() -> None:
    (objection,) = refuse_unowned_cluster(world_of(2, orphans=True), BLUEPRINTS)

    assert "no root is seen, but 2 of their objects are" in objection.message
    assert refuse_unowned_cluster(world_of(2), BLUEPRINTS) == ()
    assert refuse_unowned_cluster(World(()), BLUEPRINTS) == ()


def test_what_somebody_has_deleted_and_what_that_owns_is_no_sign_of_a_wrong_place() -> None:
    def child(name: str, owner: str = "", **metadata: str) -> Live:
        owners = [{"apiVersion": "v1", "kind": "Service", "name": owner, "uid": owner}] if owner else []
        body = {"name": name, "namespace": "default", "uid": name, "ownerReferences": owners, **metadata}
        return live({"apiVersion": "v1", "kind": "Service", "metadata": body})

    gone = child("group", deletionTimestamp="2026-01-01T00:00:00Z")
    below = (child("clique", "group"), child("pod", "clique"))
    circle = (child("a", "b"), child("b", "a"))

    assert refuse_unowned_cluster(World((), (gone, *below)), BLUEPRINTS) == ()
    assert "1 of their objects" in refuse_unowned_cluster(World((), (gone, *below, child("other"))), BLUEPRINTS)[0].message
    assert "2 of their objects" in refuse_unowned_cluster(World((), (gone, *circle)), BLUEPRINTS)[0].message


def test_a_root_of_a_kind_that_could_not_own_them_changes_nothing_about_it() -> None:
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "web"}
    metadata = {"name": "web-0", "namespace": "default", "uid": "s", "labels": labels}
    service = live({"apiVersion": "v1", "kind": "Service", "metadata": metadata})

    def seen(kind: str) -> Observed:
        return Observed(live({"apiVersion": "grove.io/v1alpha1", "kind": kind, "metadata": {"name": "other", "uid": "o"}}), {})

    def refused(world: World) -> bool:
        return bool(refuse_unowned_cluster(world, BLUEPRINTS))

    assert refused(World((seen("ClusterTopologyBinding"),), (service,)))
    assert not refused(World((seen("ClusterTopologyBinding"), seen("PodCliqueSet")), (service,)))
    assert not refused(World((), (service,), {"PodCliqueSet": "403"}))
    assert refused(World((), (service,), {"ClusterTopologyBinding": "403"}))
