"""The default scheduler may be spelled or left out: the same pods, whoever edits the set."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from providers.registry import SCHEDULERS
from providers.schedulers.kai import QUEUE
from resources.base import kinds, labels
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import images, is_ready, running
from tests.stories.stage import SETUP, Stage, stage

pytestmark = pytest.mark.anyio

DEFAULT = {"schedulerName": "default-scheduler"}
OF_SETS = (kinds.POD, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG)


def fleet(router: Mapping[str, Any], worker: Mapping[str, Any], version: int = 1, sets: int = 2) -> dict[str, Any]:
    """Sets of a clique that stands alone and one in a group, with these fields in their pods."""
    cliques = [clique(name, 2, pod_spec={**running(version), **own}) for name, own in (("router", router), ("worker", worker))]
    return podcliqueset("llm", *cliques, groups=(group("pool", "worker", replicas=2),), replicas=sets)


def versions(cluster: Stage) -> dict[str, str]:
    """The revision of everything that the engine has made."""
    return {f"{kind.name} {name}": body["metadata"]["resourceVersion"] for kind in OF_SETS for name, body in cluster.there(kind).items()}


@pytest.mark.parametrize(("before", "after"), [({}, DEFAULT), (DEFAULT, {}), ({"schedulerName": ""}, DEFAULT)])
async def test_an_edit_that_only_spells_the_default_scheduler_writes_nothing_below_the_set(before: Any, after: Any) -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(fleet(before, before))
        await cluster.settle()
        settled = versions(cluster)

        for router, worker in ((after, before), (after, after), (before, after)):
            await cluster.apply(fleet(router, worker))
            await cluster.settle()

            assert versions(cluster) == settled
        assert not ours.refused


async def test_pods_that_come_later_are_of_the_same_template_and_a_real_edit_replaces_all() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(fleet({}, {}))
        await cluster.settle()
        first = {name: body["metadata"]["uid"] for name, body in cluster.there(kinds.POD).items()}
        await cluster.apply(fleet(DEFAULT, DEFAULT))
        await cluster.apply(fleet(DEFAULT, DEFAULT, sets=3))
        await cluster.settle()
        pods = cluster.there(kinds.POD)

        assert len(pods) == 18 and first.items() <= {name: body["metadata"]["uid"] for name, body in pods.items()}.items()
        assert len({body["metadata"]["labels"][labels.TEMPLATE_HASH] for body in pods.values()}) == 1

        await cluster.apply(fleet(DEFAULT, DEFAULT, version=2, sets=3))
        await cluster.settle()

        assert images(cluster.there(kinds.POD).values()) == {"example/worker:2"}
        assert not ours.refused


@pytest.mark.parametrize(("before", "after", "kept"), [({}, DEFAULT, True), (DEFAULT, DEFAULT, True), (DEFAULT, {}, False)])
async def test_another_default_scheduler_restarts_no_pods_that_have_the_scheduler_their_clique_names(
    before: Any, after: Any, kept: bool
) -> None:
    queued = {"metadata": {"name": "llm", "namespace": "default", "labels": {QUEUE: "default"}}}
    async with stage(addons=("kai",)) as cluster:
        cluster.setup = replace(SETUP, schedulers=dict(SCHEDULERS))
        async with cluster.running():
            for router, worker in ((before, before), (after, after)):
                await cluster.apply({**fleet(router, worker), **queued})
                await cluster.settle()
        settled = {body["metadata"]["uid"] for body in cluster.there(kinds.POD).values()}
        cluster.setup = replace(cluster.setup, default_scheduler="kai-scheduler")
        async with cluster.running():
            await cluster.settle()
            pods = {body["metadata"]["uid"]: body for body in cluster.there(kinds.POD).values()}
            assert (settled == pods.keys()) is kept
            assert ("kai-scheduler" in {body["spec"]["schedulerName"] for body in pods.values()}) is not kept
            if not kept:
                return

            await cluster.apply({**fleet(after, after, sets=3), **queued})
            await cluster.settle()
            pods = {body["metadata"]["uid"]: body for body in cluster.there(kinds.POD).values()}
            hashes = {body["metadata"]["labels"][labels.TEMPLATE_HASH] for body in pods.values()}
            assert len(pods) == 18 and settled < pods.keys() and len(hashes) == 1
            assert all(map(is_ready, pods.values()))


async def test_a_clique_that_names_another_scheduler_than_its_pods_have_is_updated() -> None:
    other, queued = {"schedulerName": "kai-scheduler"}, {"metadata": {"name": "llm", "namespace": "default", "labels": {QUEUE: "default"}}}
    async with stage(addons=("kai",)) as cluster:
        cluster.setup = replace(SETUP, schedulers=dict(SCHEDULERS))
        async with cluster.running():
            for router, worker in (({}, {}), (other, other)):
                await cluster.apply({**fleet(router, worker), **queued})
                await cluster.settle()

            assert "kai-scheduler" in {body["spec"]["schedulerName"] for body in cluster.there(kinds.POD).values()}
