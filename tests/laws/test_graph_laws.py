"""Laws for graphs: whatever is edited, on whatever cluster, they settle, and nothing of another orchestrator is left."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as any_of

from engine.memo import Memo
from engine.verb import Verb
from resources.base import kinds
from tests.laws.graphs import COMPONENTS, GROVE, GraphToy, graphs, names, reasons
from tests.laws.toy import Body

FEW = settings(max_examples=8, deadline=None)
CLUSTERS = any_of.sampled_from((GROVE, COMPONENTS))
OF_GROVE = ("PodCliqueSet", "PodClique", "PodGang", "Pod")
OF_COMPONENTS = ("LeaderWorkerSet", "PodGroup", "Deployment")


def settled(cluster: frozenset[str], *manifests: Body) -> GraphToy:
    """A cluster in which these versions of a graph have been applied, one after the other."""
    toy = GraphToy()
    toy.unserved = cluster
    for manifest in manifests:
        toy.graph(manifest)
        toy.settle()
    return toy


@FEW
@given(any_of.lists(graphs, min_size=1, max_size=3), CLUSTERS)
def test_fixpoint_every_edit_settles_and_then_nothing_is_planned(versions: list[Body], cluster: frozenset[str]) -> None:
    toy = settled(cluster, *versions)

    assert all(not plan.operations and not plan.pending for plan in toy.plans())


@FEW
@given(graphs, graphs, CLUSTERS)
def test_history_does_not_matter(first: Body, last: Body, cluster: frozenset[str]) -> None:
    def shape(toy: GraphToy) -> set[str]:
        return {str(id) for id in toy.objects if id.kind != "Pod"}

    assert shape(settled(cluster, first, last)) == shape(settled(cluster, last))


@FEW
@given(graphs)
def test_switching_leaves_nothing_of_the_other_orchestrator(manifest: Body) -> None:
    toy = settled(GROVE, manifest)
    assert not names(toy, *OF_COMPONENTS)

    toy.graph({**manifest, "metadata": {**manifest["metadata"], "annotations": {"nvidia.com/enable-grove": "false"}}})
    toy.settle()
    assert not names(toy, *OF_GROVE)

    toy.graph({**manifest, "metadata": {**manifest["metadata"], "annotations": {"nvidia.com/enable-grove": "true"}}})
    toy.settle()
    assert not names(toy, *OF_COMPONENTS)


@FEW
@given(graphs, CLUSTERS)
def test_a_deleted_graph_leaves_nothing(manifest: Body, cluster: frozenset[str]) -> None:
    toy = settled(cluster, manifest)

    toy.delete(kinds.DYNAMO_GRAPH.id("default", "chat"))
    toy.settle()

    assert not toy.objects


@FEW
@given(graphs, graphs, CLUSTERS)
def test_memo_with_and_without_it_every_plan_is_the_same(first: Body, second: Body, cluster: frozenset[str]) -> None:
    toy, memo = GraphToy(), Memo()
    toy.unserved = cluster
    for manifest in (first, second):
        toy.graph(manifest)
        for _ in range(8):
            observed = toy.world()
            with_memo, without = toy.plans_of(observed, memo), toy.plans_of(observed)
            assert [repr(plan.operations) for plan in with_memo] == [repr(plan.operations) for plan in without]
            for plan in without:
                toy.apply(plan.operations)
            toy.live()


@FEW
@given(graphs, CLUSTERS, any_of.randoms(use_true_random=False))
def test_order_shuffling_what_is_observed_changes_nothing(manifest: Body, cluster: frozenset[str], chance: random.Random) -> None:
    toy = settled(cluster, manifest)
    toy.graph({**manifest, "spec": {"services": dict(reversed(manifest["spec"]["services"].items()))}})

    def keys() -> list[Any]:
        return [(plan.root, [operation.key for operation in plan.operations]) for plan in toy.plans()]

    before = keys()
    shuffled = list(toy.objects.items())
    chance.shuffle(shuffled)
    toy.objects, toy.previous = dict(shuffled), None

    assert keys() == before


@FEW
@given(graphs, graphs, CLUSTERS)
def test_honesty_and_thrift_every_call_has_a_reason_and_what_it_judged(first: Body, second: Body, cluster: frozenset[str]) -> None:
    toy = settled(cluster, first)
    toy.graph(second)
    for _ in range(6):
        plans = toy.plans()
        assert all(reasons(plans))
        for operation in (operation for plan in plans for operation in plan.operations):
            assert operation.verb is Verb.CREATE or operation.expect.uid
            assert operation.verb not in (Verb.PATCH, Verb.SCALE, Verb.STATUS) or operation.expect.revision
        for plan in plans:
            toy.apply(plan.operations)
        toy.live()
