"""Updates: how an edit of the template reaches the pods of a clique, the replicas of a group, and the replicas of a set."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from engine.conditions import find
from engine.ids import Kind
from resources.base import kinds
from resources.lifecycle.availability import BREACHED
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import clique_of, images, is_ready, running, unit_of
from tests.stories.stage import Stage, stage
from tests.stories.umpire import Umpire

pytestmark = pytest.mark.anyio

SLOW = {"sandbox.grove.io/ready-after": "5s", "sandbox.grove.io/terminate-after": "3s"}
Body = dict[str, Any]


def plain(version: int, **template: Any) -> Body:
    """A clique of three that can spare one."""
    return podcliqueset("web", clique("worker", 3, minAvailable=2, pod_spec=running(version), annotations=SLOW), **template)


def whole(version: int, minimum: int = 1, sets: int = 2, annotations: Mapping[str, str] = SLOW) -> Body:
    """A clique that stands alone, and a group of two; with slack or without."""
    same: Body = {"pod_spec": running(version), "annotations": dict(annotations)}
    cliques = [clique("router", 2, minAvailable=minimum, **same), clique("leader", **same), clique("worker", 2, **same)]
    return podcliqueset("llm", *cliques, groups=(group("pool", "leader", "worker", replicas=2, min_available=minimum),), replicas=sets)


def image(version: int) -> set[str]:
    return {f"example/worker:{version}"}


def status_of(cluster: Stage, kind: Kind, name: str) -> Mapping[str, Any]:
    """The status of an object."""
    status: Mapping[str, Any] = cluster.there(kind)[name].get("status") or {}
    return status


def is_over(cluster: Stage, name: str, version: int) -> bool:
    """Whether everything runs the version, serves, and the set says so."""
    pods, status = cluster.there(kinds.POD).values(), status_of(cluster, kinds.PODCLIQUESET, name)
    ended = "updateEndedAt" in status.get("updateProgress", {}) and status["updatedReplicas"] == status["replicas"]
    return ended and images(pods) == image(version) and all(map(is_ready, pods))


async def diary(cluster: Stage, name: str, version: int, *subjects: tuple[Kind, str]) -> list[list[Mapping[str, Any]]]:
    """The statuses of these objects, second by second, until the update is over."""
    pages: list[list[Mapping[str, Any]]] = []
    while not is_over(cluster, name, version):
        assert len(pages) < 300, "the update does not end"
        await cluster.clock.advance(1)
        pages.append([status_of(cluster, *subject) for subject in subjects])
    return pages


def breached(status: Mapping[str, Any]) -> Mapping[str, Any]:
    return find(status["conditions"], BREACHED) or {}


async def test_pods_of_a_clique_are_replaced_one_by_one_the_oldest_first() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(plain(1))
        await cluster.settle()
        before = cluster.there(kinds.POD)
        umpire = Umpire(cluster, ours)

        await cluster.apply(plain(2))
        pages = await diary(cluster, "web", 2, (kinds.PODCLIQUE, "web-0-worker"))

        assert umpire.fouls == []
        assert umpire.takes == sorted(before, key=lambda name: (before[name]["metadata"]["creationTimestamp"], name))
        assert all(status["readyReplicas"] >= 2 for (status,) in pages)
        assert not ours.refused


async def test_a_clique_tells_whose_turn_it_is_and_who_has_had_theirs() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(plain(1))
        await cluster.settle()
        at_rest = status_of(cluster, kinds.PODCLIQUE, "web-0-worker")
        assert at_rest["updateProgress"]["updateStartedAt"] == at_rest["updateProgress"]["updateEndedAt"]
        umpire = Umpire(cluster, ours)

        await cluster.apply(plain(2))
        pages = [page for (page,) in await diary(cluster, "web", 2, (kinds.PODCLIQUE, "web-0-worker"))]

        rolling = [page for page in pages if "updateEndedAt" not in page["updateProgress"]]
        turns = [page["updateProgress"].get("readyPodsSelectedToUpdate") or {} for page in rolling]
        told_turns = list(dict.fromkeys(turn["current"] for turn in turns if turn))
        assert told_turns == umpire.takes
        assert turns[-1].get("completed", []) == umpire.takes[:-1]
        assert {breached(page)["status"] for page in rolling} == {"Unknown"}
        assert {breached(page)["reason"] for page in rolling} == {"UpdateInProgress"}
        assert all(after["updatedReplicas"] - before["updatedReplicas"] in (0, 1) for before, after in pairwise(rolling))

        await cluster.settle()
        ended = status_of(cluster, kinds.PODCLIQUE, "web-0-worker")
        assert breached(ended)["status"] == "False"
        assert ended["updatedReplicas"] == ended["readyReplicas"] == 3
        assert "readyPodsSelectedToUpdate" not in ended["updateProgress"]
        assert ended["currentPodTemplateHash"] == ended["updateProgress"]["podTemplateHash"] != at_rest["currentPodTemplateHash"]
        generation = status_of(cluster, kinds.PODCLIQUESET, "web")["currentGenerationHash"]
        assert ended["currentPodCliqueSetGenerationHash"] == ended["updateProgress"]["podCliqueSetGenerationHash"] == generation


async def test_replicas_of_a_group_are_replaced_as_a_whole_one_after_the_other() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(whole(1, sets=1))
        await cluster.settle()
        before = {name: body["metadata"]["uid"] for name, body in cluster.there(kinds.PODCLIQUE).items()}
        umpire = Umpire(cluster, ours)

        await cluster.apply(whole(2, sets=1))
        pages = [page for (page,) in await diary(cluster, "llm", 2, (kinds.SCALING_GROUP, "llm-0-pool"))]

        assert umpire.fouls == []
        assert umpire.takes[-2:] == ["llm-0-pool/0", "llm-0-pool/1"]
        assert all(page["availableReplicas"] >= 1 for page in pages)
        kept = {name for name, body in cluster.there(kinds.PODCLIQUE).items() if body["metadata"]["uid"] == before[name]}
        assert kept == {"llm-0-router"}
        rolling = [page for page in pages if "updateProgress" in page and "updateEndedAt" not in page["updateProgress"]]
        turns = [page["updateProgress"].get("readyReplicaIndicesSelectedToUpdate") for page in rolling]
        assert {"current": 0} in turns and turns[-1] == {"current": 1, "completed": [0]}
        assert {breached(page)["status"] for page in rolling} == {"Unknown"}
        assert {page["updateProgress"]["totalPodCliquesCount"] for page in rolling} == {4}

        await cluster.settle()
        ended = status_of(cluster, kinds.SCALING_GROUP, "llm-0-pool")
        assert "readyReplicaIndicesSelectedToUpdate" not in ended["updateProgress"]
        assert (ended["updatedReplicas"], ended["updateProgress"]["updatedPodCliquesCount"]) == (2, 4)
        assert ended["currentPodCliqueSetGenerationHash"] == status_of(cluster, kinds.PODCLIQUESET, "llm")["currentGenerationHash"]
        assert breached(ended)["status"] == "False"
        members = [body for name, body in cluster.there(kinds.PODCLIQUE).items() if "-pool-" in name]
        assert not any("updateProgress" in body["status"] for body in members)


@pytest.mark.parametrize("minimum", [1, 2])
async def test_replicas_of_a_set_are_updated_one_after_the_other(minimum: int) -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(whole(1, minimum, sets=3))
        await cluster.settle()
        umpire = Umpire(cluster, ours)

        await cluster.apply(whole(2, minimum, sets=3))
        pages = [page for (page,) in await diary(cluster, "llm", 2, (kinds.PODCLIQUESET, "llm"))]

        assert umpire.fouls == []
        assert len(umpire.takes) == 3 * (2 + 2)
        assert [take[:5] for take in umpire.takes] == sorted(take[:5] for take in umpire.takes)
        progress = [page["updateProgress"] for page in pages if "updateProgress" in page]
        turns = [[turn["replicaIndex"] for turn in page.get("currentlyUpdating") or ()] for page in progress]
        assert list(dict.fromkeys(index for turn in turns for index in turn)) == [0, 1, 2]
        assert {(page["totalPodCliquesCount"], page["totalPodCliqueScalingGroupsCount"]) for page in progress} == {(3, 3)}
        assert min(page["availableReplicas"] for page in pages) == (3 if minimum == 1 else 2)

        await cluster.settle()
        ended = status_of(cluster, kinds.PODCLIQUESET, "llm")
        assert "currentlyUpdating" not in ended["updateProgress"]
        assert (ended["updateProgress"]["updatedPodCliquesCount"], ended["updateProgress"]["updatedPodCliqueScalingGroupsCount"]) == (3, 3)


async def test_an_edit_in_the_middle_wins_and_begins_the_progress_anew() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(whole(1))
        await cluster.settle()
        umpire = Umpire(cluster, ours)
        await cluster.apply(whole(2))
        await cluster.until(lambda: len(umpire.takes) == 3)
        first = status_of(cluster, kinds.PODCLIQUESET, "llm")

        await cluster.apply(whole(3))
        await cluster.until(lambda: is_over(cluster, "llm", 3))

        last = status_of(cluster, kinds.PODCLIQUESET, "llm")
        assert umpire.fouls == []
        assert last["updateProgress"]["updateStartedAt"] > first["updateProgress"]["updateStartedAt"]
        assert last["currentGenerationHash"] != first["currentGenerationHash"]
        # What had not had its turn under the second version has never seen it.
        assert len(umpire.takes) <= 3 + 8


async def test_an_edit_that_is_taken_back_takes_away_only_what_had_followed_it() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(plain(1))
        await cluster.settle()
        before = set(cluster.there(kinds.POD))
        umpire = Umpire(cluster, ours)
        await cluster.apply(plain(2))
        await cluster.until(lambda: "updateProgress" in status_of(cluster, kinds.PODCLIQUESET, "web"))
        assert len(umpire.takes) == 1

        await cluster.apply(plain(1))
        await cluster.until(lambda: is_over(cluster, "web", 1))

        assert umpire.fouls == []
        assert len(before & set(cluster.there(kinds.POD))) == 2


async def test_labels_of_the_new_version_are_never_on_what_runs_the_old_one() -> None:
    def labelled(version: int) -> Body:
        same: Body = {"pod_spec": running(version), "labels": {"version": str(version)}, "annotations": {**SLOW, "version": str(version)}}
        cliques = [clique("router", 2, **same), clique("worker", **same)]
        return podcliqueset("web", *cliques, groups=(group("pool", "worker", replicas=2),), replicas=2)

    async with stage() as cluster, cluster.running():
        await cluster.apply(labelled(1))
        await cluster.settle()

        await cluster.apply(labelled(2))
        while not is_over(cluster, "web", 2):
            for pod in cluster.there(kinds.POD).values():
                (runs,) = images([pod])
                told_of = (pod["metadata"]["labels"]["version"], pod["metadata"]["annotations"]["version"])
                assert told_of == (runs[-1], runs[-1])
            await cluster.clock.advance(1)


async def test_who_is_healed_before_its_turn_is_of_the_old_version_through_and_through() -> None:
    def labelled(version: int, **annotations: str) -> Body:
        own = {**SLOW, "version": str(version), **annotations}
        worker = clique("worker", 2, minAvailable=1, pod_spec=running(version), labels={"version": str(version)}, annotations=own)
        return podcliqueset("web", worker, groups=(group("pool", "worker", replicas=2),))

    async with stage() as cluster, cluster.running():
        await cluster.apply(labelled(1))
        await cluster.settle()
        await cluster.apply(labelled(2, **{"sandbox.grove.io/fail": "never-ready"}))
        await cluster.settle()
        waits = [name for name, pod in cluster.there(kinds.POD).items() if images([pod]) == image(1)]

        for name in waits[:1]:
            await cluster.delete(kinds.POD, name)
            await cluster.settle()

        pods = [pod["metadata"] for pod in cluster.there(kinds.POD).values() if images([pod]) == image(1)]
        assert len(pods) == len(waits) == 2
        assert [(pod["labels"]["version"], pod["annotations"]["version"]) for pod in pods] == [("1", "1")] * 2
        assert not any("sandbox.grove.io/fail" in pod["annotations"] for pod in pods)


@pytest.mark.parametrize("how", ["never-ready", "image-pull", "crash"])
async def test_a_template_that_never_serves_takes_one_unit_and_no_more_and_the_next_one_heals(how: str) -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(whole(1, 2))
        await cluster.settle()
        umpire = Umpire(cluster, ours)

        await cluster.apply(whole(2, 2, annotations={"sandbox.grove.io/fail": how}))
        await cluster.clock.advance(600)

        assert len(umpire.takes) == 1
        assert len([pod for pod in cluster.there(kinds.POD).values() if not is_ready(pod)]) == 1
        assert status_of(cluster, kinds.PODCLIQUESET, "llm")["updateProgress"]["currentlyUpdating"][0]["replicaIndex"] == 0

        await cluster.apply(whole(3, 2))
        await cluster.until(lambda: is_over(cluster, "llm", 3))

        assert umpire.fouls == []
        assert len(umpire.takes) <= 8


async def test_a_replica_whose_new_pods_do_not_become_ready_is_named_as_the_one_being_updated() -> None:
    def manifest(version: int, **annotations: str) -> Body:
        return podcliqueset("web", clique("worker", pod_spec=running(version), annotations={**SLOW, **annotations}), replicas=2)

    async with stage() as cluster, cluster.running():
        await cluster.apply(manifest(1))
        await cluster.settle()

        await cluster.apply(manifest(2, **{"sandbox.grove.io/fail": "never-ready"}))
        for _ in range(12):
            await cluster.clock.advance(10)
            (updating,) = status_of(cluster, kinds.PODCLIQUESET, "web")["updateProgress"]["currentlyUpdating"]
            assert updating["replicaIndex"] == 0
        assert images(pod for pod in cluster.there(kinds.POD).values() if clique_of(pod) == "web-1-worker") == image(1)


async def test_on_delete_people_decide_when() -> None:
    on_delete = {"updateStrategy": {"type": "OnDelete"}}
    first, second = whole(1, sets=1), whole(2, sets=1)
    first["spec"] |= on_delete
    second["spec"] |= on_delete
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(first)
        await cluster.settle()
        umpire = Umpire(cluster, ours)
        before = set(cluster.there(kinds.POD))

        await cluster.apply(second)
        await cluster.settle()
        assert set(cluster.there(kinds.POD)) == before
        progress = status_of(cluster, kinds.PODCLIQUESET, "llm")["updateProgress"]
        assert progress["updateStartedAt"] == progress["updateEndedAt"]
        assert status_of(cluster, kinds.PODCLIQUE, "llm-0-pool-1-worker")["updatedReplicas"] == 0
        assert status_of(cluster, kinds.PODCLIQUESET, "llm")["updatedReplicas"] == 0

        for name in sorted(before):
            await cluster.delete(kinds.POD, name)
        await cluster.settle()
        assert umpire.takes == umpire.fouls == []
        assert images(cluster.there(kinds.POD).values()) == image(2)
        assert status_of(cluster, kinds.PODCLIQUE, "llm-0-pool-1-worker")["updatedReplicas"] == 2
        assert status_of(cluster, kinds.PODCLIQUESET, "llm")["updatedReplicas"] == 1


async def test_what_was_scaled_by_hand_keeps_its_number_through_an_update_and_newcomers_are_new() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(plain(1))
        await cluster.settle()
        await cluster.scale(kinds.PODCLIQUE, "web-0-worker", 4)
        await cluster.settle()
        umpire = Umpire(cluster, ours)

        await cluster.apply(plain(2))
        await cluster.until(lambda: len(umpire.takes) == 1)
        await cluster.scale(kinds.PODCLIQUESET, "web", 2)
        await cluster.until(lambda: is_over(cluster, "web", 2))

        assert umpire.fouls == []
        assert len(umpire.takes) == 4
        pods = cluster.there(kinds.POD).values()
        assert sorted(map(clique_of, pods)) == ["web-0-worker"] * 4 + ["web-1-worker"] * 3
        assert not any(unit_of(pod).startswith("web-1") for pod in pods if unit_of(pod) in umpire.takes)
