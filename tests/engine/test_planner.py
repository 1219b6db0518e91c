"""What a plan does about one object, whoever else has a part in it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from engine.blueprint import Desired
from engine.graph import graph, part
from engine.ids import Owner, ResourceId
from engine.memo import Memo
from engine.observed import Observed, live, slice_of
from engine.operation import Operation
from engine.plan import Plan
from engine.planner import plan, stamped
from engine.resource import NOW, Policy, Resource, Stance
from engine.verb import Verb

ROOT = ResourceId("x.io", "Root", "default", "root")
THING = ResourceId("x.io", "Thing", "default", "thing")
OURS = {"apiVersion": "x.io/v1", "kind": "Root", "name": "root", "uid": "root-uid", "controller": False}
THEIRS = {"apiVersion": "x.io/v1", "kind": "Root", "name": "other", "uid": "other-uid"}


def body(id: ResourceId, **metadata: Any) -> dict[str, Any]:
    """An object as the server has it."""
    own = {"name": id.name, "namespace": id.namespace, "uid": f"{id.name}-uid", "resourceVersion": "7", **metadata}
    return {"apiVersion": "x.io/v1", "kind": id.kind, "metadata": own, "spec": {"a": 1}}


def planned(resource: Resource, there: Mapping[str, Any] | None) -> Plan:
    """The plan for one wish and one object."""
    lives = [live(there)] if there else []
    observed = Observed(live(body(ROOT)), {"one": slice_of(lives)})
    return plan(Desired(graph([part("one", [resource])])), observed, {}, Memo())


def wish(stance: Stance = Stance.WANT, policy: Policy | None = None, **over: Any) -> Resource:
    """A wish for the thing, owned by the root with_foreign others."""
    owners = (Owner(ROOT, "x.io/v1", controller=False),)
    made = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "thing", "namespace": "default"}, "spec": {"a": 1}}
    return Resource(THING, made, "somebody asks", owners, stance=stance, policy=policy or Policy(shared=True), **over)


def only(found: Plan) -> Operation:
    """The one operation of a plan."""
    (operation,) = found.operations
    return operation


def test_one_more_owner_is_added_beside_those_that_are_there() -> None:
    operation = only(planned(wish(), body(THING, ownerReferences=[THEIRS])))

    assert operation.verb is Verb.PATCH
    assert [entry["uid"] for entry in operation.body["metadata"]["ownerReferences"]] == ["other-uid", "root-uid"]


def test_who_lets_go_of_a_shared_object_takes_only_its_own_reference() -> None:
    operation = only(planned(wish(Stance.DROP), body(THING, ownerReferences=[THEIRS, OURS])))

    assert operation.verb is Verb.PATCH
    assert operation.body == {"metadata": {"ownerReferences": [THEIRS]}}
    assert (operation.expect.uid, operation.expect.revision) == ("thing-uid", "7")


def test_the_last_owner_deletes() -> None:
    assert only(planned(wish(Stance.DROP), body(THING, ownerReferences=[OURS]))).verb is Verb.DELETE


def test_who_has_let_go_leaves_a_shared_object_alone() -> None:
    assert planned(wish(Stance.DROP), body(THING, ownerReferences=[THEIRS])).operations == ()


def test_a_deletion_releases_our_finalizer_after_the_delete_and_nobody_elses() -> None:
    policy = Policy(finalizers=("ours",))
    delete, release = planned(wish(Stance.DROP, policy), body(THING, finalizers=["theirs", "ours"])).operations

    assert (delete.verb, release.verb) == (Verb.DELETE, Verb.RELEASE)
    assert release.after == {delete.key}
    assert release.body == {"finalizers": ["ours"], "of": ["theirs", "ours"]}


def test_what_the_server_does_not_let_us_change_is_replaced() -> None:
    there = {**body(THING, ownerReferences=[OURS]), "spec": {"a": 2}}
    operation = only(planned(wish(policy=Policy(immutable=(("spec",),))), there))

    assert operation.verb is Verb.REPLACE
    assert operation.expect.uid == "thing-uid"


def test_what_is_held_is_left_alone_and_says_why() -> None:
    found = planned(wish(Stance.HOLD), None)

    assert found.operations == ()
    assert [(held.id, held.why) for held in found.deferred] == [(THING, "somebody asks")]


def test_what_is_being_deleted_is_made_again_once_it_is_gone() -> None:
    found = planned(wish(), body(THING, deletionTimestamp="2026-01-01T00:00:00Z"))

    assert found.operations == ()
    assert "made again once it is gone" in found.deferred[0].why


def test_object_and_state_are_never_written_on_one_judgement() -> None:
    there = body(THING, ownerReferences=[OURS])
    both = planned(wish(status={"phase": "New"}), {**there, "spec": {"a": 2}})
    state = planned(wish(status={"phase": "New"}), there)

    assert only(both).verb is Verb.PATCH
    assert only(state).verb is Verb.STATUS


def test_the_moment_of_writing_is_filled_in_last() -> None:
    found = planned(wish(status={"since": NOW}), body(THING, ownerReferences=[OURS]))
    moment = datetime(2026, 1, 1, tzinfo=UTC)

    assert only(found).body == {"status": {"since": NOW}}
    assert only(stamped(found, moment)).body == {"status": {"since": "2026-01-01T00:00:00Z"}}
