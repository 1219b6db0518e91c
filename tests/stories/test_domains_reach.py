"""Domains over several NVLink cliques: what people are told of one that is split, and how its pods are kept together."""

from collections import Counter
from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from enginectl.actions.facts import FactReader, capacities_and_room
from enginectl.actions.planning import first_pass_of
from providers.cluster import Cluster
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, NVLINK_CLIQUE_LABEL
from providers.queries import run_queries, served_apis
from resources.base import kinds
from resources.base.kinds import NODE, POD
from resources.base.labels import DOMAIN_PLACEMENT
from resources.domains.status import DomainStatus, domain_statuses
from resources.preview.facts import Facts
from resources.preview.forecasting import needs
from resources.preview.shown import capacity_remarks
from resources.reports.summary import state_of
from tests.mnnvl.sets import auto, gpu
from tests.mnnvl.test_placement import LABEL, placing
from tests.stories.fabric import event_messages, rack
from tests.stories.pods import is_ready
from tests.stories.stage import Stage

pytestmark = pytest.mark.anyio


def cliques(cluster: Stage) -> Counter[str]:
    """NVLink clique -> how many pods of domains run in it."""
    of = {name: node["metadata"]["labels"].get(NVLINK_CLIQUE_LABEL, "") for name, node in cluster.there(NODE).items()}
    pods = (pod for pod in cluster.there(POD).values() if pod["spec"].get("resourceClaims") and pod["spec"].get("nodeName"))
    return Counter(of[pod["spec"]["nodeName"]] for pod in pods)


async def shuffle(cluster: Stage) -> None:
    """Neighbouring nodes are in different NVLink cliques, so that pods that are placed by the names of nodes are in both."""
    for number, (name, node) in enumerate(sorted(cluster.there(NODE).items())):
        uuid = node["metadata"]["labels"][NVLINK_CLIQUE_LABEL].partition(".")[0]
        await cluster.kubectl.patch(NODE, "", name, {"metadata": {"labels": {NVLINK_CLIQUE_LABEL: f"{uuid}.{number % 2}"}}})


async def seen(cluster: Stage, name: str = "demo") -> tuple[str, dict[str, DomainStatus]]:
    """The state of a set in `engine status`, and that of its domains."""
    result = await cluster.look()
    observed = next(observed for observed in result.world.roots if observed.root.id.name == name)
    plan = next(plan for plan in result.planned.plans if plan.root == observed.root.id)
    return state_of(observed, plan), {status.id.name: status for status in domain_statuses(observed, plan, cluster.setup)}


async def notes(cluster: Stage) -> list[str]:
    """What `engine diff` says besides the operations."""
    first = first_pass_of(await cluster.look())
    capacities, _ = await capacities_and_room(FactReader(Cluster(cluster.kubectl, cluster.clock)), needs(first))
    return [note for _, note in capacity_remarks(first, None, Facts(capacities=capacities)) if isinstance(note, str)]


async def explained(cluster: Stage) -> list[str]:
    """What `engine why computedomain/demo-0` finds: causes and advice."""
    fabric, id = Nvidia(), COMPUTE_DOMAIN.id("default", "demo-0")
    results = await run_queries(cluster.kubectl, fabric.domain_queries(id), await served_apis(cluster.kubectl))
    return [f"{finding.cause}; {finding.advice}" for finding in fabric.diagnose(id, results, cluster.clock.now())]


def workers(count: int, **spec: Any) -> dict[str, Any]:
    return auto(1, gpu(replicas=count, **spec))


