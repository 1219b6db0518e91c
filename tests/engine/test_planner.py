"""What a plan does about one object, whoever else uses it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from engine.blueprint import Desired
from engine.graph import graph, part
from engine.ids import Owner, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Unlisted, World, live, slice_of
from engine.operation import Operation, body_of
from engine.paths import stamp
from engine.plan import Plan, Wait
from engine.planner import plan, with_orphans
from engine.reason import Reason
from engine.resource import NOW, PLAIN, Drop, Policy, Resource, Want, held
from engine.resource_plan import keepers
from engine.verb import Verb
from resources.registry import BLUEPRINTS
from tests.laws.toy import CONFIGURATION

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

ROOT = ResourceId("x.io", "Root", "default", "root")
THING = ResourceId("x.io", "Thing", "default", "thing")
CHILD = ResourceId("x.io", "Thing", "default", "child")
OURS = {"apiVersion": "x.io/v1", "kind": "Root", "name": "root", "uid": "root-uid", "controller": False}
THEIRS = {"apiVersion": "x.io/v1", "kind": "Root", "name": "other", "uid": "other-uid"}


def body(id: ResourceId, **metadata: Any) -> dict[str, Any]:
    """An object as the server has it."""
    own = {"name": id.name, "namespace": id.namespace, "uid": f"{id.name}-uid", "resourceVersion": "7", **metadata}
    return {"apiVersion": "x.io/v1", "kind": id.kind, "metadata": own, "spec": {"a": 1}}


def planned(resource: Resource, existing: Mapping[str, Any] | None) -> Plan:
    """The plan for one resource and its object."""
    return planned_for(resource, *([existing] if existing else []))


def planned_for(resource: Resource, *existing: Mapping[str, Any], child: Resource | None = None, **observed: Any) -> Plan:
    """The plan for a resource, and perhaps one that it owns, where these objects exist."""
    resources = [resource, child] if child else [resource]
    world = Observed(live(body(ROOT)), {"one": slice_of(map(live, existing))}, **observed)
    return plan(Desired(graph([part("one", resources)])), world, NOON, {"Thing": frozenset({"Pod"})}, Memo())


OWNERS = (Owner(ROOT, "x.io/v1", controller=False),)
SHARED = Policy(shared=True)


def thing(policy: Policy = SHARED, **over: Any) -> Want:
    """The thing, owned by the root among others."""
    manifest = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "thing", "namespace": "default"}, "spec": {"a": 1}}
    return Want(THING, "somebody asks", OWNERS, body=manifest, policy=policy, **over)


def dropped(policy: Policy = SHARED) -> Drop:
    """The thing, no longer wanted."""
    return Drop(THING, "somebody asks", OWNERS, policy=policy)


def owned_by_thing() -> Resource:
    """A thing that the thing owns."""
    return Want(CHILD, "part", (Owner(THING, "x.io/v1"),), body={"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "child"}})


def only(plan: Plan) -> Operation:
    """The one operation of a plan."""
    (operation,) = plan.operations
    return operation


def test_an_owner_is_added_to_those_that_exist() -> None:
    operation = only(planned(thing(), body(THING, ownerReferences=[THEIRS])))

    assert operation.verb is Verb.PATCH
    assert [entry["uid"] for entry in body_of(operation)["metadata"]["ownerReferences"]] == ["other-uid", "root-uid"]


def test_a_root_that_drops_a_shared_object_removes_only_its_own_reference() -> None:
    operation = only(planned(dropped(), body(THING, ownerReferences=[THEIRS, OURS])))

    assert operation.verb is Verb.PATCH
    assert body_of(operation) == {"metadata": {"ownerReferences": [THEIRS]}}
    assert (operation.expect.uid, operation.expect.revision) == ("thing-uid", "7")


def test_the_last_owner_deletes() -> None:
    assert only(planned(dropped(), body(THING, ownerReferences=[OURS]))).verb is Verb.DELETE


def test_a_shared_object_that_a_root_has_dropped_is_left_alone() -> None:
    assert planned(dropped(), body(THING, ownerReferences=[THEIRS])).operations == ()


def test_a_delete_releases_our_finalizer_afterwards_and_no_other() -> None:
    policy = Policy(finalizers=("ours",))
    delete, release = planned(dropped(policy), body(THING, finalizers=["theirs", "ours"])).operations

    assert (delete.verb, release.verb) == (Verb.DELETE, Verb.RELEASE)
    assert release.after == {delete.key}
    assert body_of(release) == {"finalizers": ["ours"], "of": ["theirs", "ours"]}


def test_a_change_of_an_immutable_field_replaces_the_object() -> None:
    existing = {**body(THING, ownerReferences=[OURS]), "spec": {"a": 2}}
    operation = only(planned(thing(policy=Policy(immutable=(("spec",),))), existing))

    assert operation.verb is Verb.REPLACE
    assert operation.expect.uid == "thing-uid"


def test_a_held_resource_is_left_to_a_later_pass_or_blocked_as_it_says() -> None:
    later, blocked = planned(held(thing(), "somebody asks"), None), planned(held(thing(), "somebody asks", blocked=True), None)

    assert (later.operations, blocked.operations) == ((), ())
    assert (later.later, later.blocked) == ((Wait(THING, "somebody asks"),), ())
    assert (blocked.later, blocked.blocked) == ((), (Wait(THING, "somebody asks", blocked=True),))


def test_an_object_whose_owner_is_deferred_waits_for_it_and_is_blocked_if_the_owner_is() -> None:
    later = planned_for(held(thing(), "somebody asks"), child=owned_by_thing())
    blocked = planned_for(held(thing(), "somebody asks", blocked=True), child=owned_by_thing())

    assert [wait.id for wait in later.later] == [THING, CHILD]
    assert [wait.id for wait in blocked.blocked] == [THING, CHILD]
    assert blocked.blocked[1].why == "waits for its owner Thing/default/thing, which is not created yet"


def test_kinds_that_cannot_be_listed_block() -> None:
    existing = body(THING, ownerReferences=[OURS])
    unlisted = planned_for(thing(), incomplete=frozenset({"Thing"}))
    deleted = planned_for(dropped(), existing, incomplete=frozenset({"Pod"}))
    changed = planned_for(thing(), {**existing, "spec": {"a": 2}}, incomplete=frozenset({"Pod"}))
    unintended = planned_for(owned_by_thing(), existing, incomplete=frozenset({"Pod", "Service"}))

    assert [wait.why for wait in unlisted.blocked] == ["Thing objects could not be listed completely"]
    assert [wait.why for wait in deleted.blocked] == ["is deleted once Pod objects can be listed completely"]
    assert [wait.why for wait in changed.blocked] == ["is changed once Pod objects can be listed completely"]
    assert [wait.why for wait in unintended.blocked] == [
        "Root root does not specify it; it is deleted once Pod, Service objects can be listed completely"
    ]


def test_a_kind_that_is_not_served_blocks_what_would_be_created_and_what_it_would_own() -> None:
    blocked = planned_for(thing(), child=owned_by_thing(), unserved=frozenset({"Thing"}))
    existing = planned_for(thing(), body(THING, ownerReferences=[OURS]), unserved=frozenset({"Thing"}))

    why = "the cluster does not serve Thing of x.io/v1"
    assert [(wait.id, wait.why, wait.reason) for wait in blocked.blocked] == [(id, why, Reason.NOT_SERVED) for id in (THING, CHILD)]
    assert (blocked.operations, existing.blocked) == ((), ())


def test_a_name_that_a_foreign_object_has_blocks_unless_that_object_is_being_deleted() -> None:
    foreign, terminating = live(body(THING)), live(body(THING, deletionTimestamp="2026-01-01T00:00:00Z"))
    blocked, later = planned_for(thing(), foreign={THING: foreign}), planned_for(thing(), foreign={THING: terminating})

    assert [wait.why for wait in blocked.blocked] == ["Thing default/thing already exists but is not controlled by Root default/root"]
    assert [wait.id for wait in later.later] == [THING]


def test_an_object_that_is_being_deleted_is_created_again_later() -> None:
    plan = planned(thing(), body(THING, deletionTimestamp="2026-01-01T00:00:00Z"))

    assert plan.operations == ()
    assert plan.later == (Wait(THING, "is being deleted; it is created again once it is gone", reason=Reason.TERMINATING),)


def test_finalizers_of_others_are_waited_for() -> None:
    policy = Policy(finalizers=("ours",), release_last=True)
    plan = planned(dropped(policy), body(THING, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["theirs", "ours"]))

    assert plan.operations == ()
    assert plan.later == (Wait(THING, "somebody asks; waits for the removal of finalizer theirs"),)


def test_an_object_and_its_status_are_never_written_in_one_pass() -> None:
    existing = body(THING, ownerReferences=[OURS])
    both = planned(thing(status={"phase": "New"}), {**existing, "spec": {"a": 2}})
    status = planned(thing(status={"phase": "New"}), existing)

    assert only(both).verb is Verb.PATCH
    assert only(status).verb is Verb.STATUS


def test_a_plan_has_a_mark_instead_of_the_time_of_writing() -> None:
    operation = only(planned(thing(status={"since": NOW}), body(THING, ownerReferences=[OURS])))

    assert body_of(operation) == {"status": {"since": NOW}}
    assert stamp(body_of(operation), "2026-01-01T00:00:00Z") == {"status": {"since": "2026-01-01T00:00:00Z"}}


def test_objects_of_parts_that_the_graph_does_not_have_are_deleted_in_the_order_of_their_parts() -> None:
    names = [f"part-{number:02}" for number in range(40)]
    slices = {name: slice_of([live(body(THING._replace(name=name)))]) for name in reversed(names)}
    observed = Observed(live(body(ROOT)), slices)
    incomplete = replace(observed, incomplete=frozenset({"Pod"}))

    assert [operation.id.name for operation in plan(Desired(graph(())), observed, NOON, {}, Memo()).operations] == names
    assert [wait.id.name for wait in plan(Desired(graph(())), incomplete, NOON, {}, Memo()).deferred] == names


@pytest.mark.parametrize("policy", [Policy(), Policy(finalizers=("ours",))])
def test_a_removed_object_that_finalizers_of_others_keep_is_blocked_and_names_them(policy: Policy) -> None:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [OURS]}
    (kept,) = planned(dropped(policy), body(THING, finalizers=["theirs"], **deleted)).blocked
    collected = planned(dropped(policy), body(THING, finalizers=["foregroundDeletion"], **deleted))
    ending = planned(dropped(policy), body(THING, finalizers=["theirs"], deletionGracePeriodSeconds=30, **deleted))

    assert (kept.id, kept.reason, "finalizer theirs keeps it" in kept.why) == (THING, Reason.KEPT, True)
    assert (collected.deferred, ending.deferred) == ((), ())


CLIQUE_FINALIZER = "grove.io/podclique.grove.io"


def orphan(kind: str, name: str, *, owner: str = "", deleted: bool = True, **metadata: Any) -> Live:
    """A child of a set that is gone."""
    group = "v1" if kind == "Pod" else "grove.io/v1alpha1"
    own = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {"app.kubernetes.io/part-of": "gone"}, **metadata}
    if owner:
        own["ownerReferences"] = [{"kind": "PodClique", "name": owner, "uid": f"uid-{owner}", "controller": True}]
    if deleted:
        own["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return live({"apiVersion": group, "kind": kind, "metadata": own})


def cleanup(*orphans: Live, incomplete: dict[str, str] | None = None) -> list[tuple[Verb, str]]:
    """The operations on them."""
    plans = with_orphans(
        (), BLUEPRINTS, World((), orphans, {kind: Unlisted(why) for kind, why in (incomplete or {}).items()}), CONFIGURATION
    )
    return [(operation.verb, operation.id.name) for plan in plans for operation in plan.operations]


def test_a_clique_without_pods_loses_our_finalizer_and_keeps_those_of_others() -> None:
    clique = orphan("PodClique", "c", finalizers=["theirs", CLIQUE_FINALIZER])
    (plan,) = with_orphans((), BLUEPRINTS, World((), (clique,)), CONFIGURATION)
    (operation,) = plan.operations

    assert plan.root == ResourceId("grove.io", "PodCliqueSet", "default", "gone")
    assert body_of(operation) == {"finalizers": [CLIQUE_FINALIZER], "of": ["theirs", CLIQUE_FINALIZER]}
    assert operation.expect.uid == "uid-c"


def test_its_pods_are_deleted_first() -> None:
    clique = orphan("PodClique", "c", finalizers=[CLIQUE_FINALIZER])

    assert cleanup(clique, orphan("Pod", "p", owner="c", deleted=False)) == [(Verb.DELETE, "p")]
    assert cleanup(clique, orphan("Pod", "p", owner="c")) == []
    assert cleanup(clique) == [(Verb.RELEASE, "c")]


def test_a_domain_is_released_after_everything_that_could_use_it() -> None:
    domain = orphan("ComputeDomain", "d", finalizers=["grove.io/computedomain-finalizer"])
    account = orphan("ServiceAccount", "a", deleted=False)

    assert cleanup(domain, account, orphan("Pod", "p", deleted=False)) == []
    assert cleanup(domain, account, orphan("PodClique", "c", deleted=False)) == []
    assert cleanup(domain, account) == [(Verb.RELEASE, "d")]


def test_objects_that_nobody_has_deleted_stay() -> None:
    clique = orphan("PodClique", "c", deleted=False, finalizers=[CLIQUE_FINALIZER])

    assert cleanup(clique, orphan("Pod", "p", owner="c", deleted=False)) == []


def test_nothing_is_released_while_a_kind_of_the_set_cannot_be_listed() -> None:
    assert cleanup(orphan("PodClique", "c", finalizers=[CLIQUE_FINALIZER]), incomplete={"Pod": "403"}) == []


def test_kinds_that_a_set_does_not_use_need_not_be_listed() -> None:
    clique = orphan("PodClique", "c", finalizers=[CLIQUE_FINALIZER])

    assert cleanup(clique, incomplete={"ClusterTopologyBinding": "403"}) == [(Verb.RELEASE, "c")]


def test_operations_on_orphans_with_the_name_of_an_existing_root_are_in_its_plan() -> None:
    root = ResourceId("grove.io", "PodCliqueSet", "default", "gone")
    plans = with_orphans((Plan(root),), BLUEPRINTS, World((), (orphan("PodClique", "c", finalizers=[CLIQUE_FINALIZER]),)), CONFIGURATION)

    assert [len(plan.operations) for plan in plans] == [1]


def test_the_body_of_an_object_without_finalizers_of_others_is_not_read_to_learn_that_none_keeps_it() -> None:
    ours = body(THING, finalizers=["x.io/ours"], deletionTimestamp="2026-01-01T11:00:00Z")

    assert keepers(live(ours, source=b"unreadable"), Policy(finalizers=("x.io/ours",))) == ()
    assert keepers(live(ours), PLAIN) == ("x.io/ours",)
    assert keepers(live({**ours, "metadata": {**ours["metadata"], "deletionGracePeriodSeconds": 30}}), PLAIN) == ()
