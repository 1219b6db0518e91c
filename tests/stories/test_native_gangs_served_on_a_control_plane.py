"""Gangs of a real kube-scheduler whose API server stops serving hierarchies, and serves them again: what runs stays, and comes back."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.controlplane.cluster import PARTS, ControlPlane, kill, start_again, wait_until_ready
from tests.controlplane.fixtures import scheduling_gangs
from tests.controlplane.gangs import GATES, VERSIONS
from tests.mnnvl.sets import gpus
from tests.stories.gang_cluster import (
    GROUPS,
    HALL,
    IN_ONE_RACK,
    NAMESPACE,
    Body,
    commands,
    nodes_in_racks,
    placed,
    prepare,
    removed,
    uids,
    written,
)
from tests.stories.test_control_plane import connection
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

WITHOUT_HIERARCHIES = {
    GATES: GATES.removesuffix(",CompositePodGroup=true"),
    VERSIONS: VERSIONS.removesuffix(",scheduling.k8s.io/v1alpha3=true"),
}
"""Flags of the components -> those with which the cluster serves PodGroups alone."""
TOLD = "are gangs for each clique alone while the cluster does not serve CompositePodGroup: serve it again"


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with four nodes that schedules gangs and hierarchies, for this test alone."""
    with scheduling_gangs(tmp_path_factory, ["kcm", "scheduler", "kwok"]) as plane, nodes_in_racks(plane):
        yield plane


def start_with(plane: ControlPlane, changed: Mapping[str, str]) -> None:
    """Start the components anew, with other flags."""
    names = ("kube-apiserver", PARTS["kcm"], PARTS["scheduler"])
    for name in names:
        kill(plane.folder, name)
    for name in names:
        start_again(plane.folder, name, changed)
        if name == names[0]:
            wait_until_ready(plane)


def tree(name: str) -> Body:
    """A set of a small pod and a scaling group of two pods on nodes of one rack."""
    small = {"containers": [{"name": "main", "image": "x"}]}
    cliques = (clique("front", 1, pod_spec=small), clique("l", 1, pod_spec=gpus("8")), clique("w", 1, pod_spec=gpus("8")))
    return podcliqueset(name, *cliques, groups=(group("g", "l", "w") | IN_ONE_RACK,), namespace=NAMESPACE)


async def test_hierarchies_live_on_while_they_are_not_served_and_new_sets_have_one_group(plane: ControlPlane, tmp_path: Path) -> None:
    run = commands(plane, tmp_path)
    async with connection(plane, "admin") as admin:
        await prepare(admin)
        await admin.create(kinds.TOPOLOGY_BINDING, "", HALL)
        assert (await run("sync", "-f", written(tmp_path, tree("old")), "--yes", "--timeout", "60s")).code == Exit.DONE
        pods, groups = await uids(admin, kinds.POD), {kind: await uids(admin, kind) for kind in GROUPS}

    start_with(plane, WITHOUT_HIERARCHIES)
    async with connection(plane, "admin") as admin:
        for words in (("diff",), ("status",)):
            shown = await run(*words)
            assert shown.code == Exit.DONE and (shown.out + shown.err).count(f"{NAMESPACE}/old-0 {TOLD}") == 1, shown
        assert (await run("diff")).out.startswith("No changes.") and " settled " in (await run("status")).out
        lost = next(name for name in pods if name.startswith("old-0-g-0-l-"))
        await admin.delete(kinds.POD, NAMESPACE, lost, grace=0)
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert "" not in (await placed(admin, "old")).values()

        assert (await run("sync", "-f", written(tmp_path, tree("new")), "--yes", "--timeout", "60s")).code == Exit.DONE
        assert {name for name in await uids(admin, kinds.POD_GROUP) if name.startswith("new")} == {"new-0"}

    start_with(plane, {new: old for old, new in WITHOUT_HIERARCHIES.items()})
    async with connection(plane, "admin") as admin:
        shown = await run("diff")
        assert shown.code == Exit.DONE and "\nNo changes." in shown.out and TOLD not in shown.out + shown.err, shown
        assert shown.out.count("with one PodGroup each: it stays as it was created") == 1
        assert {kind: {name for name in await uids(admin, kind) if name in groups[kind]} for kind in GROUPS} == {
            kind: set(names) for kind, names in groups.items()
        }
        after = await uids(admin, kinds.POD)
        assert {name for name, uid in pods.items() if after.get(name) != uid} == {lost}
        await removed(admin, run, "old", "new")
        await eventually(partial(_has_no, admin))


async def _has_no(admin: KubernetesClient) -> bool:
    return not any([await uids(admin, kind) for kind in GROUPS])
