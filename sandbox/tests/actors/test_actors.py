"""All actors together."""

import random
from collections.abc import Mapping
from typing import Any

import anyio.lowlevel
import pytest

from engine.errors import Conflict, ServerFault
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.api.verbs import Api
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.registry import ACTORS
from resources.base.kinds import POD, PODGANG
from sandbox.tests.actors.manifests import gang, pod
from sandbox.tests.actors.stage import Stage, on, running

pytestmark = pytest.mark.anyio

THREE_NODES = ActorOptions(nodes=3)
GANGS = 6


async def ask_for_gangs(stage: Stage, count: int, *, gpus: int = 1) -> None:
    """Gangs of a leader and two followers that wait for it."""
    for number in range(count):
        name = f"g{number}"
        await stage.create(
            gang(name, {f"{name}-l": (1, [f"{name}-l-0"]), f"{name}-w": (2, [f"{name}-w-0", f"{name}-w-1"])}),
            pod(f"{name}-l-0", gang=name, clique=f"{name}-l", gpus=gpus),
            *(pod(f"{name}-w-{k}", gang=name, clique=f"{name}-w", gpus=gpus, after=[f"--podcliques={name}-l:1"]) for k in range(2)),
        )


async def unready(stage: Stage) -> list[str]:
    """Pods that are not ready."""
    return [name for name in sorted(await stage.names(POD)) if not await stage.is_ready(name)]


async def taken(stage: Stage) -> Mapping[str, int]:
    """GPUs in use by node."""
    used: dict[str, int] = {}
    for body in (await stage.client.list(POD, "ml")).items:
        if node := body["spec"].get("nodeName"):
            asked = body["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"]
            used[node] = used.get(node, 0) + int(asked)
    return used


class UnreliableClient(InProcessClient):
    """A client whose writes now and then fail with a conflict, or are done without an answer."""

    def __init__(self, api: Api, seed: int) -> None:
        super().__init__(api)
        self.chance = random.Random(seed)

    def _before(self) -> None:
        if self.chance.random() < 0.1:
            raise Conflict("somebody was faster")

    def _after(self, answer: dict[str, Any]) -> dict[str, Any]:
        if self.chance.random() < 0.1:
            raise ServerFault("the answer is lost")
        return answer

    async def create(self, *args: Any, **more: Any) -> dict[str, Any]:
        self._before()
        return self._after(await super().create(*args, **more))

    async def patch(self, *args: Any, **more: Any) -> dict[str, Any]:
        self._before()
        return self._after(await super().patch(*args, **more))

    async def delete(self, *args: Any, **more: Any) -> dict[str, Any]:
        self._before()
        return self._after(await super().delete(*args, **more))


def test_the_names_are_the_closed_list_that_users_know() -> None:
    assert list(ACTORS) == [
        *("scheduler", "kubelet", "garbage", "namespace", "protection", "token", "autoscaler", "claims", "driver"),
        *("lws", "deployments"),
    ]


async def test_once_everything_is_up_no_actor_writes_and_none_sets_a_timer() -> None:
    async with running(*ACTORS, options=THREE_NODES) as stage:
        await ask_for_gangs(stage, 3)
        await stage.turn(5)
        assert await unready(stage) == []
        before = (await stage.client.list(POD)).revision

        with pytest.raises(TimeoutError, match="no task waits for the clock"):
            await stage.clock.run_until(lambda: False)
        assert (await stage.client.list(POD)).revision == before


async def test_actors_can_be_restarted_at_any_time_with_the_same_result() -> None:
    async with running() as stage:
        await ask_for_gangs(stage, GANGS)
        for turns in range(1, 50):
            await play_for(stage, turns)
            if turns == 35:
                settled = stage.api.revision
        assert settled == stage.api.revision  # Whoever can be stopped at a later turn has nothing left to do.
        async with on(stage, *ACTORS, options=THREE_NODES):
            await stage.turn(5)

            assert await unready(stage) == []
            assert await taken(stage) == {"node-0000": 8, "node-0001": 8, "node-0002": 2}


@pytest.mark.parametrize("seed", range(10))
async def test_lost_answers_and_conflicts_cost_time_only(seed: int) -> None:
    async with running(*ACTORS, options=THREE_NODES, client=lambda api: UnreliableClient(api, seed)) as stage:
        await ask_for_gangs(stage, GANGS, gpus=1)
        await stage.turn(120)
        used = await taken(stage)
        assert (await unready(stage), sum(used.values()), max(used.values()) <= 8) == ([], 18, True)

        for name in await stage.names(POD):
            await stage.client.delete(POD, "ml", name)
        await stage.turn(120)
        assert await stage.names(POD) == set()


async def test_gangs_that_do_not_fit_at_once_run_one_after_the_other() -> None:
    async with running(*ACTORS, options=THREE_NODES) as stage:
        await ask_for_gangs(stage, GANGS, gpus=4)
        served: list[str] = []
        for _ in range(GANGS):
            await stage.turn(5)
            ready = sorted({name.partition("-")[0] for name in await stage.names(POD) if await stage.is_ready(name)})
            for name in ready:
                served.append(name)
                assert {node for node, gpus in (await taken(stage)).items() if gpus > 8} == set()
                for member in ("l-0", "w-0", "w-1"):
                    await stage.client.delete(POD, "ml", f"{name}-{member}")
                await stage.client.delete(PODGANG, "ml", name)
        await stage.turn(5)

        assert sorted(served) == [f"g{number}" for number in range(GANGS)]
        assert await stage.names(POD) == set()


async def test_the_same_story_gives_the_same_cluster() -> None:
    async def shape() -> list[tuple[str, str, str]]:
        async with running(*ACTORS, options=THREE_NODES) as stage:
            await ask_for_gangs(stage, GANGS)
            await stage.turn(5)
            pods = (await stage.client.list(POD, "ml")).items
            return [(one["metadata"]["name"], one["spec"]["nodeName"], one["metadata"]["resourceVersion"]) for one in pods]

    assert await shape() == await shape()


async def play_for(stage: Stage, turns: int, options: ActorOptions = THREE_NODES) -> None:
    """Let all actors play for so many turns of the loop, then stop them wherever they are."""
    async with anyio.create_task_group() as tasks:
        for actor in ACTORS.values():
            tasks.start_soon(actor, stage.client, stage.clock, options)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
