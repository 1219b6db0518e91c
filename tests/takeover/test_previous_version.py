"""A fleet whose hashes the version before has computed is taken over without a restart, at rest and in the middle of an update."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.leaves import explain
from engine.operation import Operation, body_of
from engine.reason import Reason
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from resources.base import kinds, labels
from resources.model.template import is_our_hash
from tests.builders import clique, group, podcliqueset
from tests.resources.model.previous_hash import previous_version
from tests.stories.pods import images, is_leaving, running
from tests.stories.stage import Stage, stage
from tests.takeover.worlds import EXAMPLES, WORLDS, inference

pytestmark = pytest.mark.anyio

Body = dict[str, Any]
HASH = f"metadata.labels.{labels.TEMPLATE_HASH}"
ROOTS = (kinds.PODCLIQUESET.name, kinds.DYNAMO_GRAPH.name)


def manifests(path: Path) -> list[Body]:
    """The sets and graphs of a file, in the namespace `default`."""
    documents = [document for document in yaml.load_all(path.read_text(), yaml.CSafeLoader) if document and document.get("kind") in ROOTS]
    return [{**document, "metadata": {**document["metadata"], "namespace": "default"}} for document in documents]


def fleet() -> Iterator[tuple[str, list[Body]]]:
    """Every example with sets or graphs, and every set of the take-over from Grove's operator."""
    for path in sorted(EXAMPLES.glob("[0-9]*/*.yaml")):
        if bodies := manifests(path):
            yield f"{path.parent.name}/{path.stem}", bodies
    yield from ((name, [world.manifest]) for name, world in WORLDS.items())


FLEET = dict(fleet())


def uids(cluster: Stage) -> dict[tuple[str, str], str]:
    """Kind and name -> uid of everything that sets and graphs have."""
    kinds_kept = (kinds.POD, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG, kinds.SERVICE, kinds.DEPLOYMENT, kinds.LEADER_WORKER_SET)
    served = [kind for kind in kinds_kept if cluster.serves(kind)]
    return {(kind.name, name): body["metadata"]["uid"] for kind in served for name, body in cluster.there(kind).items()}


def hashes(cluster: Stage) -> set[str]:
    """The hash labels of all pods and cliques."""
    bodies = (body for kind in (kinds.POD, kinds.PODCLIQUE) for body in cluster.there(kind).values())
    return {body["metadata"]["labels"].get(labels.TEMPLATE_HASH, "") for body in bodies} - {""}


async def planned(cluster: Stage) -> list[Operation]:
    """The operations of the next pass."""
    seen = await cluster.look()
    return [operation for plan in seen.planned.plans for operation in plan.operations]


@pytest.mark.parametrize("name", FLEET)
async def test_a_fleet_at_rest_gets_new_hash_labels_and_nothing_else(name: str) -> None:
    async with stage(nodes=40) as cluster:
        with previous_version():
            for manifest in FLEET[name]:
                await cluster.apply(manifest)
            async with cluster.running():
                await cluster.settle()
        before, old = uids(cluster), hashes(cluster)
        assert not any(map(is_our_hash, old))

        written: list[Operation] = []
        async with cluster.running():
            for _ in range(6):
                written += await planned(cluster)
                await cluster.clock.advance(5)
            await cluster.settle()

        assert uids(cluster) == before
        assert not old or all(map(is_our_hash, hashes(cluster)))
        patches = [operation for operation in written if operation.verb is not Verb.STATUS]
        assert {operation.verb for operation in patches} <= {Verb.PATCH}
        assert {operation.reason for operation in patches} <= {Reason.ADOPTED}
        assert {".".join(change.path) for operation in patches for change in explain(operation)} <= {HASH}
        assert [operation for operation in await planned(cluster) if operation.verb is not Verb.STATUS] == []


@pytest.mark.parametrize("moment", [1, 3, 6, 10, 20])
async def test_an_update_goes_on_where_the_version_before_has_left_it(moment: int) -> None:
    async with stage() as cluster:
        with previous_version():
            await cluster.apply(inference(1))
            await cluster.sync()
            await cluster.apply(inference(2))
            async with cluster.running():
                await cluster.clock.advance(moment)
        before = cluster.there(kinds.POD)
        updated = {name: pod["metadata"]["uid"] for name, pod in before.items() if images([pod]) == {"example/worker:2"}}

        report = await cluster.sync()

        after = cluster.there(kinds.POD)
        assert report.ending is Ending.DONE
        assert images(after.values()) == {"example/worker:2"}
        assert {name: after[name]["metadata"]["uid"] for name in updated if name in after} == updated
        assert {result.operation.reason for result in report.results if result.operation.verb is Verb.CREATE} <= {Reason.TEMPLATE_CHANGED}


async def test_an_update_made_while_no_version_runs_is_carried_out() -> None:
    async with stage() as cluster:
        with previous_version():
            await cluster.apply(inference(1))
            await cluster.sync()

        await cluster.apply(inference(2))
        await cluster.sync()

        assert images(cluster.there(kinds.POD).values()) == {"example/worker:2"}


async def test_a_pod_of_an_outdated_clique_is_created_again_from_the_previous_template() -> None:
    def workload(version: int) -> Body:
        worker = clique("worker", 2, minAvailable=1, labels={"version": str(version)}, pod_spec=running(version))
        return podcliqueset("llm", worker, groups=(group("pool", "worker", replicas=2, min_available=2),))

    async with stage() as cluster:
        with previous_version():
            await cluster.apply(workload(1))
            await cluster.sync()
            await cluster.apply(workload(2))
            async with cluster.running():
                await cluster.until(lambda: any(map(is_leaving, cluster.there(kinds.POD).values())))
        pods = sorted(cluster.there(kinds.POD).items(), reverse=True)
        outdated = next(name for name, pod in pods if images([pod]) == {"example/worker:1"} and not is_leaving(pod))
        lost = cluster.there(kinds.POD)[outdated]
        await cluster.kubectl.delete(kinds.POD, "default", outdated, propagation="Background", grace=0)
        await cluster.clock.advance(1)

        created = [operation for operation in await planned(cluster) if operation.verb is Verb.CREATE and operation.id.kind == "Pod"]

        previous = [each for each in created if body_of(each)["metadata"]["labels"]["version"] == "1"]
        assert len(previous) == 1 and images([body_of(previous[0])]) == {"example/worker:1"}
        assert body_of(previous[0])["metadata"]["labels"][labels.TEMPLATE_HASH] == lost["metadata"]["labels"][labels.TEMPLATE_HASH]
