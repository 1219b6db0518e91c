"""A guard refuses what looks like an accident, and says what to do."""

import pytest

from engine.guard import Limits, refuse_unowned_cluster, within_budget
from engine.ids import ResourceId
from engine.observed import Live, Observed, Unlisted, World, live, slice_of
from engine.operation import Cause, Delete, Operation
from engine.plan import Objection, Plan
from resources.registry import BLUEPRINTS
from tests.laws.toy import CONFIGURATION


def thing(number: int, kind: str = "Service") -> ResourceId:
    """An identity."""
    return ResourceId("", kind, "default", f"thing-{number}")


def delete(number: int, *, intended: bool = False) -> Operation:
    """A delete, intended or not."""
    return Delete(thing(number), "no set owns it", Cause.DRIFT, intended=intended)


def world_of(count: int, *, orphans: bool = False) -> World:
    """A root with that many objects, or the objects without their root."""
    lives = [
        live({"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"thing-{n}", "namespace": "default"}}) for n in range(count)
    ]
    root = live({"apiVersion": "v1", "kind": "Root", "metadata": {"name": "root", "namespace": "default", "uid": "u"}})
    return World((), tuple(lives)) if orphans else World((Observed(root, {"": slice_of(lives)}),))


def refused_in(world: World) -> tuple[Objection, ...]:
    """What the guard of clusters without roots says."""
    return refuse_unowned_cluster(world, BLUEPRINTS, CONFIGURATION)


@pytest.mark.parametrize(("observed", "deletes", "refused"), [(5, 10, False), (5, 11, True), (200, 20, False), (200, 21, True)])
def test_ten_or_a_tenth_of_the_objects_may_be_deleted_unintended(observed: int, deletes: int, refused: bool) -> None:
    plan = Plan(thing(0, "Root"), tuple(map(delete, range(deletes))))

    (judged,) = within_budget([plan], world_of(observed).roots, Limits())

    assert bool(judged.objections) is refused


def test_intended_deletes_never_count() -> None:
    plan = Plan(thing(0, "Root"), tuple(delete(number, intended=True) for number in range(500)))

    (judged,) = within_budget([plan], world_of(500).roots, Limits(max_deletes=0))

    assert judged.objections == ()


def test_the_budget_is_one_for_all_roots_and_stops_only_those_that_use_it() -> None:
    first, second, innocent = (
        Plan(thing(0, "Root"), (delete(1),)),
        Plan(thing(1, "Root"), (delete(2),)),
        Plan(thing(2, "Root"), (delete(3, intended=True),)),
    )

    judged = within_budget([first, second, innocent], world_of(3).roots, Limits(max_deletes=1))

    assert [bool(plan.objections) for plan in judged] == [True, True, False]
    assert judged[0].objections[0].message == "2 unintended deletes, 1 allowed: check them, then allow them with --max-deletes 2"


def test_children_without_any_root_are_refused_as_a_wrong_cluster() -> None:
    (objection,) = refused_in(world_of(2, orphans=True))

    assert "no root was found, but 2 child objects exist" in objection.message
    assert refused_in(world_of(2)) == ()
    assert refused_in(World(())) == ()


def test_children_that_are_being_deleted_and_what_they_own_are_no_sign_of_a_wrong_cluster() -> None:
    def child(name: str, owner: str = "", **metadata: str) -> Live:
        owners = [{"apiVersion": "v1", "kind": "Service", "name": owner, "uid": owner}] if owner else []
        body = {"name": name, "namespace": "default", "uid": name, "ownerReferences": owners, **metadata}
        return live({"apiVersion": "v1", "kind": "Service", "metadata": body})

    terminating = child("group", deletionTimestamp="2026-01-01T00:00:00Z")
    owned = (child("clique", "group"), child("pod", "clique"))
    cycle = (child("a", "b"), child("b", "a"))

    assert refused_in(World((), (terminating, *owned))) == ()
    assert "but 1 child object exists" in refused_in(World((), (terminating, *owned, child("other"))))[0].message
    assert "but 2 child objects" in refused_in(World((), (terminating, *cycle)))[0].message


def test_what_the_garbage_collector_is_about_to_delete_is_no_sign_of_a_wrong_cluster() -> None:
    def child(kind: str, name: str, owner: tuple[str, str]) -> Live:
        owners = [{"apiVersion": "grove.io/v1alpha1", "kind": owner[0], "name": owner[1], "uid": owner[1], "controller": True}]
        metadata = {"name": name, "namespace": "default", "uid": name, "ownerReferences": owners}
        return live({"apiVersion": "v1", "kind": kind, "metadata": metadata})

    left = (child("PodGroup", "web-0", ("PodGang", "gone")), child("Pod", "web-0-front", ("PodGroup", "web-0")))
    gang = child("PodGang", "gone", ("PodCliqueSet", "web"))

    assert refused_in(World((), left)) == ()
    assert "but 3 child objects exist" in refused_in(World((), (gang, *left)))[0].message
    # What owns them may exist: its kind could not be listed, or its definition is missing. The owner of the gang is a root.
    assert "but 2 child objects exist" in refused_in(World((), left, {"PodGang": Unlisted("403")}))[0].message
    assert "but 2 child objects exist" in refused_in(World((), left, unserved=frozenset({"PodGang"})))[0].message
    assert "but 1 child object exists" in refused_in(World((), (gang,)))[0].message


def test_only_a_root_of_a_kind_that_could_own_the_children_speaks_for_the_right_cluster() -> None:
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "web"}
    metadata = {"name": "web-0", "namespace": "default", "uid": "s", "labels": labels}
    service = live({"apiVersion": "v1", "kind": "Service", "metadata": metadata})

    def root(kind: str) -> Observed:
        return Observed(live({"apiVersion": "grove.io/v1alpha1", "kind": kind, "metadata": {"name": "other", "uid": "o"}}), {})

    def refused(world: World) -> bool:
        return bool(refused_in(world))

    assert refused(World((root("ClusterTopologyBinding"),), (service,)))
    assert not refused(World((root("ClusterTopologyBinding"), root("PodCliqueSet")), (service,)))
    assert not refused(World((), (service,), {"PodCliqueSet": Unlisted("403")}))
    assert refused(World((), (service,), {"ClusterTopologyBinding": Unlisted("403")}))