async def test_N29_a_domain_over_two_cliques_is_degraded_and_warned_of_by_run_and_whole_when_its_pods_are_together() -> None:
    async with rack(nodes=4, nodes_per_rack=2) as cluster, cluster.running():
        await cluster.apply(workers(4, minAvailable=2))
        await cluster.settle()
        state, statuses = await seen(cluster)

        assert sorted(cliques(cluster).values()) == [2, 2] and all(map(is_ready, cluster.there(POD).values()))
        assert (state, statuses["demo-0"].split.summary) == ("degraded", "in 2 NVLink cliques")  # type: ignore[union-attr]
        (message,) = await event_messages(cluster, "ComputeDomainSplit")
        assert "2 nodes" in message and "ComputeDomain demo-0 cannot all reach one another over NVLink" in message

        assert any(
            "annotate PodCliqueSet demo with engine.grove.io/domain-placement: required" in text for text in await explained(cluster)
        )

        await cluster.scale(kinds.PODCLIQUE, "demo-0-worker", 2)
        await cluster.settle()
        assert (await seen(cluster))[0] == "settled"


async def test_N29_sync_publishes_the_warning_waits_for_nothing_and_succeeds() -> None:
    async with rack(nodes=4, nodes_per_rack=2) as cluster:
        await cluster.apply(workers(4))
        report = await cluster.sync()

        assert (report.ending, report.pending) == (Ending.DONE, ())
        assert len(await event_messages(cluster, "ComputeDomainSplit")) == 1


@pytest.mark.parametrize(("placement", "together"), [("", False), ("required", True), ("preferred", True)])
async def test_N31_pods_that_ask_are_in_one_clique_although_the_other_has_free_nodes(placement: str, together: bool) -> None:
    async with rack(nodes=8) as cluster, cluster.running():
        await shuffle(cluster)
        await cluster.apply(placing(workers(4), placement) if placement else workers(4))
        await cluster.settle()

        assert sorted(cliques(cluster).values()) == ([4] if together else [2, 2])
        assert all(map(is_ready, cluster.there(POD).values()))
        assert (await seen(cluster))[0] == ("settled" if together else "degraded")


async def test_N31_required_without_a_clique_that_is_large_enough_no_pod_runs() -> None:
    async with rack(nodes=4, nodes_per_rack=2) as cluster:
        await cluster.apply(placing(workers(3)))
        foreseen = await notes(cluster)
        async with cluster.running():
            await cluster.settle()
        findings = await explained(cluster)
        (message,) = {pod["status"]["conditions"][0]["message"] for pod in cluster.there(POD).values()}

        assert cliques(cluster) == Counter()
        assert "node(s) didn't match pod affinity rules" in message
        assert foreseen == [
            "ComputeDomain demo-0 needs 3 nodes of one NVLink clique, and the largest has 2; the pods that do not fit stay Pending"
        ]
        assert any("all pods of its domain must be in one NVLink clique, and there is no room for it" in text for text in findings)


async def test_N31_preferred_without_a_clique_that_is_large_enough_the_pods_run_apart() -> None:
    async with rack(nodes=4, nodes_per_rack=2) as cluster, cluster.running():
        await cluster.apply(placing(workers(3), "preferred"))
        await cluster.settle()

        assert sorted(cliques(cluster).values()) == [1, 2]
        assert (await seen(cluster))[0] == "degraded"


async def test_N31_a_pod_that_is_created_again_joins_the_clique_of_the_others() -> None:
    async with rack(nodes=8) as cluster, cluster.running():
        await shuffle(cluster)
        await cluster.apply(placing(workers(3)))
        await cluster.settle()
        before = cliques(cluster)
        await cluster.delete(POD, sorted(cluster.there(POD))[0])
        await cluster.settle()

        assert len(before) == 1 and cliques(cluster) == before


async def test_N31_pods_keep_the_label_that_their_affinity_needs_when_the_set_asks_no_longer() -> None:
    async with rack(nodes=4) as cluster, cluster.running():
        await cluster.apply(placing(workers(2)))
        await cluster.settle()
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "demo", {"metadata": {"annotations": {DOMAIN_PLACEMENT: None}}})
        await cluster.settle()

        assert [pod["metadata"]["labels"].get(LABEL) for pod in cluster.there(POD).values()] == ["demo-0", "demo-0"]
