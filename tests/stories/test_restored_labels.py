"""Labels that users remove or change: the engine finds its objects by their owners, restores the labels, and replaces nothing."""

from typing import Any

import pytest

from engine.ids import Kind
from engine.resource_plan import LABELS_RESTORED
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from resources.base import kinds, labels
from tests.builders import clique, group, podcliqueset
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

WORKLOAD = podcliqueset("web", clique("worker", 2), clique("member"), groups=(group("g", "member"),), replicas=2)
KINDS = (kinds.SERVICE, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG, kinds.POD, kinds.SERVICE_ACCOUNT)


def identities(cluster: Stage, kind: Kind) -> dict[str, tuple[str, Any]]:
    """Name -> uid and labels of the objects of a kind."""
    return {name: (body["metadata"]["uid"], body["metadata"].get("labels")) for name, body in cluster.there(kind).items()}


async def relabel(cluster: Stage, kind: Kind, name: str, changed: dict[str, str | None]) -> None:
    """`kubectl label`; None removes a label."""
    await cluster.kubectl.patch(kind, "default", name, {"metadata": {"labels": changed}})


async def unlabel(cluster: Stage, kind: Kind) -> None:
    """Remove all labels of all our objects of a kind."""
    for name, body in cluster.there(kind).items():
        if (body["metadata"].get("labels") or {}).get(labels.PART_OF) == "web":
            await relabel(cluster, kind, name, dict.fromkeys(body["metadata"]["labels"]))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_sync_restores_removed_labels_and_says_why(kind: Kind) -> None:
    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        await cluster.sync()
        before = {kind.name: identities(cluster, kind) for kind in KINDS}
        await unlabel(cluster, kind)
        assert identities(cluster, kind) != before[kind.name]

        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert {kind.name: identities(cluster, kind) for kind in KINDS} == before
        restored = [result.operation for result in report.results if result.operation.why == LABELS_RESTORED]
        assert {(operation.verb, operation.id.kind) for operation in restored} == {(Verb.PATCH, kind.name)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_diff_shows_that_removed_labels_are_restored_and_creates_nothing(kind: Kind) -> None:
    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        await cluster.sync()
        await unlabel(cluster, kind)

        (plan,) = (await cluster.look()).planned.plans

        restored = [operation for operation in plan.operations if operation.verb is not Verb.STATUS]
        assert restored != []
        assert {(operation.verb, operation.id.kind, operation.why) for operation in restored} == {(Verb.PATCH, kind.name, LABELS_RESTORED)}


async def test_run_restores_the_labels_of_a_service_that_names_another_set() -> None:
    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        async with cluster.running():
            await cluster.settle()
            before = identities(cluster, kinds.SERVICE)
            await relabel(cluster, kinds.SERVICE, "web-0", {labels.PART_OF: "another"})
            await relabel(cluster, kinds.SERVICE, "web-1", dict.fromkeys(before["web-1"][1]))
            await cluster.settle()

        assert identities(cluster, kinds.SERVICE) == before


@pytest.mark.parametrize("how", ["sync", "run"])
@pytest.mark.parametrize("kind", [kinds.PODCLIQUE, kinds.SCALING_GROUP], ids=lambda kind: kind.name)
async def test_what_our_finalizer_holds_is_found_without_labels_although_nothing_wants_it_any_more(kind: Kind, how: str) -> None:
    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        await cluster.sync()
        await unlabel(cluster, kind)
        await cluster.scale(kinds.PODCLIQUESET, "web", 1)

        await synced(cluster, how)
        assert {name for each in KINDS for name in cluster.there(each) if name.startswith("web-1")} == set()

        await unlabel(cluster, kind)
        await cluster.delete(kinds.PODCLIQUESET, "web")
        await synced(cluster, how)
        assert not any(cluster.there(each) for each in (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.POD))


async def synced(cluster: Stage, how: str) -> None:
    """A new process of ours does what is to do."""
    if how == "sync":
        assert (await cluster.sync()).ending is Ending.DONE
        return
    async with cluster.running():
        await cluster.settle()


async def test_a_podclique_of_others_is_left_alone() -> None:
    async with stage() as cluster:
        spec = {"roleName": "x", "replicas": 1, "podSpec": {"containers": [{"name": "main", "image": "i"}]}}
        metadata = {"name": "theirs", "namespace": "default", "finalizers": ["example.com/theirs"]}
        body = {"apiVersion": kinds.PODCLIQUE.api_version, "kind": kinds.PODCLIQUE.name, "metadata": metadata, "spec": spec}
        await cluster.kubectl.create(kinds.PODCLIQUE, "default", body)
        before = identities(cluster, kinds.PODCLIQUE)

        assert (await cluster.look()).world.orphans == ()
        await synced(cluster, "run")
        assert identities(cluster, kinds.PODCLIQUE) == before
