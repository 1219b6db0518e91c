"""An object that only our finalizer holds after its root is gone is released; what it owns is deleted first."""

from typing import Any

from engine.ids import ResourceId
from engine.observed import Live, Unlisted, World, live
from engine.operation import body_of
from engine.orphans import with_orphans
from engine.plan import Plan
from engine.verb import Verb
from resources.registry import BLUEPRINTS
from tests.laws.toy import CONFIGURATION

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
