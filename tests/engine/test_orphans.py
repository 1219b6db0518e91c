"""What only our finalizer holds, after its root has gone, is let go of; what it owns goes first."""

from typing import Any

from engine.ids import ResourceId
from engine.observed import Live, World, live
from engine.orphans import with_orphans
from engine.plan import Plan
from engine.verb import Verb
from resources.registry import BLUEPRINTS
from tests.laws.toy import SETUP

CLIQUE_FINALIZER = "grove.io/podclique.grove.io"


def stray(kind: str, name: str, *, owner: str = "", deleted: bool = True, **metadata: Any) -> Live:
    """A child of a set that is gone."""
    group = "v1" if kind == "Pod" else "grove.io/v1alpha1"
    own = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {"app.kubernetes.io/part-of": "gone"}, **metadata}
    if owner:
        own["ownerReferences"] = [{"kind": "PodClique", "name": owner, "uid": f"uid-{owner}", "controller": True}]
    if deleted:
        own["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return live({"apiVersion": group, "kind": kind, "metadata": own})


def farewells(*orphans: Live, incomplete: dict[str, str] | None = None) -> list[tuple[Verb, str]]:
    """What becomes of them."""
    plans = with_orphans((), BLUEPRINTS, World((), orphans, incomplete or {}), SETUP)
    return [(operation.verb, operation.id.name) for plan in plans for operation in plan.operations]


def test_a_clique_that_nothing_relies_on_loses_our_finalizer_and_keeps_those_of_others() -> None:
    clique = stray("PodClique", "c", finalizers=["theirs", CLIQUE_FINALIZER])
    (plan,) = with_orphans((), BLUEPRINTS, World((), (clique,)), SETUP)
    (operation,) = plan.operations

    assert plan.root == ResourceId("grove.io", "PodCliqueSet", "default", "gone")
    assert operation.body == {"finalizers": [CLIQUE_FINALIZER], "of": ["theirs", CLIQUE_FINALIZER]}
    assert operation.expect.uid == "uid-c"


def test_its_pods_go_first() -> None:
    clique = stray("PodClique", "c", finalizers=[CLIQUE_FINALIZER])

    assert farewells(clique, stray("Pod", "p", owner="c", deleted=False)) == [(Verb.DELETE, "p")]
    assert farewells(clique, stray("Pod", "p", owner="c")) == []
    assert farewells(clique) == [(Verb.RELEASE, "c")]


def test_a_domain_outlasts_what_could_use_it_and_is_not_kept_by_what_could_not() -> None:
    domain = stray("ComputeDomain", "d", finalizers=["grove.io/computedomain-finalizer"])
    account = stray("ServiceAccount", "a", deleted=False)

    assert farewells(domain, account, stray("Pod", "p", deleted=False)) == []
    assert farewells(domain, account, stray("PodClique", "c", deleted=False)) == []
    assert farewells(domain, account) == [(Verb.RELEASE, "d")]


def test_what_nobody_has_deleted_stays() -> None:
    clique = stray("PodClique", "c", deleted=False, finalizers=[CLIQUE_FINALIZER])

    assert farewells(clique, stray("Pod", "p", owner="c", deleted=False)) == []


def test_nothing_is_let_go_while_not_everything_is_seen() -> None:
    assert farewells(stray("PodClique", "c", finalizers=[CLIQUE_FINALIZER]), incomplete={"Pod": "403"}) == []


def test_what_a_set_has_nothing_to_do_with_need_not_be_seen() -> None:
    clique = stray("PodClique", "c", finalizers=[CLIQUE_FINALIZER])

    assert farewells(clique, incomplete={"ClusterTopologyBinding": "403"}) == [(Verb.RELEASE, "c")]


def test_what_there_is_to_say_of_a_root_that_is_there_stands_in_its_plan() -> None:
    root = ResourceId("grove.io", "PodCliqueSet", "default", "gone")
    plans = with_orphans((Plan(root),), BLUEPRINTS, World((), (stray("PodClique", "c", finalizers=[CLIQUE_FINALIZER]),)), SETUP)

    assert [len(plan.operations) for plan in plans] == [1]
