"""Gangs on a real control plane: nodes with room for one pod each, sets that want them, commands, and what the cluster then has."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import yaml

from engine.errors import AlreadyExists, NotFound
from engine.ids import Kind
from enginectl.base.exit_codes import Exit
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane, register
from tests.enginectl.calling import CommandResult, finished
from tests.mnnvl.sets import gpus
from tests.stories.test_control_plane import define
from tests.waiting import eventually

NAMESPACE = "gangs"
RACK = "example.com/rack"
RACKS = {"node-a": "r1", "node-b": "r1", "node-c": "r2", "node-d": "r2"}
"""Node -> rack."""
GROUPS = (kinds.POD_GROUP, kinds.COMPOSITE_POD_GROUP, kinds.WORKLOAD)
TOPOLOGY = """
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
topologyAwareScheduling: {enabled: true}
"""
HALL = {
    "apiVersion": kinds.TOPOLOGY_BINDING.api_version,
    "kind": kinds.TOPOLOGY_BINDING.name,
    "metadata": {"name": "hall"},
    "spec": {"levels": [{"domain": "rack", "key": RACK}, {"domain": "host", "key": "kubernetes.io/hostname"}]},
}
"""A binding of the racks."""
IN_ONE_RACK = {"topologyConstraint": {"topologyName": "hall", "pack": {"required": "rack"}}}
Body = dict[str, Any]
Run = Callable[..., Awaitable[CommandResult]]


@contextmanager
def nodes_in_racks(plane: ControlPlane) -> Iterator[ControlPlane]:
    """The cluster with the four nodes of `RACKS`, each with room for one pod of `whole_nodes`, while the block runs."""
    for node in RACKS:
        add_node(plane, node)
    try:
        yield plane
    finally:
        for node in RACKS:
            plane.call(f"/api/v1/nodes/{node}", method="DELETE")


def add_node(plane: ControlPlane, name: str) -> None:
    """Register one of the nodes of `RACKS`."""
    register(plane, name, {RACK: RACKS[name], "rack": RACKS[name]})


def mode(gangs: str) -> str:
    """The configuration with that mode of gangs (`gangScheduling`)."""
    return f'{TOPOLOGY}scheduler: {{profiles: [{{name: default-scheduler, config: {{gangScheduling: "{gangs}"}}}}]}}\n'


def commands(plane: ControlPlane, folder: Path, configuration: Path | str = TOPOLOGY, user: str = "admin") -> Run:
    """Runs a command in a process of its own. `configuration`: its text, or a file."""
    config = configuration
    if isinstance(config, str):
        config = folder / f"operator-{len(list(folder.glob('operator-*')))}.yaml"
        config.write_text(str(configuration))

    async def run(*words: str | Path) -> CommandResult:
        fixed = ("--kubeconfig", plane.kubeconfig(user), "-n", NAMESPACE, "--config", config)
        return await anyio.to_thread.run_sync(partial(finished, *words, *fixed))

    return run


def written(folder: Path, manifest: Mapping[str, Any]) -> Path:
    """A file with a manifest."""
    file = folder / f"{manifest['metadata']['name']}.yaml"
    file.write_text(yaml.safe_dump(dict(manifest)))
    return file


def whole_nodes(name: str, *, extra: int = 0, image: str = "x", **template: Any) -> Body:
    """A set whose gang needs three nodes: a leader and two workers, and maybe workers beyond that."""
    spec = gpus("8")
    spec["containers"][0]["image"] = image
    cliques = (clique("l", 1, pod_spec=spec), clique("w", 2 + extra, pod_spec=spec, minAvailable=2))
    return podcliqueset(name, *cliques, namespace=NAMESPACE, **template)


def filler(node: str) -> Body:
    """A pod that fills a node, and has its name."""
    metadata = {"name": f"filler-{node}", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": node, **gpus("8")}}


async def fill(admin: KubernetesClient, *nodes: str) -> None:
    """Fill these nodes, so that no other pod fits on them."""
    for node in nodes:
        await admin.create(kinds.POD, NAMESPACE, filler(node))


async def empty(admin: KubernetesClient, *nodes: str) -> None:
    """Remove the pods that fill these nodes."""
    for node in nodes:
        with suppress(NotFound):
            await admin.delete(kinds.POD, NAMESPACE, f"filler-{node}", grace=0)


async def prepare(admin: KubernetesClient) -> None:
    """Create the namespace of the tests, unless another test has."""
    with suppress(AlreadyExists):
        await define(admin, NAMESPACE)


async def pods_of(admin: KubernetesClient, name: str) -> dict[str, Body]:
    """The pods of a set that are not being deleted, by name."""
    pods = (await admin.list(kinds.POD, NAMESPACE, labels=f"app.kubernetes.io/part-of={name}")).items
    return {pod["metadata"]["name"]: pod for pod in pods if "deletionTimestamp" not in pod["metadata"]}


async def placed(admin: KubernetesClient, name: str) -> dict[str, str]:
    """The pods of a set, each with its node; empty if it has none yet."""
    return {pod: body["spec"].get("nodeName", "") for pod, body in (await pods_of(admin, name)).items()}


async def run_on(admin: KubernetesClient, name: str, number: int) -> bool:
    """Whether a set has so many pods, each on a node of its own."""
    nodes = await placed(admin, name)
    return len(nodes) == number == len(set(nodes.values()) - {""})


async def minimums(admin: KubernetesClient) -> dict[str, int]:
    """PodGroup -> the least number of its pods."""
    groups = (await admin.list(kinds.POD_GROUP, NAMESPACE)).items
    return {body["metadata"]["name"]: body["spec"]["schedulingPolicy"]["gang"]["minCount"] for body in groups}


async def uids(admin: KubernetesClient, kind: Kind) -> dict[str, str]:
    """The objects of a kind in the namespace -> uid."""
    return {body["metadata"]["name"]: body["metadata"]["uid"] for body in (await admin.list(kind, NAMESPACE)).items}


async def left(admin: KubernetesClient) -> list[str]:
    """The groups and pods that are left in the namespace."""
    return [
        f"{kind.name} {body['metadata']['name']}" for kind in (*GROUPS, kinds.POD) for body in (await admin.list(kind, NAMESPACE)).items
    ]


async def removed(admin: KubernetesClient, run: Run, *names: str) -> None:
    """Delete sets; nothing of them is left."""
    for name in names:
        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, name)
    await empty(admin, *RACKS)
    assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
    await eventually(partial(_is_empty, admin))


async def stuck(run: Run, *words: str | Path) -> CommandResult:
    """Sync until it ends because nothing more can be done: again, where its time was too short for its writes on a busy machine."""
    for _ in range(5):
        result = await run("sync", *words, "--yes", "--timeout", "15s")
        if result.code == Exit.STUCK:
            return result
    raise AssertionError(result.out)


async def _is_empty(admin: KubernetesClient) -> bool:
    return not await left(admin)


async def says(admin: KubernetesClient, gang: str, reason: str) -> bool:
    """Whether there is a PodGang of that name whose condition `Scheduled` has that reason."""
    gangs = [body for body in (await admin.list(kinds.PODGANG, NAMESPACE)).items if body["metadata"]["name"] == gang]
    conditions = [each for body in gangs for each in (body.get("status") or {}).get("conditions", ())]
    return any(each["type"] == "Scheduled" and each["reason"] == reason for each in conditions)


def is_gated(pod: Body) -> bool:
    """Whether the scheduler must not look at a pod yet."""
    return bool(pod["spec"].get("schedulingGates"))


def is_member(pod: Body) -> bool:
    """Whether a pod is in a PodGroup."""
    return "schedulingGroup" in pod["spec"]
