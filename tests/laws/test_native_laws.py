"""Laws of gangs in kube-scheduler: whatever happens to a cluster, gangs come up whole, and nothing is created twice."""

from random import Random
from typing import Any

import pytest

from engine.memo import Memo
from engine.operation import Operation
from engine.verb import Verb
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.laws.native import ROOT, Native, group_of, node_of

SEEDS = range(40)


def some_set(chance: Random) -> dict[str, Any]:
    """A set with pods beyond its minimums, and with scaled gangs."""
    least = chance.randint(1, 3)
    groups = (group("g", "w", replicas=chance.randint(1, 3)),) if chance.random() < 0.7 else ()
    worker = (clique("w", chance.randint(1, 2)),) if groups else ()
    return podcliqueset("web", clique("a", least + chance.randint(0, 3), minAvailable=least), *worker, groups=groups)


def disturb(cluster: Native, chance: Random) -> None:
    """One thing that happens: pods are lost, a clique is scaled, room comes or goes, PodGroups are deleted.

    A base gang below its minimum is never scheduled, and its scaled gangs stay gated, so no clique is scaled below it.
    """
    match chance.randint(0, 4):
        case 0:
            names = sorted(cluster.of("Pod"))
            cluster.lose(*chance.sample(names, min(len(names), chance.randint(1, 3))))
        case 1:
            id = kinds.PODCLIQUE.id("default", "web-0-a")
            if id in cluster.objects:
                least = cluster.objects[id]["spec"]["minAvailable"]
                cluster.write(id, {"spec": {"replicas": chance.randint(least, 6)}})
        case 2:
            cluster.room = chance.randint(1, 8)
        case 3:
            cluster.answers = not cluster.answers
        case _:
            for name in cluster.of("PodGroup"):
                cluster.delete(kinds.POD_GROUP.id("default", name))


def part_of(operations: tuple[Operation, ...], chance: Random) -> list[Operation]:
    """Some of the operations, as if the process were killed: each only with those that it comes after."""
    done: set[Any] = set()
    keys = {operation.key for operation in operations}
    chosen = []
    for operation in operations:
        if chance.random() < 0.6 and all(key in done for key in operation.after if key in keys):
            done.add(operation.key)
            chosen.append(operation)
    return chosen


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_gangs_come_up_whole_and_nothing_is_left_to_do(seed: int) -> None:
    chance, cluster = Random(seed), Native()
    cluster.put(some_set(chance))
    for _ in range(12):
        cluster.apply(part_of(cluster.plan().operations, chance))
        cluster.live()
        if chance.random() < 0.5:
            disturb(cluster, chance)
    cluster.room, cluster.answers = 1_000, True
    cluster.settle(200)

    assert all(node_of(pod) for pod in cluster.of("Pod").values())
    assert cluster.plan().operations == ()
    carrying = cluster.members()
    assert all(1 <= minimum <= carrying[name] for name, minimum in cluster.minimums().items())


@pytest.mark.parametrize("seed", SEEDS)
def test_no_gang_starts_in_part_and_no_pod_beyond_a_minimum_takes_its_room(seed: int) -> None:
    chance, cluster = Random(seed), Native()
    cluster.room = chance.randint(1, 6)
    cluster.put(some_set(chance))
    for _ in range(10):
        cluster.apply(part_of(cluster.plan().operations, chance))
        cluster.live()
        minimums = cluster.minimums()
        for name, minimum in minimums.items():
            bound = sum(group_of(pod) == name and bool(node_of(pod)) for pod in cluster.of("Pod").values())
            assert bound == 0 or bound >= minimum
        others = [pod for pod in cluster.of("Pod").values() if not group_of(pod) and node_of(pod)]
        whole = {pod["metadata"]["labels"]["grove.io/podgang"] for pod in others}
        assert all(cluster.members()[name] >= minimums[name] for name in whole)


@pytest.mark.parametrize("seed", range(10))
def test_a_memo_changes_nothing_but_the_time(seed: int) -> None:
    chance, cluster, memo = Random(seed), Native(), Memo()
    cluster.room = 4
    cluster.put(some_set(chance))
    for _ in range(8):
        (fresh,), (remembered,) = ([plan for plan in cluster.plans(each) if plan.root == ROOT] for each in (None, memo))
        described = [[(operation.verb, operation.id, operation.why) for operation in plan.operations] for plan in (fresh, remembered)]
        assert described[0] == described[1] and fresh.wake_at == remembered.wake_at
        cluster.apply(fresh.operations)
        cluster.live()
        disturb(cluster, chance)
        cluster.now = cluster.now.replace(minute=cluster.now.minute + 1)


def test_an_engine_that_learns_of_pod_groups_deletes_and_restarts_nothing() -> None:
    for seed in SEEDS:
        cluster = Native()
        cluster.unserved |= {kinds.POD_GROUP.key}
        cluster.put(some_set(Random(seed)))
        cluster.settle()
        cluster.unserved -= {kinds.POD_GROUP.key}
        changed = [(operation.verb, operation.id.kind) for operation in cluster.plan().operations]
        assert changed in ([], [(Verb.STATUS, "PodCliqueSet")])
