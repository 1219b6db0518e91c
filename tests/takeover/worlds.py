"""Sets that a cluster may have when Grove's operator is stopped, and how the operator was configured."""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from engine.ids import Kind
from engine.operation import Operation
from grove_sandbox.clients.inprocess import InProcessClient
from providers.registry import SCHEDULERS, fabrics
from resources.base import kinds
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from resources.settings import Settings
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.mnnvl.sets import gpus
from tests.stories.stage import DEFAULT, Stage, forked, stage
from tests.takeover.grove import COMPUTE_DOMAIN
from tests.takeover.grove_operator import Grove
from tests.takeover.stored_set import GROUP, Options

Body = dict[str, Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
CPU = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}]
SETUP = Configuration(dict(SCHEDULERS), DEFAULT, fabrics=fabrics(Settings()))
LEVELS = {"zone": "topology.kubernetes.io/zone", "rack": "example.com/rack"}


@dataclass(frozen=True)
class World:
    """A set, and what else the cluster has."""

    manifest: Body
    options: Options = Options()
    topology: bool = False
    scheduler: str = "default-scheduler"
    """The scheduler of the configuration; for another than the default its add-on is installed."""
    written: frozenset[tuple[str, str]] = frozenset()
    """Kind and path of fields that a take-over writes here besides hashes and statuses."""
    others: tuple[tuple[Kind, Body], ...] = field(default_factory=tuple)


def example(name: str) -> Body:
    """The first set of an example."""
    documents = yaml.load_all((EXAMPLES / name).read_text(), yaml.CSafeLoader)
    manifest: Body = next(document for document in documents if document and document["kind"] == "PodCliqueSet")
    return {**manifest, "metadata": {"namespace": "default", **manifest["metadata"]}}


def serving(version: int = 1, **more: Any) -> Body:
    """A pod spec in a user's spelling: amounts as numbers and in various units, a port without its protocol, fields with their default."""
    container = {
        "name": "main",
        "image": f"example/worker:{version}",
        "ports": [{"containerPort": 8000}],
        "env": [{"name": "LEADER", "value": "$(GROVE_PCSG_NAME)"}, {"name": "EMPTY", "value": ""}],
        "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"cpu": 1, "memory": "1024Mi"}},
        "volumeMounts": [{"name": "cache", "mountPath": "/cache", "readOnly": False}],
    }
    sidecar = {"name": "log", "image": "example/log:1"}
    return {"containers": [container, sidecar], "volumes": [{"name": "cache", "emptyDir": {}}], **more}


def inference(version: int = 1, *, replicas: int = 2, **template: Any) -> Body:
    """A router with an autoscaler, and a scaling group of leaders and workers with gangs of their own."""
    pod: Body = {"pod_spec": serving(version), "labels": {"team": "a"}, "annotations": {"example.com/scrape": "true"}}
    scaling = {"minReplicas": 2, "maxReplicas": 4, "metrics": CPU}
    cliques = [clique("router", 2, minAvailable=1, autoScalingConfig=scaling, **pod), clique("lead", **pod), clique("work", 2, **pod)]
    pool = group("pool", "lead", "work", replicas=2, scaleConfig={"maxReplicas": 4, "metrics": CPU}, annotations={"example.com/owner": "b"})
    manifest = podcliqueset("llm", *cliques, groups=(pool,), replicas=replicas, priorityClassName="high", **template)
    return {**manifest, "metadata": {**manifest["metadata"], "labels": {"app": "llm"}, "annotations": {"example.com/cost": "c1"}}}


def ordered() -> Body:
    """Explicit start order across a scaling group, with init containers and volumes of the user."""
    own: Body = {"initContainers": [{"name": "fetch", "image": "example/fetch:1"}]}
    wait: Body = {"startsAfter": ["lead"]}
    cliques = [clique("lead", pod_spec=serving(**own)), clique("work", 2, pod_spec=serving(), **wait), clique("gate", **wait)]
    pool = group("pool", "lead", "work", replicas=3, min_available=2)
    return podcliqueset("ord", *cliques, groups=(pool,), cliqueStartupType="CliqueStartupTypeExplicit")


