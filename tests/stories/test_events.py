"""Events: a user finds what has happened to a set, also to a large one, and the server is not flooded."""

import re
from typing import Any

import pytest

from engine.errors import ClusterError, Forbidden
from engine.runtime import passes
from engine.runtime.event_correlation import COMBINED, WINDOW
from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.mnnvl.sets import auto, gpu
from tests.stories.fabric import rack
from tests.stories.process import Call
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio


class Events:
    """The Events that a process writes: each call to a server that records them."""

    def __init__(self) -> None:
        self.writes = 0

    def count(self, call: Call) -> ClusterError | None:
        """Called before each call of the process; refuses none."""
        verb, kind, _ = call
        self.writes += kind is kinds.EVENT and verb in ("create", "patch")
        return None


def events(cluster: Stage, reason: str) -> list[dict[str, Any]]:
    """The Events with that reason."""
    return [event for event in cluster.there(kinds.EVENT).values() if event["reason"] == reason]


@pytest.mark.parametrize("replicas", [1, 150])
async def test_a_deleted_set_is_one_event_for_each_reason_with_its_number(replicas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MANY_OBJECTS", 10**6)  # A virtual clock does not wait for threads.
    monkeypatch.setattr("engine.runtime.loop.LARGE", 600)  # Many replicas are a large set.
    async with stage(nodes=60) as cluster:
        await cluster.apply(podcliqueset("web", clique("a", 1), clique("b", 1), replicas=replicas))
        async with cluster.running() as ours:
            await cluster.settle()
            assert len(cluster.there(kinds.POD)) == 2 * replicas
            seen = Events()
            ours.refuses = seen.count
            await cluster.delete(kinds.PODCLIQUESET, "web")
            await cluster.settle()
            assert cluster.there(kinds.POD) == {}

    deleted = {reason: events(cluster, f"{reason}DeleteSuccessful") for reason in ("Pod", "PodClique", "PodGang")}
    numbers = {reason: [(each["involvedObject"]["name"], each["count"]) for each in of_reason] for reason, of_reason in deleted.items()}
    assert numbers == {"Pod": [("web", 2 * replicas)], "PodClique": [("web", 2 * replicas)], "PodGang": [("web", replicas)]}
    assert seen.writes <= 2 * len(deleted)
    (gangs,) = deleted["PodGang"]
    if replicas > 1:
        assert re.fullmatch(re.escape(COMBINED) + r"Deleted PodGang (default/web-\d+, ){2}default/web-\d+ and others", gangs["message"])
    else:
        assert gangs["message"] == "Deleted PodGang default/web-0"


async def test_a_pod_and_a_replica_of_a_set_that_stays_are_reported_one_by_one() -> None:
    async with stage(nodes=20) as cluster:
        await cluster.apply(podcliqueset("web", clique("a", 1), clique("b", 1), replicas=20))
        async with cluster.running():
            await cluster.settle()
            (created,) = events(cluster, "PodCreateSuccessful")
            await cluster.delete(kinds.POD, min(cluster.there(kinds.POD)))
            await cluster.settle()
            await cluster.scale(kinds.PODCLIQUESET, "web", 19)
            await cluster.settle()

    assert created["count"] == 40
    assert created["involvedObject"]["name"] == "web"
    again = [each for each in events(cluster, "PodCreateSuccessful") if each["involvedObject"]["kind"] == "PodClique"]
    assert [each["count"] for each in again] == [1]
    assert sorted(each["message"][: -len("xxxxx")] for each in events(cluster, "PodDeleteSuccessful")) == [
        "Deleted Pod: web-19-a-",
        "Deleted Pod: web-19-b-",
    ]


async def test_each_domain_of_a_set_with_ten_replicas_has_its_own_event() -> None:
    async with rack(nodes=20) as cluster:
        await cluster.apply(auto(10, gpu(), clique("b", 1), clique("c", 1)))
        assert (await cluster.sync()).ending is Ending.DONE

        created = {event["message"] for event in events(cluster, "ComputeDomainCreated")}
        assert created == {f"ComputeDomain demo-{index} created" for index in range(10)}


async def test_an_alarm_that_lasts_is_one_event_however_many_processes_report_it() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("a", 1)) | {"spec": {"replicas": 1, "template": {"cliques": []}}})
        for _ in range(3):
            await cluster.sync()
            await cluster.clock.advance(60)

        (event,) = events(cluster, "ValidationFailed")
        assert event["count"] == 3
        assert event["lastTimestamp"] > event["firstTimestamp"]


async def test_events_that_are_forbidden_are_not_asked_for_again_and_disturb_nothing() -> None:
    def refuse(call: Call) -> ClusterError | None:
        return Forbidden("events is forbidden") if call[1] is kinds.EVENT else None

    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("a", 2), replicas=2))
        ours = cluster.start()
        ours.refuses = refuse
        async with cluster.running(ours):
            await cluster.settle()
            asked = len(ours.refused)
            await cluster.scale(kinds.PODCLIQUESET, "web", 5)
            await cluster.settle()
            assert len(cluster.there(kinds.POD)) == 10
            assert 0 < asked == len(ours.refused)

            await cluster.clock.advance(WINDOW)
            await cluster.scale(kinds.PODCLIQUESET, "web", 6)
            await cluster.settle()
            assert asked < len(ours.refused)


async def test_thirty_domains_are_thirty_events_beside_their_pods_created_and_deleted() -> None:
    async with rack(nodes=90) as cluster:
        await cluster.apply(auto(30, gpu(), clique("b", 2), clique("c", 2)))
        await cluster.sync(wait=False)
        created = [event["message"] for event in events(cluster, "ComputeDomainCreated")]

        await cluster.scale(kinds.PODCLIQUESET, "demo", 0)
        assert (await cluster.sync()).ending is Ending.DONE
        deleted = [event["message"] for event in events(cluster, "ComputeDomainDeleted")]

        assert sorted(created) == sorted(f"ComputeDomain demo-{index} created" for index in range(30))
        assert sorted(deleted) == sorted(f"ComputeDomain demo-{index} deleted" for index in range(30))
