"""FailedCall: a cluster that refuses, stumbles, loses answers or belongs to others, and users who change their minds."""

import anyio
import pytest

from engine.errors import ClusterError, Conflict, Forbidden, ServerFault, Throttled, Unreachable
from engine.operation import Outcome
from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.stories.process import Call
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

WORKLOAD = podcliqueset("web", clique("worker", 2), replicas=2)


async def settled(cluster: Stage) -> None:
    """The workload is up."""
    await cluster.apply(WORKLOAD)
    assert (await cluster.sync()).ending is Ending.DONE


async def test_every_answer_to_a_create_may_be_lost_and_nothing_is_made_twice() -> None:
    lost: set[str] = set()

    def lose_once(call: Call) -> ClusterError | None:
        verb, kind, name = call
        if verb != "create" or kind.name in ("Lease", "Event") or (key := f"{kind.name} {name}") in lost:
            return None
        lost.add(key)
        return ServerFault("500 after the write") if len(lost) % 2 else Unreachable("cut after the write")

    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        ours = cluster.start()
        ours.loses = lose_once

        report = await cluster.sync(ours)

        assert report.ending is Ending.DONE
        assert len(lost) > 10
        assert set(ours.created.values()) == {1}
        assert {result.outcome for result in report.results} == {Outcome.DONE}


async def test_a_server_that_stumbles_at_every_other_write_is_worn_down() -> None:
    failed_calls = iter(range(10_000))

    def stumble(call: Call) -> ClusterError | None:
        if call[0] == "list" or call[1].name in ("Lease", "Event"):
            return None
        turn = next(failed_calls)
        table = {1: ServerFault("500"), 3: Throttled("busy", retry_after=1), 5: Unreachable("cut"), 7: Conflict("somebody was here")}
        return table.get(turn % 8)

    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        ours = cluster.start()
        ours.refuses = stumble

        report = await cluster.sync(ours)

        assert report.ending is Ending.DONE
        assert set(ours.created.values()) == {1}
        assert len(await cluster.objects(kinds.POD)) == 4


async def test_a_kind_that_may_not_be_listed_is_left_alone_and_the_others_go_on() -> None:
    async with stage() as cluster:
        await settled(cluster)
        await cluster.delete(kinds.SERVICE, "web-0")
        await cluster.scale(kinds.PODCLIQUESET, "web", 1)
        ours = cluster.start()
        ours.refuses = lambda call: Forbidden("pods are not for you") if call[0] == "list" and call[1] == kinds.POD else None

        report = await cluster.sync(ours)

        assert report.ending is Ending.INCOMPLETE
        assert report.incomplete == {"Pod": "pods are not for you"}
        assert "Service web-0" in await cluster.names(kinds.SERVICE)
        assert len(await cluster.objects(kinds.POD)) == 4
        assert len(await cluster.objects(kinds.PODCLIQUE)) == 2
        assert {str(held.id) for plan in report.plans for held in plan.deferred} >= {
            "PodClique/default/web-1-worker",
            "PodGang/default/web-1",
        }


async def test_a_kind_that_may_not_be_written_fails_and_the_others_go_on() -> None:
    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        ours = cluster.start()
        ours.refuses = lambda call: Forbidden("roles are not for you") if call[:2] == ("create", kinds.ROLE) else None

        report = await cluster.sync(ours)

        assert report.ending is Ending.FAILED
        assert [str(result.error) for result in report.failures] == ["roles are not for you"]
        assert len([refused for refused in ours.refused if "Role " in refused]) == 1
        assert "Service web-0" in await cluster.names(kinds.SERVICE)


async def test_an_interrupted_sync_is_completed_by_the_next_one() -> None:
    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        ours, stop = cluster.start(), anyio.CancelScope()
        ours.on_write = lambda: stop.cancel() if ours.count == 6 else None

        report = await cluster.sync(ours, stop=stop)

        assert report.ending is Ending.INTERRUPTED
        assert report.not_started
        assert ours.count < 6 + 24
        assert (await cluster.sync()).ending is Ending.DONE
        assert len(await cluster.objects(kinds.POD)) == 4


async def test_what_waits_for_the_cluster_is_named_when_time_is_up() -> None:
    async with stage(nodes=0) as cluster:
        await cluster.apply(podcliqueset("web", clique("worker", 1)))

        report = await cluster.sync(patience=60)

        assert (report.ending, report.timed_out) == (Ending.TIMED_OUT, True)
        assert [str(waiting.id) for waiting in report.pending] == ["PodClique/default/web-0-worker"]
        assert "Unschedulable: no nodes are available" in report.pending[0].why


async def test_an_object_of_others_that_has_one_of_our_names_is_left_alone_and_told() -> None:
    theirs = {"metadata": {"name": "web-0"}, "spec": {"ports": [{"port": 80}]}}
    async with stage() as cluster:
        await cluster.kubectl.create(kinds.SERVICE, "default", theirs)
        await cluster.apply(WORKLOAD)

        report = await cluster.sync()

        assert report.ending is Ending.STUCK
        assert [held.id.name for held in report.blocked] == ["web-0"]
        assert "not controlled by PodCliqueSet default/web" in report.blocked[0].why
        assert "labels" not in (await cluster.kubectl.get(kinds.SERVICE, "default", "web-0"))["metadata"]
        assert len(await cluster.objects(kinds.POD)) == 4

        await cluster.delete(kinds.SERVICE, "web-0")

        assert (await cluster.sync()).ending is Ending.DONE


async def test_users_who_change_their_minds_while_a_sync_runs_are_followed() -> None:
    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        ours = cluster.start()
        changed = anyio.Event()
        ours.on_write = lambda: changed.set() if ours.count == 5 else None

        async def change_mind() -> None:
            await changed.wait()
            await cluster.scale(kinds.PODCLIQUESET, "web", 3)

        async with anyio.create_task_group() as group:
            group.start_soon(change_mind)
            report = await cluster.sync(ours)

        assert report.ending is Ending.DONE
        assert len(await cluster.objects(kinds.POD)) == 6