def sharing() -> Body:
    """Claims at every level."""
    leader, worker = clique("leader"), clique("worker", 2, resourceSharing=[share("device", "PerReplica")])
    pool = group("pool", "leader", "worker", replicas=2, resourceSharing=[share("fabric", "PerReplica")])
    templates = [claim_template("device"), claim_template("fabric"), claim_template("cache")]
    return podcliqueset("shr", leader, worker, groups=(pool,), resourceClaimTemplates=templates, resourceSharing=[share("cache")])


def racks(version: int = 1, replicas: int = 2) -> Body:
    """Automatic domains, for a clique outside groups and a member of one that has a claim of its own besides."""
    pod = gpus()
    pod["containers"][0]["image"] = f"example/model:{version}"
    nic = {"name": "nic", "resourceClaimTemplateName": "nic"}
    with_claim = {**pod, "resourceClaims": [nic]}
    with_claim["containers"] = [{**pod["containers"][0], "resources": {**pod["containers"][0]["resources"], "claims": [{"name": "nic"}]}}]
    cliques = [clique("router"), clique("solo", pod_spec=pod), clique("work", pod_spec=with_claim)]
    return podcliqueset("nvl", *cliques, groups=(group("pool", "work"),), replicas=replicas)


def groups() -> Body:
    """Domains of groups: one of the set, another one of a clique in a scaling group, and a clique that is in none."""
    out, fast = {GROUP: "none"}, {GROUP: "fast"}
    cliques = [
        clique("router", annotations=out),
        clique("solo", pod_spec=gpus()),
        clique("lead", pod_spec=gpus()),
        clique("work", pod_spec=gpus(), annotations=fast),
    ]
    manifest = podcliqueset("grp", *cliques, groups=(group("pool", "lead", "work", replicas=2),), replicas=2)
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {GROUP: "whole"}}}


def _nic() -> tuple[Kind, Body]:
    kind = kinds.RESOURCE_CLAIM_TEMPLATE
    meta = {"name": "nic", "namespace": "default"}
    return kind, {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": claim_template("nic")["templateSpec"]}


def _hall() -> tuple[Kind, Body]:
    kind = kinds.TOPOLOGY_BINDING
    levels = [{"domain": domain, "key": key} for domain, key in LEVELS.items()]
    return kind, {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "hall"}, "spec": {"levels": levels}}


def packed() -> Body:
    """Topology constraints of the set and of a group."""
    pool = group("pool", "worker", replicas=2, topologyConstraint={"pack": {"required": "rack"}})
    whole = {"topologyName": "hall", "pack": {"required": "zone"}}
    return podcliqueset("top", clique("router"), clique("worker", 2), groups=(pool,), topologyConstraint=whole)


def queued(scheduler: str) -> World:
    """The gangs of a scheduler with objects of its own."""
    manifest = inference()
    labels = {**manifest["metadata"]["labels"], "kai.scheduler/queue": "dynamo"}
    queued = {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}
    kai = {("PodGang", "metadata.annotations"), ("PodGang", SKIP), ("Pod", "metadata.labels.kai.scheduler/queue")}
    if scheduler == VOLCANO:
        return World(queued, Options(scheduler=scheduler), scheduler=scheduler)
    return World(queued, Options(scheduler=scheduler), scheduler=scheduler, written=frozenset(kai), others=(_kai_queue(),))


def _kai_queue() -> tuple[Kind, Body]:
    kind = kinds.KAI_QUEUE
    resources = {name: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for name in ("cpu", "memory", "gpu")}
    return kind, {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "dynamo"}, "spec": {"resources": resources}}


