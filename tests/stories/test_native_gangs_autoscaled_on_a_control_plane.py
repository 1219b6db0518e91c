"""Gangs of a real kube-scheduler whose sizes a real HorizontalPodAutoscaler controller changes: by limits, which need no metrics."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.mnnvl.sets import gpus
from tests.stories.engine_processes import engine_run
from tests.stories.gang_cluster import (
    NAMESPACE,
    Body,
    commands,
    empty,
    fill,
    is_gated,
    is_member,
    minimums,
    nodes_in_racks,
    pods_of,
    prepare,
    removed,
)
from tests.stories.test_control_plane import connection
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

SMALL = {"containers": [{"name": "main", "image": "x"}]}
MEMBER, BEYOND, GATED = "member", "beyond the minimum", "gated"


@pytest.fixture(scope="module")
def four_nodes(gang_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The cluster with four nodes, each with room for one whole-node pod of these tests."""
    with nodes_in_racks(gang_plane) as plane:
        yield plane


def limits(lowest: int, highest: int) -> Body:
    """The limits of an autoscaler."""
    return {"minReplicas": lowest, "maxReplicas": highest}


def scaled(router: Body, pool: Body) -> Body:
    """A set of a clique of two small pods and a scaling group of two whole nodes, each with an autoscaler of these limits."""
    cliques = (
        clique("a", 2, pod_spec=SMALL, minAvailable=2, autoScalingConfig=router),
        clique("l", pod_spec=gpus("8")),
        clique("w", pod_spec=gpus("8")),
    )
    return podcliqueset("auto", *cliques, groups=(group("g", "l", "w", scaleConfig=pool),), namespace=NAMESPACE)


def autoscaler_of_the_set(lowest: int, highest: int) -> Body:
    """A user's autoscaler of the set."""
    target = {"apiVersion": kinds.PODCLIQUESET.api_version, "kind": kinds.PODCLIQUESET.name, "name": "auto"}
    return {
        "apiVersion": kinds.AUTOSCALER.api_version,
        "kind": kinds.AUTOSCALER.name,
        "metadata": {"name": "sets", "namespace": NAMESPACE},
        "spec": {"scaleTargetRef": target, **limits(lowest, highest)},
    }


async def pods_by_role(admin: KubernetesClient) -> dict[str, int]:
    """Clique, role and place -> how many pods there are."""
    seen: dict[str, int] = {}
    for pod in (await pods_of(admin, "auto")).values():
        role = MEMBER if is_member(pod) else GATED if is_gated(pod) else BEYOND
        what = f"{pod['metadata']['labels']['grove.io/podclique']}: {role}, {'placed' if pod['spec'].get('nodeName') else 'waits'}"
        seen[what] = seen.get(what, 0) + 1
    return seen


async def test_gangs_stay_whole_while_autoscalers_of_cliques_groups_and_sets_change_them(four_nodes: ControlPlane, tmp_path: Path) -> None:
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)

        async def comes(pods: dict[str, int], groups: dict[str, int]) -> None:
            async def is_so() -> bool:
                return (await pods_by_role(admin), await minimums(admin)) == (pods, groups)

            try:
                await eventually(is_so)
            except TimeoutError:
                assert (await pods_by_role(admin), await minimums(admin)) == (pods, groups)
                raise

        async def edit(**changed: Body) -> None:
            await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "auto", {"spec": scaled(**changed)["spec"]}, how="merge")

        base = {"auto-0-a: member, placed": 2, "auto-0-g-0-l: member, placed": 1, "auto-0-g-0-w: member, placed": 1}
        waiting = {what.replace("placed", "waits"): count for what, count in base.items()}
        with engine_run(tmp_path / "engine.log", "-n", NAMESPACE, "--kubeconfig", four_nodes.kubeconfig("admin")) as engine:
            # One node is free, and the gang needs two: what the autoscaler adds takes no room, and runs once the gang does.
            await fill(admin, "node-b", "node-c", "node-d")
            await admin.create(kinds.PODCLIQUESET, NAMESPACE, scaled(limits(4, 6), limits(1, 3)))
            await comes({**waiting, "auto-0-a: gated, waits": 2}, {"auto-0": 4})
            await empty(admin, "node-b", "node-c")
            await comes({**base, "auto-0-a: beyond the minimum, placed": 2}, {"auto-0": 4})

            # The further replica of the group needs two nodes, and one is free.
            await edit(router=limits(3, 3), pool=limits(2, 3))
            second = {"auto-0-g-1-l: member, placed": 1, "auto-0-g-1-w: member, placed": 1}
            still = {what.replace("placed", "waits"): count for what, count in second.items()}
            third = {**base, "auto-0-a: beyond the minimum, placed": 1}
            await comes({**third, **still}, {"auto-0": 4, "auto-0-g-0": 2})
            await empty(admin, "node-d")
            await comes({**third, **second}, {"auto-0": 4, "auto-0-g-0": 2})

            await edit(router=limits(2, 2), pool=limits(1, 1))
            await comes(base, {"auto-0": 4})

            await admin.create(kinds.AUTOSCALER, NAMESPACE, autoscaler_of_the_set(2, 2))
            both: dict[str, Any] = {**base, **{what.replace("auto-0", "auto-1"): count for what, count in base.items()}}
            await comes(both, {"auto-0": 4, "auto-1": 4})
            await admin.patch(kinds.AUTOSCALER, NAMESPACE, "sets", {"spec": limits(1, 1)}, how="merge")
            await comes(base, {"auto-0": 4})
            await admin.delete(kinds.AUTOSCALER, NAMESPACE, "sets")
            engine.end()
        await removed(admin, commands(four_nodes, tmp_path), "auto")
