"""Domains whose gang a real kube-scheduler keeps in one NVLink clique of nodes: whole, in the one clique that has room, or not at all."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from engine.paths import get
from engine.runtime.sync_report import Ending
from providers.fabrics.nvidia.names import NVLINK_CLIQUE_LABEL
from providers.schedulers.kube import kube_scheduler
from resources.base import kinds
from resources.ports.configuration import GangMode
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import scheduling_gangs
from tests.mnnvl.sets import auto, gpu
from tests.mnnvl.test_placement import placing
from tests.stories.fabric import FABRIC
from tests.stories.stage import DEFAULT
from tests.stories.test_control_plane import synced
from tests.stories.test_domains_on_a_control_plane import NAMESPACE, OPTIONS, fabric
from tests.stories.test_domains_reach_on_a_control_plane import cliques

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NATIVE = replace(FABRIC, schedulers={DEFAULT: kube_scheduler(GangMode.AUTO)})
CLIQUES = replace(OPTIONS, nodes=7, nodes_per_rack=4)
"""An NVLink clique of four nodes, and one of three."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane whose scheduler schedules gangs, and whose nodes are played by actors."""
    with scheduling_gangs(tmp_path_factory, ["kcm", "scheduler"]) as made:
        yield made


def workers(name: str, count: int) -> dict[str, Any]:
    """A set of so many pods that must be in one NVLink clique, each with a node of its own."""
    return placing(auto(1, gpu(replicas=count), name=name, namespace=NAMESPACE))


async def test_a_domain_is_placed_whole_in_the_one_clique_that_has_room_or_waits_whole(plane: ControlPlane) -> None:
    async with fabric(plane, CLIQUES) as (admin, _):
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, workers("first", 2))
        assert (await synced(plane, NAMESPACE, NATIVE)).ending is Ending.DONE
        (group,) = (await admin.list(kinds.POD_GROUP, NAMESPACE)).items
        assert get(group, ("spec", "schedulingConstraints", "topology")) == [{"key": NVLINK_CLIQUE_LABEL}]
        (home,) = await cliques(admin)

        # Five nodes are free, at most four in one clique: no pod of the second set is placed.
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, workers("second", 5))
        assert (await synced(plane, NAMESPACE, NATIVE, patience=10)).ending is not Ending.DONE
        pods = (await admin.list(kinds.POD, NAMESPACE, labels="app.kubernetes.io/part-of=second")).items
        assert [pod["spec"].get("nodeName") for pod in pods] == [None] * 5
        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "second", propagation="Background")
        assert (await synced(plane, NAMESPACE, NATIVE)).ending is Ending.DONE

        # Pods that come one after the other would begin in the wrong clique: only one of the two has three free nodes.
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, workers("third", 3))
        assert (await synced(plane, NAMESPACE, NATIVE)).ending is Ending.DONE
        counts = await cliques(admin)
        assert sorted(counts.values()) == [2, 3] and counts[home] == 2
        for name in ("first", "third"):
            await admin.delete(kinds.PODCLIQUESET, NAMESPACE, name, propagation="Background")
        assert (await synced(plane, NAMESPACE, NATIVE)).ending is Ending.DONE
        assert (await admin.list(kinds.POD_GROUP, NAMESPACE)).items == []
