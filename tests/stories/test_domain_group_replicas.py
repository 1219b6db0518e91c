"""Domains for each replica of a scaling group, which users and autoscalers scale (N27)."""

import pytest

from providers.fabrics.nvidia.names import NAMED
from resources.base import kinds
from resources.base.kinds import POD
from tests.builders import group, podcliqueset
from tests.mnnvl.sets import OPTED_OUT, gpu, said
from tests.stories.fabric import DomainRecorder, domains, left_of_domains, pass_time, rack, templates_of, uids
from tests.stories.pods import clique_of, is_ready

pytestmark = pytest.mark.anyio

EACH = "rack-$(GROVE_PCS_INDEX)-$(GROVE_PCSG_INDEX)"


async def test_N27_domains_come_and_go_with_the_replicas_of_a_scaling_group() -> None:
    async with rack() as cluster, cluster.running() as ours:
        recorder = DomainRecorder(cluster, ours)
        worker = gpu(replicas=2, annotations={NAMED: EACH})
        await cluster.apply(said(podcliqueset("demo", worker, groups=(group("pool", "worker", replicas=1),)), OPTED_OUT))
        await pass_time(cluster, 20)
        first = uids(cluster)
        assert list(first) == ["rack-0-0"]
        for units in (3, 1):
            await cluster.scale(kinds.SCALING_GROUP, "demo-0-pool", units)
            await pass_time(cluster, 60, step=2)
            pods = cluster.there(POD)
            assert sorted(domains(cluster)) == [f"rack-0-{unit}" for unit in range(units)]
            assert first.items() <= uids(cluster).items()
            assert {clique_of(pod): templates_of(pod) for pod in pods.values()} == {
                f"demo-0-pool-{unit}-worker": [f"rack-0-{unit}"] for unit in range(units)
            }
            assert len(pods) == 2 * units and all(map(is_ready, pods.values()))
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await pass_time(cluster, 60, step=2)

        assert (await left_of_domains(cluster), recorder.fouls) == ([], [])
