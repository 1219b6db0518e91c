"""Groups of cliques in domains of their own, by the annotation of current Grove (N26)."""

from typing import Any

import pytest

from providers.fabrics.nvidia.names import GROUP
from resources.base import kinds
from resources.base.kinds import POD
from tests.builders import group, podcliqueset
from tests.mnnvl.sets import gpu, said
from tests.stories.fabric import DomainRecorder, domains, event_messages, left_of_domains, pass_time, rack, templates_of, uids
from tests.stories.pods import clique_of, is_ready

pytestmark = pytest.mark.anyio


def served(replicas: int) -> dict[str, Any]:
    """Prefill in one group, decode in a scaling group with another, and a reranker with GPUs that is in none."""
    cliques = gpu("prefill"), gpu("decode"), gpu("reranker", annotations={GROUP: "none"})
    pool = group("pool", "decode", annotations={GROUP: "decode"})
    return said(podcliqueset("demo", *cliques, groups=(pool,), replicas=replicas), {GROUP: "model"})


async def test_N26_each_group_of_a_replica_has_a_domain_before_its_pods_and_until_after_them() -> None:
    async with rack() as cluster, cluster.running() as ours:
        recorder = DomainRecorder(cluster, ours)
        await cluster.apply(served(1))
        await pass_time(cluster, 20)
        first = uids(cluster)
        assert sorted(first) == ["demo-0-decode", "demo-0-model"]
        for replicas in (2, 1):
            await cluster.scale(kinds.PODCLIQUESET, "demo", replicas)
            await pass_time(cluster, 40, step=2)
            assert sorted(domains(cluster)) == sorted(f"demo-{index}-{name}" for index in range(replicas) for name in ("decode", "model"))
            assert first.items() <= uids(cluster).items()
        pods = cluster.there(POD)
        assert {clique_of(pod): templates_of(pod) for pod in pods.values()} == {
            "demo-0-prefill": ["demo-0-model"],
            "demo-0-pool-0-decode": ["demo-0-decode"],
            "demo-0-reranker": [],
        }
        assert all(map(is_ready, pods.values()))
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await pass_time(cluster, 60, step=2)

        assert (await left_of_domains(cluster), recorder.fouls) == ([], [])
        deleted = [event for event in cluster.there(kinds.EVENT).values() if event["reason"] == "ComputeDomainDeleted"]
        assert sum(event["count"] for event in deleted) == 4


async def test_N26_of_two_sets_whose_domains_have_one_name_the_second_waits_with_the_reason() -> None:
    async with rack() as cluster, cluster.running() as ours:
        recorder = DomainRecorder(cluster, ours)
        for name, of_set, replicas in (("a", "1-x", 1), ("a-0", "x", 2)):
            await cluster.apply(said(podcliqueset(name, gpu(), replicas=replicas), {GROUP: of_set}))
            await pass_time(cluster, 20)
        assert {clique_of(pod) for pod in cluster.there(POD).values()} == {"a-0-worker", "a-0-0-worker"}
        (failed,) = await event_messages(cluster, "ComputeDomainFailed")
        assert failed.startswith("Failed to create ComputeDomain a-0-1-x for replica 1: ComputeDomain default/a-0-1-x already exists")
        await cluster.delete(kinds.PODCLIQUESET, "a")
        await pass_time(cluster, 60, step=2)

        assert {clique_of(pod) for pod in cluster.there(POD).values()} == {"a-0-0-worker", "a-0-1-worker"}
        assert recorder.fouls == []
