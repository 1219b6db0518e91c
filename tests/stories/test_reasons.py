"""The reason and the cause of operations, in the situations in which users ask for them."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.operation import Cause
from engine.reason import Reason
from engine.verb import Verb
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import running
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

Reasons = Mapping[tuple[str, str], tuple[Reason, Cause]]


def workload(version: int = 1, replicas: int = 1) -> dict[str, Any]:
    """A router of two pods, and a scaling group of one worker."""
    cliques = [clique(name, count, pod_spec=running(version)) for name, count in (("router", 2), ("worker", 1))]
    return podcliqueset("llm", *cliques, groups=(group("pool", "worker", replicas=1),), replicas=replicas)


async def reasons(cluster: Stage) -> Reasons:
    """(Verb, kind) -> reason and cause of the operations that are due, statuses and patches apart."""
    seen = await cluster.look()
    return {
        (str(operation.verb), operation.id.kind): (operation.reason, operation.cause)
        for plan in seen.planned.plans
        for operation in plan.operations
        if operation.verb not in (Verb.STATUS, Verb.PATCH)
    }


async def pod_of(cluster: Stage, prefix: str) -> str:
    """The name of a pod."""
    pods = (await cluster.kubectl.list(kinds.POD)).items
    return next(str(pod["metadata"]["name"]) for pod in pods if pod["metadata"]["name"].startswith(prefix))


async def test_everything_of_a_new_set_is_there_because_of_its_manifest() -> None:
    async with stage() as cluster:
        await cluster.apply(workload())

        assert set((await reasons(cluster)).values()) == {(Reason.MANIFEST_CHANGED, Cause.INTENT)}


async def test_what_somebody_deleted_is_missing_and_that_is_drift() -> None:
    async with stage() as cluster:
        await cluster.apply(workload())
        await cluster.sync()

        await cluster.delete(kinds.SERVICE, "llm-0")
        await cluster.kubectl.delete(kinds.POD, "default", await pod_of(cluster, "llm-0-router-"), propagation="Background", grace=0)
        await cluster.clock.advance(1)

        missing = (Reason.MISSING, Cause.DRIFT)
        assert await reasons(cluster) == {("create", "Service"): missing, ("create", "Pod"): missing}


async def test_a_pod_that_failed_is_replaced_and_that_is_no_drift() -> None:
    async with stage() as cluster:
        await cluster.apply(workload())
        await cluster.sync()

        name = await pod_of(cluster, "llm-0-router-")
        await cluster.kubectl.patch(kinds.POD, "default", name, {"status": {"phase": "Failed"}}, subresource="status")

        ended = (Reason.POD_ENDED, Cause.INTENT)
        assert await reasons(cluster) == {("delete", "Pod"): ended, ("create", "Pod"): ended}


@pytest.mark.parametrize(("replicas", "verb", "reason"), [(3, "create", Reason.SCALED_OUT), (1, "delete", Reason.SCALED_IN)])
async def test_scaling_a_clique_is_no_drift(replicas: int, verb: str, reason: Reason) -> None:
    async with stage() as cluster:
        await cluster.apply(workload())
        await cluster.sync()

        await cluster.scale(kinds.PODCLIQUE, "llm-0-router", replicas)

        assert await reasons(cluster) == {(verb, "Pod"): (reason, Cause.INTENT)}


async def test_another_replica_of_a_set_is_there_because_it_was_scaled_out() -> None:
    async with stage() as cluster:
        await cluster.apply(workload())
        await cluster.sync()

        await cluster.apply(workload(replicas=2))

        assert set((await reasons(cluster)).values()) == {(Reason.SCALED_OUT, Cause.INTENT)}


async def test_an_update_replaces_because_of_the_template() -> None:
    async with stage() as cluster:
        await cluster.apply(workload())
        await cluster.sync()

        await cluster.apply(workload(version=2))
        report = await cluster.sync()

        verbs = (Verb.CREATE, Verb.DELETE, Verb.RELEASE)
        done = [result.operation for result in report.results if result.operation.verb in verbs]
        assert {(each.verb, each.id.kind) for each in done} >= {(Verb.DELETE, "Pod"), (Verb.CREATE, "Pod"), (Verb.CREATE, "PodClique")}
        assert {(each.reason, each.cause) for each in done} == {(Reason.TEMPLATE_CHANGED, Cause.INTENT)}


async def test_a_set_that_is_deleted_takes_everything_with_it() -> None:
    async with stage() as cluster:
        await cluster.apply(workload())
        await cluster.sync()

        await cluster.delete(kinds.PODCLIQUESET, "llm")

        assert set((await reasons(cluster)).values()) == {(Reason.SET_DELETED, Cause.INTENT)}
