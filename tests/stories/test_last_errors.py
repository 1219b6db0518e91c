"""Last errors: failed calls are reported by the object that lacks something, as long as they fail, and by the process that made them."""

from typing import Any

import pytest

from engine.errors import ClusterError, Forbidden, ServerFault
from engine.ids import Kind
from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.process import Call
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

WORKLOAD = podcliqueset("web", clique("front", 2), clique("back"), groups=(group("g", "back"),))


def denied(call: Call) -> ClusterError | None:
    """There is no room for pods of the front, and nobody may be bound to a role."""
    verb, kind, name = call
    if verb == "create" and kind == kinds.POD and "front" in name:
        return Forbidden("exceeded quota")
    return Forbidden("you may not escalate") if (verb, kind) == ("create", kinds.ROLE_BINDING) else None


async def errors(cluster: Stage, kind: Kind, name: str) -> list[dict[str, Any]]:
    """What an object tells."""
    status = (await cluster.kubectl.get(kind, "default", name)).get("status") or {}
    return list(status.get("lastErrors", ()))


async def trouble(cluster: Stage) -> None:
    """A set of which some is refused."""
    await cluster.apply(WORKLOAD)
    ours = cluster.start()
    ours.refuses = denied
    await cluster.sync(ours, patience=60)


async def test_what_could_not_be_done_is_told_on_the_object_that_lacks_it() -> None:
    async with stage() as cluster:
        await trouble(cluster)

        reported = await errors(cluster, kinds.PODCLIQUE, "web-0-front")
        assert [entry["code"] for entry in reported] == ["ERR_CREATE_POD"] * 2
        assert "[Operation: Sync, Code: ERR_CREATE_POD] message: create Pod/default/web-0-front-" in reported[0]["description"]
        assert reported[0]["description"].endswith("cause: exceeded quota")
        assert len({entry["description"] for entry in reported}) == 2
        assert await errors(cluster, kinds.PODCLIQUE, "web-0-g-0-back") == []
        (entry,) = await errors(cluster, kinds.PODCLIQUESET, "web")
        prefix = "failed to sync RoleBinding: [Operation: Sync, Code: ERR_SYNC_ROLEBINDING] message: create RoleBinding/default/"
        assert entry["code"] == "ERR_SYNC_ROLEBINDING"
        assert entry["description"] == f"{prefix}grove.io:pcs:web, cause: you may not escalate"
        assert len({entry["observedAt"], *(each["observedAt"] for each in reported)}) == 1


async def test_it_is_taken_back_once_it_is_done() -> None:
    async with stage() as cluster:
        await trouble(cluster)
        assert (await cluster.sync()).ending is Ending.DONE

        assert await errors(cluster, kinds.PODCLIQUE, "web-0-front") == []
        assert await errors(cluster, kinds.PODCLIQUESET, "web") == []


async def test_the_same_error_is_told_once_whoever_meets_it_again() -> None:
    async with stage() as cluster:
        await trouble(cluster)
        before = await cluster.shape(), await errors(cluster, kinds.PODCLIQUE, "web-0-front")
        await cluster.clock.advance(600)
        ours = cluster.start()
        ours.refuses = denied
        await cluster.sync(ours, patience=60)

        assert (await cluster.shape(), await errors(cluster, kinds.PODCLIQUE, "web-0-front")) == before
        assert [call for call in ours.writes if "status" in call] == []


async def test_errors_of_an_earlier_process_stand_until_somebody_has_tried_again() -> None:
    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        await cluster.sync()
        earlier = [{"code": "ERR_CREATE_POD", "description": "long ago", "observedAt": "2026-01-01T00:00:00Z"}]
        for kind, name in ((kinds.PODCLIQUE, "web-0-front"), (kinds.SCALING_GROUP, "web-0-g"), (kinds.PODCLIQUESET, "web")):
            await cluster.kubectl.patch(kind, "default", name, {"status": {"lastErrors": earlier}}, subresource="status")

        seen = await cluster.look()
        assert [plan.operations for plan in seen.planned.plans] == [()]
        assert {held.id.name for plan in seen.planned.plans for held in plan.deferred} == {"web", "web-0-g", "web-0-front"}

        first = cluster.start()
        assert (await cluster.sync(first, wait=False)).ending is Ending.DONE
        assert dict(first.writes) == {
            "patch PodClique status": 1,
            "patch PodCliqueScalingGroup status": 1,
            "patch PodCliqueSet status": 1,
        }
        assert await errors(cluster, kinds.PODCLIQUE, "web-0-front") == []
        assert await errors(cluster, kinds.PODCLIQUESET, "web") == []

        second = cluster.start()
        assert (await cluster.sync(second)).ending is Ending.DONE
        assert second.count == 0


async def test_an_error_that_lasts_is_told_once_by_the_loop_and_taken_back_when_it_is_over() -> None:
    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        ours = cluster.start()
        tries = iter(range(10_000))

        def stumble(call: Call) -> ClusterError | None:
            is_front = call[:2] == ("create", kinds.POD) and "front" in call[2]
            return ServerFault(f"attempt {next(tries)} failed") if is_front else None

        ours.refuses = stumble
        async with cluster.running(ours):
            await cluster.clock.advance(60)
            reported = await errors(cluster, kinds.PODCLIQUE, "web-0-front")
            ours.writes.clear()
            await cluster.clock.advance(300)
            assert next(tries) > 20
            assert await errors(cluster, kinds.PODCLIQUE, "web-0-front") == reported
            assert len(reported) == 2
            assert ours.writes == {}

            ours.refuses = lambda call: None
            await cluster.clock.advance(60)
            assert await errors(cluster, kinds.PODCLIQUE, "web-0-front") == []
