"""Domains over several NVLink cliques on a real control plane, whose kube-scheduler knows nothing of them."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from engine.runtime.sync_report import Ending
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, NVLINK_CLIQUE_LABEL
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from resources.base.kinds import NODE, POD
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import started
from tests.mnnvl.sets import auto, gpu
from tests.mnnvl.test_placement import placing
from tests.stories.fabric import FABRIC
from tests.stories.pods import is_ready
from tests.stories.test_control_plane import synced
from tests.stories.test_domains_on_a_control_plane import NAMESPACE, OPTIONS, fabric
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

CLIQUES = replace(OPTIONS, nodes=8, nodes_per_rack=4)
"""Two NVLink cliques of four nodes."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with its own scheduler, whose nodes are played by actors."""
    with started(tmp_path_factory, ["kcm", "scheduler"]) as made:
        yield made


async def cliques(admin: KubernetesClient) -> Counter[str]:
    """NVLink clique -> how many pods run in it."""
    nodes = {body["metadata"]["name"]: body["metadata"]["labels"][NVLINK_CLIQUE_LABEL] for body in (await admin.list(NODE)).items}
    pods = (await admin.list(POD, NAMESPACE)).items
    assert all(map(is_ready, pods))
    return Counter(nodes[pod["spec"]["nodeName"]] for pod in pods)


async def have_joined(admin: KubernetesClient, count: int) -> bool:
    """Whether so many nodes have joined the domain, in the driver's words."""
    (domain,) = (await admin.list(COMPUTE_DOMAIN, NAMESPACE)).items
    return len((domain.get("status") or {}).get("nodes") or ()) == count


async def warnings(admin: KubernetesClient) -> set[str]:
    """What is said of separated domains. It may be said by more than one event, as it is by each sync that sees it."""
    events = (await admin.list(kinds.EVENT, NAMESPACE)).items
    return {event.get("note") or event["message"] for event in events if event["reason"] == "ComputeDomainSplit"}


def workers(count: int) -> dict[str, Any]:
    return auto(1, gpu(replicas=count), namespace=NAMESPACE)


async def test_a_domain_over_two_cliques_is_warned_of_and_one_that_asks_is_in_one_although_the_other_has_free_nodes(
    plane: ControlPlane,
) -> None:
    async with fabric(plane, CLIQUES) as (admin, _):
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, workers(6))
        report = await synced(plane, NAMESPACE, FABRIC)
        apart = await cliques(admin)
        await eventually(partial(have_joined, admin, 6))  # The driver writes a domain's nodes after their pods are ready.
        await synced(plane, NAMESPACE, FABRIC)

        assert report.ending is Ending.DONE
        assert apart.total() == 6 and len(apart) == 2
        (message,) = await eventually(partial(warnings, admin))  # Events are sent beside the writes.
        assert "pods of ComputeDomain demo-0 cannot all reach one another over NVLink" in message
        assert all(f"{clique} ({count} nodes)" in message for clique, count in apart.items())

        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "demo", propagation="Background")
        await synced(plane, NAMESPACE, FABRIC)
        assert (await admin.list(COMPUTE_DOMAIN, NAMESPACE)).items == []

        await admin.create(kinds.PODCLIQUESET, NAMESPACE, placing(workers(4)))
        report = await synced(plane, NAMESPACE, FABRIC)

        assert report.ending is Ending.DONE
        assert list((await cliques(admin)).values()) == [4]
        assert len(await warnings(admin)) == 1
