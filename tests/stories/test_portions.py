"""Large sets are planned one after the other, so that a small one does not wait until all of them are."""

import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from engine.runtime.observers import Observers
from engine.runtime.passes import Engine
from enginectl.output.cluster_status import cluster_status
from enginectl.serving.last_pass import LastPass
from providers.metrics.metrics import EngineMetrics
from resources.base import kinds
from resources.ports.configuration import Configuration
from tests.builders import clique, podcliqueset
from tests.stories.stage import SETUP, Stage, stage

pytestmark = pytest.mark.anyio

LARGE = 12
REPLICAS = 16
NAMES = ("large-a", "large-b", "large-c")


def pods(cluster: Stage) -> Counter[str]:
    """How many pods each set has, by their labels."""
    metadata = (pod["metadata"] for pod in cluster.there(kinds.POD).values())
    return Counter((each.get("labels") or {}).get("app.kubernetes.io/part-of", "") for each in metadata)


def available(cluster: Stage) -> dict[str, int]:
    """How many available replicas the status of each set names."""
    return {name: (body.get("status") or {}).get("availableReplicas", 0) for name, body in cluster.there(kinds.PODCLIQUESET).items()}


@pytest.fixture(autouse=True)
def early_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets are large from fewer objects on."""
    monkeypatch.setattr("engine.runtime.loop.LARGE", LARGE)


async def apply_beside_a_small_set(cluster: Stage, names: Sequence[str]) -> None:
    """Apply these sets and then `small`, to a running engine, until the small one has its pod."""
    await cluster.clock.advance(2.0)
    for name in names:
        await cluster.apply(podcliqueset(name, clique("w", 1), replicas=REPLICAS))
    await cluster.apply(podcliqueset("small", clique("w", 1)))
    await cluster.until(lambda: pods(cluster)["small"] == 1)


async def test_a_small_set_is_there_before_the_second_of_several_large_ones_is_begun() -> None:
    async with stage() as cluster, cluster.running():
        await apply_beside_a_small_set(cluster, NAMES)

        assert len([name for name in NAMES if pods(cluster)[name]]) <= 1

        await cluster.until(lambda: available(cluster) == {**dict.fromkeys(NAMES, REPLICAS), "small": 1})
    assert not [operation for plan in (await cluster.look()).planned.plans for operation in plan.operations]


async def test_large_sets_that_are_edited_and_deleted_together_all_follow() -> None:
    async with stage() as cluster, cluster.running():
        for name in NAMES:
            await cluster.apply(podcliqueset(name, clique("w", 1), replicas=REPLICAS))
        await cluster.until(lambda: available(cluster) == dict.fromkeys(NAMES, REPLICAS))

        for name in NAMES[:2]:
            await cluster.apply(podcliqueset(name, clique("w", 1), replicas=REPLICAS + 5))
        await cluster.delete(kinds.PODCLIQUESET, NAMES[2])

        await cluster.until(lambda: available(cluster) == dict.fromkeys(NAMES[:2], REPLICAS + 5))
        await cluster.until(lambda: NAMES[2] not in pods(cluster))


@pytest.mark.parametrize("known", [140, 5], ids=["few changes", "more changes than are known"])
async def test_a_small_set_does_not_wait_for_many_sets_that_are_not_large_and_all_of_them_follow(
    monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    monkeypatch.setattr("providers.live_store.KEPT_CHANGES", known)
    monkeypatch.setattr("engine.runtime.loop.LARGE", 10 * REPLICAS)
    monkeypatch.setattr("engine.runtime.loop.MOST", 10 * REPLICAS)
    names = [f"crowd-{number}" for number in range(8)]
    async with stage() as cluster, cluster.running():
        await apply_beside_a_small_set(cluster, names)

        assert len([name for name in names if pods(cluster)[name]]) <= 4

        await cluster.until(lambda: available(cluster) == {**dict.fromkeys(names, REPLICAS), "small": 1})
        for name in names:
            await cluster.apply(podcliqueset(name, clique("w", 1), replicas=REPLICAS - 5))
        await cluster.until(lambda: available(cluster) == {**dict.fromkeys(names, REPLICAS - 5), "small": 1})


async def test_after_a_start_a_small_set_does_not_wait_for_the_plans_of_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtime.loop.LARGE", 10 * REPLICAS)
    monkeypatch.setattr("engine.runtime.loop.MOST", 10 * REPLICAS)
    names = [f"crowd-{number}" for number in range(8)]
    async with stage() as cluster:
        async with cluster.running():
            for name in names:
                await cluster.apply(podcliqueset(name, clique("w", 1), replicas=REPLICAS))
            await cluster.until(lambda: available(cluster) == dict.fromkeys(names, REPLICAS))
        for name in names:
            await cluster.apply(podcliqueset(name, clique("w", 1), replicas=REPLICAS + 5))
        await cluster.apply(podcliqueset("small", clique("w", 1)))
        lost = [await without_labels(cluster, name) for name in names]

        async with cluster.running() as process:
            await cluster.until(lambda: pods(cluster)["small"] == 1)

            assert len([name for name in names if pods(cluster)[name] > REPLICAS]) <= 4

            await cluster.until(lambda: available(cluster) == {**dict.fromkeys(names, REPLICAS + 5), "small": 1})
        assert {name: cluster.there(kinds.POD)[name]["metadata"]["uid"] for name, _ in lost} == dict(lost)
        assert not process.refused


async def test_after_a_start_metrics_and_page_call_a_set_unplanned_and_not_settled_until_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.runtime.loop.LARGE", 10 * REPLICAS)
    monkeypatch.setattr("engine.runtime.loop.MOST", 10 * REPLICAS)
    names = [f"crowd-{number}" for number in range(8)]
    async with stage() as cluster:
        for name in names:
            service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"{name}-0"}, "spec": {"ports": [{"port": 1}]}}
            await cluster.kubectl.create(kinds.SERVICE, "default", service)
            await cluster.apply(podcliqueset(name, clique("w", 1), replicas=REPLICAS))
        async with cluster.running():
            await cluster.settle()
        counted, last = EngineMetrics(cluster.clock), LastPass(cluster.clock)
        metrics: list[Mapping[str, float]] = []
        shown: list[Counter[str]] = []
        notes: list[set[bool]] = []

        def look() -> bool:
            states = Counter[str]()
            for family in counted.registry.collect():
                states.update({each.labels["state"]: int(each.value) for each in family.samples if each.name == "engine_roots"})
            if (current := last.state.current) is not None:
                metrics.append({state: value for state, value in states.items() if value})
                shown.append(Counter(each.state for each in cluster_status(current, SETUP).workloads))
                notes.append({("other roots are planned first" in str(plan.notes)) == plan.is_unplanned for plan in current.planned.plans})
            return states["blocked"] == len(names)

        monkeypatch.setattr(EngineMetrics, "observer", property(lambda self: Observers(last, self.fleet)))
        async with cluster.running(metrics=counted):
            await cluster.until(look)

    assert metrics[0]["unplanned"] >= 4
    assert all(set(states) <= {"blocked", "unplanned"} and sum(states.values()) == len(names) for states in metrics)
    assert metrics == shown
    assert notes[0] == {True}


async def test_after_a_reload_what_is_wrong_with_sets_that_wait_for_their_turn_is_neither_logged_nor_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.runtime.loop.LARGE", 10 * LARGE)
    monkeypatch.setattr("engine.runtime.loop.MOST", LARGE)
    names = [f"crowd-{number}" for number in range(6)]
    log, changes, states = io.StringIO(), list[Configuration](), set[str]()

    async def reload(engine: Engine[Configuration]) -> Engine[Configuration] | None:
        return replace(engine, configuration=changes.pop()) if changes else None

    async with stage() as cluster:
        counted = EngineMetrics(cluster.clock)
        async with cluster.running(reload=reload, metrics=counted, log=log):
            for name in names:
                await cluster.apply(podcliqueset(name, clique("w", 1), replicas=3))
            await cluster.settle()
            for name in names:
                await cluster.apply(podcliqueset(name, clique("w", 1, minAvailable=5), replicas=3))
            await cluster.settle()
            logged, events = blocked_lines(log), warnings(cluster)
            changes.append(replace(SETUP, drain_timeout=2 * SETUP.drain_timeout))
            for _ in range(60):
                await cluster.clock.advance(0.5)
                for family in counted.registry.collect():
                    states.update(each.labels["state"] for each in family.samples if each.name == "engine_roots" and each.value)

    assert not changes
    assert (len(logged), sum(events.values())) == (len(names), len(names))
    assert (blocked_lines(log), warnings(cluster)) == (logged, events)
    assert states == {"faulty"}


def blocked_lines(log: io.StringIO) -> list[str]:
    """The lines of a log about what is blocked."""
    return [line for line in log.getvalue().splitlines() if "blocked" in line]


def warnings(cluster: Stage) -> Counter[str]:
    """How often each set was told that it is invalid."""
    events = [event for event in cluster.there(kinds.EVENT).values() if event["reason"] == "ValidationFailed"]
    return Counter({event["involvedObject"]["name"]: event["count"] for event in events})


async def without_labels(cluster: Stage, of: str) -> tuple[str, str]:
    """Remove the labels of a pod of this set. Returns its name and uid."""
    name, body = next((name, body) for name, body in cluster.there(kinds.POD).items() if name.startswith(f"{of}-0-"))
    await cluster.kubectl.patch(kinds.POD, "default", name, {"metadata": {"labels": dict.fromkeys(body["metadata"]["labels"])}})
    return name, body["metadata"]["uid"]


async def test_the_planning_of_a_large_set_is_interrupted_by_the_creation_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtime.passes.MANY_OBJECTS", 0)
    monkeypatch.setattr("engine.runtime.passes.ATTEMPT", REPLICAS)
    names = ["large", "small"]

    async with stage() as cluster:

        async def computed(compute: Callable[[], object], limiter: object) -> object:
            """The result, computed without a thread. While the first one is, a set is created, and the watch reports it."""
            if cluster.there(kinds.PODCLIQUESET) and "small" in names:
                await cluster.apply(podcliqueset(names.pop(), clique("w", 1)))
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            return compute()

        monkeypatch.setattr("engine.runtime.passes.anyio.to_thread.run_sync", computed)
        async with cluster.running() as process:
            await cluster.apply(podcliqueset("large", clique("w", 1), replicas=REPLICAS))
            await cluster.until(lambda: available(cluster) == {"large": REPLICAS, "small": 1})

    assert next(each for each in process.created if each.startswith("Pod ")).startswith("Pod small")


async def test_the_planning_of_a_large_set_is_interrupted_for_another_that_came_before_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtime.passes.ATTEMPT", REPLICAS)

    async with stage() as cluster, cluster.running() as process:
        await cluster.clock.advance(2.0)
        for name, replicas in (("large", REPLICAS), ("first", 1)):
            await cluster.apply(podcliqueset(name, clique("w", 1), replicas=replicas))
        await cluster.until(lambda: pods(cluster)["first"] == 1)
        await cluster.apply(podcliqueset("second", clique("w", 1)))
        await cluster.until(lambda: available(cluster) == {"large": REPLICAS, "first": 1, "second": 1})

    created = [name for each in process.created if (name := each.removeprefix("Pod ")) != each]
    assert [name.partition("-")[0] for name in created][:3] == ["first", "second", "large"]
