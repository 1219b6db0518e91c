"""Malformed workloads: whatever users write into sets, Deployments, PodGroups, queues and topologies, no actor stops."""

import json
from random import Random

import pytest

from engine.errors import ClusterError
from grove_sandbox.actors.options import ActorOptions
from resources.base.kinds import (
    DEPLOYMENT,
    KAI_POD_GROUP,
    KAI_QUEUE,
    KAI_TOPOLOGY,
    LEADER_WORKER_SET,
    POD,
    PODGANG,
    VOLCANO_POD_GROUP,
    VOLCANO_QUEUE,
)
from sandbox.tests.actors.manifests import gang, pod
from sandbox.tests.actors.scheduler_objects import (
    kai_group,
    kai_pod,
    kai_queue,
    topology,
    volcano_group,
    volcano_pod,
    volcano_queue,
)
from sandbox.tests.actors.stage import Stage, running
from sandbox.tests.actors.test_deployments import deployment
from sandbox.tests.actors.test_lws import lws
from sandbox.tests.actors.test_malformed_objects import malformed

pytestmark = pytest.mark.anyio

KINDS = (
    *(DEPLOYMENT, LEADER_WORKER_SET, POD, PODGANG, VOLCANO_POD_GROUP, VOLCANO_QUEUE, KAI_POD_GROUP, KAI_QUEUE, KAI_TOPOLOGY),
    *(LEADER_WORKER_SET, VOLCANO_POD_GROUP, KAI_POD_GROUP),
)
RACKS = {"topology": "racks", "requiredTopologyLevel": "topology.kubernetes.io/rack"}


async def fill(stage: Stage) -> None:
    """One of everything."""
    subgroups = [{"name": "x", "minMember": 1, "topologyConstraint": RACKS}, {"name": "y", "minMember": 1}]
    await stage.create(deployment(), lws(replicas=2, size=2), volcano_queue("small", 8), kai_queue("all"), kai_queue("team", parent="all"))
    await stage.create(topology("racks", ["topology.kubernetes.io/zone", "topology.kubernetes.io/rack"]))
    await stage.create(gang("g", {"a": (1, ["a"])}), pod("a", gang="g"))
    await stage.create(volcano_group("v", 1, queue="small", minResources={"cpu": "1"}), volcano_pod("v", "v"))
    await stage.create(kai_group("k", subGroups=subgroups, topologyConstraint=RACKS))
    await stage.create(*(kai_pod(name, "k", subgroup=name) for name in ("x", "y")))


async def write_malformed(stage: Stage, chance: Random, step: int) -> None:
    """Write a malformed copy of an object, or a malformed change to one."""
    kind = chance.choice(KINDS)
    namespace = "ml" if kind.namespaced else ""
    existing = (await stage.client.list(kind, namespace)).items
    if not existing:
        return
    body = json.loads(json.dumps(chance.choice(existing)))
    part = chance.choice([key for key in body if key not in ("apiVersion", "kind", "metadata")] or ["spec"])
    odd = body | {part: malformed(chance, body.get(part))}
    if chance.random() < 0.5:
        subresource = "status" if part == "status" and kind != VOLCANO_POD_GROUP else ""
        await stage.client.replace(kind, namespace, body["metadata"]["name"], odd, subresource=subresource)
    else:
        kept = {key: value for key, value in body["metadata"].items() if key in ("labels", "annotations", "ownerReferences")}
        await stage.client.create(kind, namespace, odd | {"metadata": kept | {"name": f"odd-{step}"}})


@pytest.mark.parametrize("seed", range(4))
async def test_no_malformed_workload_stops_an_actor(seed: int) -> None:
    chance = Random(seed)
    actors = ("scheduler", "kubelet", "garbage", "lws", "deployments")
    async with running(*actors, options=ActorOptions(nodes=4), addons=("lws", "volcano", "kai")) as stage:
        await stage.turn(1)
        await fill(stage)
        await stage.turn(2)
        refused = 0
        for step in range(80):
            try:
                await write_malformed(stage, chance, step)
            except ClusterError:
                refused += 1
            await stage.turn(chance.choice((0, 0.1, 1)))
        await stage.turn(30)
        assert refused < 80

        await stage.create(lws("last", size=1))
        await stage.turn(5)
        assert await stage.node_of("last-0")
