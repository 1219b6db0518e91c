"""The index of a pod among all pods of its replica of a scaling group: given once, unique, and never taken from a pod that runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from engine.verb import Verb
from resources.base import kinds
from resources.model import environment, group_index
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import clique_of, is_leaving, label, running
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

VARIABLE = {
    "name": "GROVE_PCSG_POD_INDEX",
    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['grove.io/podcliquescalinggroup-pod-index']"}},
}
GROUP = kinds.SCALING_GROUP


def workload(version: int = 1) -> dict[str, Any]:
    """A clique that stands alone, and a group whose order is not that of the cliques."""
    spec: dict[str, Any] = {"pod_spec": running(version)}
    cliques = [clique("router", 2, **spec), clique("worker", 3, minAvailable=1, **spec), clique("leader", **spec)]
    return podcliqueset("llm", *cliques, groups=(group("pool", "leader", "worker", replicas=2),))


def indices(cluster: Stage) -> dict[str, list[str]]:
    """PodClique -> the indices of its pods, sorted by their index in the clique."""
    pods = [pod for pod in cluster.there(kinds.POD).values() if not is_leaving(pod)]
    found: dict[str, list[str]] = {}
    for pod in sorted(pods, key=lambda pod: label(pod, "podclique-pod-index")):
        found.setdefault(clique_of(pod), []).append(label(pod, "podcliquescalinggroup-pod-index"))
    return found


def kept(cluster: Stage) -> dict[str, tuple[str, str]]:
    """Pod -> its uid and its index."""
    return {name: (pod["metadata"]["uid"], label(pod, "podcliquescalinggroup-pod-index")) for name, pod in cluster.there(kinds.POD).items()}


@contextmanager
def version_before() -> Iterator[None]:
    """The engine gives pods no such index while the block runs."""
    with mock.patch.object(group_index, "pod_indices", lambda view: {}), mock.patch.object(environment, "IN_GROUP", ()):
        yield


async def test_pods_count_through_the_cliques_of_the_group_in_its_order() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()

        each = {"leader": ["0"], "worker": ["1", "2", "3"]}
        members = {f"llm-0-pool-{replica}-{name}": own for replica in (0, 1) for name, own in each.items()}
        assert indices(cluster) == {"llm-0-router": ["", ""], **members}
        for pod in cluster.there(kinds.POD).values():
            (container,) = pod["spec"]["containers"]
            assert (container["env"][0] == VARIABLE) == ("-pool-" in pod["metadata"]["name"])
        for podclique in cluster.there(kinds.PODCLIQUE).values():
            (container,) = podclique["spec"]["podSpec"]["containers"]
            assert VARIABLE not in container.get("env", ())


async def test_a_fleet_of_the_version_before_gets_indices_with_its_next_pods_only() -> None:
    async with stage() as cluster:
        with version_before():
            await cluster.apply(workload())
            await cluster.sync()
        before = kept(cluster)
        revisions = {name: body["metadata"]["resourceVersion"] for name, body in cluster.there(kinds.PODCLIQUE).items()}

        seen = await cluster.look()
        assert [operation for plan in seen.planned.plans for operation in plan.operations if operation.verb is not Verb.STATUS] == []
        await cluster.sync()

        assert kept(cluster) == before
        assert {name: body["metadata"]["resourceVersion"] for name, body in cluster.there(kinds.PODCLIQUE).items()} == revisions

        lost = next(name for name, pod in cluster.there(kinds.POD).items() if label(pod, "podclique-pod-index") == "2")
        podclique = clique_of(cluster.there(kinds.POD)[lost])
        await cluster.kubectl.delete(kinds.POD, "default", lost, propagation="Background", grace=0)
        await cluster.sync()

        assert set(before.values()) - set(kept(cluster).values()) == {before[lost]}
        assert indices(cluster)[podclique] == ["", "", "3"]


async def test_a_member_that_shrinks_loses_its_highest_indices_and_gets_them_again() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()
        first = next(name for name, pod in cluster.there(kinds.POD).items() if label(pod, "podcliquescalinggroup-pod-index") == "1")
        worker = clique_of(cluster.there(kinds.POD)[first])
        await cluster.kubectl.delete(kinds.POD, "default", first, propagation="Background", grace=0)
        await cluster.settle()
        assert indices(cluster)[worker] == ["1", "2", "3"]

        await cluster.scale(kinds.PODCLIQUE, worker, 1)
        await cluster.settle()
        assert indices(cluster)[worker] == ["1"]

        await cluster.scale(kinds.PODCLIQUE, worker, 4)
        await cluster.settle()
        assert indices(cluster)[worker] == ["1", "2", "3", "4"]


async def test_no_two_pods_of_a_replica_have_the_same_index_when_a_clique_before_them_is_resized() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()
        before = kept(cluster)

        await cluster.scale(kinds.PODCLIQUE, "llm-0-pool-0-leader", 3)
        await cluster.settle()

        assert kept(cluster).items() >= before.items()
        found = indices(cluster)
        assert found["llm-0-pool-0-leader"][0] == "0"
        assert sorted(found["llm-0-pool-0-leader"] + found["llm-0-pool-0-worker"]) == ["0", "1", "2", "3", "4", "5"]

        last = next(
            name
            for name, pod in cluster.there(kinds.POD).items()
            if clique_of(pod) == "llm-0-pool-0-worker" and label(pod, "podclique-pod-index") == "0"
        )
        await cluster.kubectl.delete(kinds.POD, "default", last, propagation="Background", grace=0)
        await cluster.settle()
        found = indices(cluster)
        assert sorted(found["llm-0-pool-0-leader"] + found["llm-0-pool-0-worker"]) == ["0", "1", "2", "3", "4", "5"]


async def test_an_update_numbers_the_pods_of_a_replica_anew() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()
        await cluster.scale(kinds.PODCLIQUE, "llm-0-pool-0-leader", 3)
        await cluster.settle()

        await cluster.apply(workload(2))
        await cluster.settle()

        assert indices(cluster)["llm-0-pool-0-leader"] == ["0"]
        assert indices(cluster)["llm-0-pool-0-worker"] == ["1", "2", "3"]
