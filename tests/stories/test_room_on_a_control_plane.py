"""Room on a real control plane: what is forecast of pods that have no room is what kube-scheduler does with them."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from enginectl.base.exit_codes import Exit
from providers.fabrics.nvidia.names import NAMED
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.enginectl.calling import CommandResult, finished
from tests.mnnvl.sets import OPTED_OUT, gpus, said
from tests.stories.test_control_plane import connection, define
from tests.stories.test_domains_on_a_control_plane import NAMESPACE as FABRIC_NAMESPACE
from tests.stories.test_domains_on_a_control_plane import NODES, fabric, plane

__all__ = ["plane"]

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "room"
ALL = 10
"""The nodes of the cluster, each with eight GPUs."""
Run = Callable[..., Awaitable[CommandResult]]


def commands(plane: ControlPlane, folder: Path, namespace: str) -> Run:
    """Runs a command of ours about a manifest, in a process of its own."""

    async def run(command: str, manifest: dict[str, Any], *words: str) -> CommandResult:
        file = folder / f"{manifest['metadata']['name']}.yaml"
        file.write_text(yaml.safe_dump(manifest))
        return await anyio.to_thread.run_sync(
            partial(finished, command, "-f", file, *words, "--kubeconfig", plane.kubeconfig("admin"), "-n", namespace)
        )

    return run


def workload(name: str, replicas: int = 1, amount: int = 8, **fields: Any) -> dict[str, Any]:
    """Replicas of one pod each."""
    pod_spec = {**gpus(str(amount)), **fields}
    return said(podcliqueset(name, clique("a", 1, pod_spec=pod_spec), replicas=replicas, namespace=NAMESPACE), OPTED_OUT)


async def test_what_is_forecast_of_pods_without_room_is_what_the_scheduler_does(control_plane: ControlPlane, tmp_path: Path) -> None:
    run = commands(control_plane, tmp_path, NAMESPACE)
    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE)

        async def ends(manifest: dict[str, Any]) -> CommandResult:
            """What is forecast of a manifest; a sync settles if and only if that is forecast."""
            shown = await run("diff", manifest)
            code = (await run("sync", manifest, "--yes", "--timeout", "180s" if shown.code == Exit.DONE else "15s")).code
            assert (shown.code, code) in ((Exit.DONE, Exit.DONE), (Exit.STUCK, Exit.STUCK)), shown
            return shown

        assert "no node has the label zone=x" in (await ends(workload("label", nodeSelector={"zone": "x"}))).out
        assert "16 nvidia.com/gpu requested, the largest of 10 nodes that suit has 8" in (await ends(workload("large", amount=16))).out
        assert (await ends(workload("full", ALL))).code == Exit.DONE
        too_many = await ends(workload("full", ALL + 2))
        assert f"2 pods need 2 nodes, one for each: 0 of {ALL} are free (pods of namespace {NAMESPACE} have the rest)" in too_many.out

        # The pod of the first replica waits, as a later one has taken its node: going back makes room for it.
        pods = (await admin.list(kinds.POD, NAMESPACE, labels="grove.io/podclique=full-0-a")).items
        await admin.delete(kinds.POD, NAMESPACE, pods[0]["metadata"]["name"], grace=0)
        await run("sync", workload("full", ALL + 2), "--yes", "--timeout", "5s")
        assert (await ends(workload("full", ALL))).code == Exit.DONE

        await ends(workload("full", 0))
        for number in range(ALL):
            await admin.create(kinds.POD, NAMESPACE, other(number))
        shown = await run("diff", workload("higher", 2))
        assert shown.code == Exit.DONE and "May not fit: pods of PodClique higher-0-a and 1 more" in shown.out
        assert (await run("sync", workload("higher", 2), "--yes", "--timeout", "180s")).code == Exit.DONE


def other(number: int) -> dict[str, Any]:
    """A pod of lower priority on a node of its own."""
    spec = {**gpus("8"), "priority": -10, "nodeName": f"node-{number:04d}", "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"other-{number}", "namespace": NAMESPACE}, "spec": spec}


async def test_a_named_domain_needs_a_node_for_each_of_its_pods(plane: ControlPlane, tmp_path: Path) -> None:
    run = commands(plane, tmp_path, FABRIC_NAMESPACE)

    def racked(replicas: int) -> dict[str, Any]:
        entry = clique("a", 1, pod_spec=gpus("1"), annotations={NAMED: "rack"})
        return said(podcliqueset("racked", entry, replicas=replicas, namespace=FABRIC_NAMESPACE), OPTED_OUT)

    async with fabric(plane):
        fits, too_many = await run("diff", racked(NODES)), await run("diff", racked(NODES + 3))

        assert fits.code == Exit.DONE, fits
        assert too_many.code == Exit.STUCK
        assert f"{NODES + 3} pods need {NODES + 3} nodes, one for each: {NODES} of {NODES} are free" in too_many.out
        assert (await run("sync", racked(NODES + 3), "--yes", "--timeout", "10s")).code == Exit.STUCK
        assert (await run("sync", racked(NODES), "--yes", "--timeout", "180s")).code == Exit.DONE
