"""The law of forecasts where workloads share something: domains, claims, autoscalers; and where pods fail, end, or wait for users."""

from typing import Any

import pytest

from engine.forecast.forecast import End
from engine.runtime.sync_report import Ending
from providers.fabrics.nvidia.names import AUTO, GROUP
from resources.base import kinds, labels
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.mnnvl.sets import gpu, gpus, named, said
from tests.stories.fabric import rack
from tests.stories.forecasts import Comparison, forecast_then_sync
from tests.stories.pods import running
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

Body = dict[str, Any]
SCALED = {"minReplicas": 2, "maxReplicas": 6}


def image(manifest: Body, version: int) -> Body:
    """The set with other images."""
    for entry in manifest["spec"]["template"]["cliques"]:
        entry["spec"]["podSpec"]["containers"][0]["image"] = f"example/worker:{version}"
    return manifest


async def settles(cluster: Stage, *manifests: Body) -> Comparison:
    """Apply these, if any, with `sync -f`: everything settles, as it was forecast."""
    comparison = await forecast_then_sync(cluster, manifests)
    comparison.assert_equal()
    assert comparison.ending is Ending.DONE
    if (forecast := comparison.forecast) is not None:
        assert {forecast.end_of(root) for root in forecast.plans} <= {End.SETTLED}
    return comparison


async def test_two_sets_that_share_a_named_domain() -> None:
    async with rack() as cluster:
        await settles(cluster, named("rack", "demo"), named("rack", "other"))
        await settles(cluster, image(named("rack", "demo"), 2), image(named("rack", "other", replicas=2), 2))
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await settles(cluster)
        await cluster.delete(kinds.PODCLIQUESET, "other")
        await settles(cluster)


async def test_two_sets_that_share_a_named_domain_and_are_deleted_together() -> None:
    async with rack() as cluster:
        await settles(cluster, named("rack", "demo", replicas=2), named("rack", "other"))
        for name in ("demo", "other"):
            await cluster.delete(kinds.PODCLIQUESET, name)
        await settles(cluster)


async def test_groups_of_cliques_with_domains_of_their_own() -> None:
    cliques = gpu("prefill"), gpu("decode"), gpu("reranker", annotations={GROUP: "none"})

    def served(replicas: int) -> Body:
        pool = group("pool", "decode", annotations={GROUP: "decode"})
        return said(podcliqueset("demo", *cliques, groups=(pool,), replicas=replicas), {GROUP: "model"})

    async with rack() as cluster:
        for manifest in (served(1), served(2), image(served(2), 2), served(1)):
            await settles(cluster, manifest)
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await settles(cluster)


async def test_domains_that_are_released_on_completion() -> None:
    job = said(podcliqueset("demo", gpu(pod_spec={**gpus(), "restartPolicy": "Never"})), {labels.RELEASE_DOMAINS: labels.ON_COMPLETION})
    job["metadata"]["annotations"] |= {AUTO: "enabled"}

    async with rack() as cluster:
        await settles(cluster, job)
        for pod in cluster.there(kinds.POD):
            cluster.fail(pod, "exit:0")
        await cluster.clock.advance(30)
        released = await settles(cluster)
        assert released.operations["delete", "ComputeDomain", "demo-0"] == 1
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await settles(cluster)


async def test_sets_with_autoscalers() -> None:
    def scaled(version: int, replicas: int = 1) -> Body:
        cliques = [clique("router", 2, minAvailable=1, autoScalingConfig=SCALED), clique("prefill"), clique("decode", 2)]
        groups = (group("pool", "prefill", "decode", replicas=2, scaleConfig=SCALED),)
        return image(podcliqueset("llm", *cliques, groups=groups, replicas=replicas), version)

    async with stage() as cluster:
        for manifest in (scaled(1), scaled(2), scaled(2, replicas=2), scaled(3, replicas=1)):
            await settles(cluster, manifest)
        await cluster.delete(kinds.PODCLIQUESET, "llm")
        await settles(cluster)


async def test_pods_that_share_claims() -> None:
    def sharing(version: int, replicas: int = 1) -> Body:
        leader, worker = clique("leader"), clique("worker", 2, resourceSharing=[share("device", "PerReplica")])
        pool = group("pool", "leader", "worker", replicas=2, resourceSharing=[share("fabric", "PerReplica")])
        templates = [claim_template("device"), claim_template("fabric"), claim_template("cache")]
        template: Body = {"resourceClaimTemplates": templates, "resourceSharing": [share("cache")]}
        return image(podcliqueset("llm", leader, worker, groups=(pool,), replicas=replicas, **template), version)

    async with stage() as cluster:
        for manifest in (sharing(1), sharing(2), sharing(2, replicas=2), sharing(3)):
            await settles(cluster, manifest)
        await cluster.delete(kinds.PODCLIQUESET, "llm")
        await settles(cluster)


async def test_an_update_on_delete_waits_for_users() -> None:
    def on_delete(version: int) -> Body:
        manifest = image(podcliqueset("demo", clique("a", 2, pod_spec=running(1))), version)
        manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
        return manifest

    async with stage() as cluster:
        await settles(cluster, on_delete(1))
        await settles(cluster, on_delete(2))
        await cluster.delete(kinds.POD, next(iter(cluster.there(kinds.POD))))
        await settles(cluster)


@pytest.mark.parametrize("how", ["unready", "crash", "exit:1"])
async def test_an_update_of_a_set_with_a_pod_that_fails(how: str) -> None:
    """The failing pod is replaced first, and its successor is assumed to be well."""

    def llm(version: int) -> Body:
        return image(podcliqueset("demo", clique("a", 3, minAvailable=2), clique("b"), replicas=2), version)

    async with stage() as cluster:
        await settles(cluster, llm(1))
        cluster.fail(next(name for name in sorted(cluster.there(kinds.POD)) if name.startswith("demo-1-a")), how)
        await cluster.clock.advance(20)
        await settles(cluster, llm(2))


async def test_a_gang_that_is_terminated_after_its_delay() -> None:
    async with stage() as cluster:
        manifest = podcliqueset("demo", clique("a", 2), clique("b"), replicas=2, terminationDelay="1m0s")
        await settles(cluster, manifest)
        await cluster.clock.advance(20)
        cluster.fail(next(name for name in sorted(cluster.there(kinds.POD)) if name.startswith("demo-1-a")), "unready")
        await cluster.clock.advance(20)
        await settles(cluster)