KAI, VOLCANO = "kai-scheduler", "volcano"
ADDON = {KAI: "kai", VOLCANO: "volcano"}
SKIP = "metadata.annotations.kai.scheduler/skip-podgrouper"
ALL = tuple(dict.fromkeys((*(kind for blueprint in BLUEPRINTS for kind in blueprint.children(SETUP)), COMPUTE_DOMAIN)))
"""Every kind that a set may have objects of, with any scheduler."""
AUTO = Options(auto_mnnvl=True)
SCALED = Options(replicas={"llm-0-router": 3, "llm-1-pool": 3, "llm-0-pool": 4})
WORLDS: Mapping[str, World] = {
    "simple": World(example("00-simple/simple.yaml")),
    "gang": World(example("01-first-gang/gang.yaml")),
    "start order": World(example("02-start-order/ordered.yaml")),
    "in order": World({**inference(cliqueStartupType="CliqueStartupTypeInOrder")}),
    "scaling group": World(example("03-scaling-group/group.yaml")),
    "automatic domains": World(example("04-auto-mnnvl/racks.yaml"), AUTO),
    "opted out": World(example("04-auto-mnnvl/opted-out.yaml"), AUTO),
    "domains and own claims": World(racks(), AUTO, others=(_nic(),)),
    "groups in domains": World(groups()),
    "inference": World(inference()),
    "scaled by autoscalers": World(inference(), SCALED),
    "start order in groups": World(ordered()),
    "shared claims": World(sharing()),
    "topology": World(packed(), Options(levels=LEVELS), topology=True, others=(_hall(),)),
    "KAI": queued(KAI),
    "Volcano": queued(VOLCANO),
    "on delete": World({**inference(), "spec": {**inference()["spec"], "updateStrategy": {"type": "OnDelete"}}}),
}


async def deploy(grove: Grove, world: World) -> None:
    """Grove's operator brings the set of a world to rest."""
    await grove.deploy(world.manifest)


@asynccontextmanager
async def run_by_grove(world: World, bring: Callable[[Grove, World], Awaitable[None]] = deploy) -> AsyncIterator[tuple[Stage, Grove]]:
    """A cluster in which Grove's operator has brought the set of a world to rest, or whatever else `bring` does with it."""
    key = (bring, repr(world))
    if key not in _AT_REST:
        _AT_REST[key] = await _brought(world, bring)
    rested, grove = _AT_REST[key]
    async with forked(rested) as cluster:
        yield cluster, grove.moved(InProcessClient(cluster.api, "grove-operator"), cluster.settle)


_AT_REST: dict[Hashable, tuple[Stage, Grove]] = {}
"""Clusters with worlds at rest: to bring one there takes longer than many a story that begins then. Every story has a fork of its own."""


async def _brought(world: World, bring: Callable[[Grove, World], Awaitable[None]]) -> tuple[Stage, Grove]:
    async with stage(addons=[ADDON[world.scheduler]] if world.scheduler in ADDON else ()) as cluster:
        schedulers = {name: SCHEDULERS[name] for name in dict.fromkeys((DEFAULT, world.scheduler))}
        setup = replace(cluster.setup, topology=world.topology, schedulers=schedulers, default_scheduler=world.scheduler)
        cluster.setup = setup
        for kind, body in world.others:
            await cluster.kubectl.create(kind, body["metadata"].get("namespace", ""), body)
        grove = grove_in(cluster, world.options)
        await bring(grove, world)
    return cluster, grove


def grove_in(cluster: Stage, options: Options = Options()) -> Grove:  # noqa: B008
    """Grove's operator in a cluster."""
    return Grove(InProcessClient(cluster.api, "grove-operator"), cluster.settle, options)


async def planned(cluster: Stage) -> tuple[Operation, ...]:
    """What `engine diff` shows."""
    plans = (await cluster.look()).planned.plans
    assert [plan.problems for plan in plans if plan.problems] == []
    return tuple(operation for plan in plans for operation in plan.operations)


def uids(cluster: Stage, *of: Kind) -> dict[str, str]:
    """Kind and name of the objects of these kinds, or of all that a set may have -> uid."""
    chosen = [kind for kind in of or ALL if cluster.serves(kind)]
    return {f"{kind.name} {name}": body["metadata"]["uid"] for kind in chosen for name, body in cluster.there(kind).items()}
