"""Objects that are being deleted and that something keeps: `diff` and `sync` say the same of them, and what can be done."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import anyio
import pytest

from engine.forecast.forecast import End, Forecast
from engine.ids import Kind
from engine.reason import Reason
from engine.resource import Body
from engine.runtime.passes import Pass
from engine.runtime.sync_report import Ending
from enginectl.actions.planning import first_pass_of
from enginectl.actions.preview import Preview
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds, labels
from resources.ports.configuration import Configuration
from resources.preview.forecasting import forecast_of
from resources.preview.shown import shown
from tests.builders import applying, claim_template, clique, group, podcliqueset, share
from tests.mnnvl.sets import auto
from tests.stories.fabric import rack
from tests.stories.graphs import graph, service
from tests.stories.permission_scenario import sets
from tests.stories.stage import CHILDREN, Stage, stage
from tests.stories.test_cluster_constraints import preview_with

pytestmark = pytest.mark.anyio

HOLD = "example.com/hold"
PATIENCE = 300.0
"""Seconds that a sync may last."""

WORKLOADS: Mapping[str, Callable[[], list[Body]]] = {
    "a set": lambda: [body for _, body in sets("default", "a")],
    "a graph of components": lambda: [graph("parts", {"nvidia.com/enable-grove": "false"}, decode=service(1))],
}


def holder(scope: str) -> Body:
    """A set whose pods claim devices: each its own, or all of them the same."""
    worker = clique("worker", 2, **({"resourceSharing": [share("device", "PerReplica")]} if scope == "PerReplica" else {}))
    shared = [share("device")] if scope == "AllReplicas" else []
    return podcliqueset("held", worker, resourceClaimTemplates=[claim_template("device")], resourceSharing=shared)


def ours(cluster: Stage) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """The first object of each kind that a root has labelled; not pods, which end within their time."""
    for kind in CHILDREN:
        if kind is not kinds.POD and cluster.serves(kind):
            labelled = [body for _, body in sorted(cluster.there(kind).items()) if labels.PART_OF in (body["metadata"].get("labels") or {})]
            if labelled:
                yield kind, labelled[0]


async def forecast(cluster: Stage) -> tuple[Pass[Configuration], Forecast | None]:
    """What `diff` sees and forecasts."""
    current = await cluster.look()
    return current, forecast_of(first_pass_of(current))


@pytest.mark.parametrize("scope", ["PerReplica", "AllReplicas"])
async def test_claims_that_running_pods_use_are_told_with_the_pods_and_sync_does_not_wait_for_them(scope: str) -> None:
    async with stage() as cluster:
        await cluster.apply(dict(holder(scope)))
        assert (await cluster.sync()).ending is Ending.DONE
        pods = set(cluster.there(kinds.POD))
        for name in cluster.there(kinds.RESOURCE_CLAIM):
            await cluster.delete(kinds.RESOURCE_CLAIM, name)

        current, expected = await forecast(cluster)
        began = cluster.clock.monotonic()
        report = await cluster.sync()

        (plan,) = current.planned.plans
        assert {wait.reason for wait in plan.blocked} == {Reason.IN_USE}
        assert all(any(pod in wait.why for wait in plan.blocked) for pod in pods)
        assert expected is not None and expected.end_of(plan.root) is End.STUCK and list(expected.operations()) == []
        assert report.ending is Ending.STUCK and {wait.why for wait in report.blocked} == {wait.why for wait in plan.blocked}
        assert cluster.clock.monotonic() - began < PATIENCE / 2

        for pod in pods:
            await cluster.delete(kinds.POD, pod)
        _, expected = await forecast(cluster)
        assert expected is not None and expected.end_of(plan.root) is End.SETTLED
        assert (await cluster.sync()).ending is Ending.DONE
        assert all("deletionTimestamp" not in body["metadata"] for body in cluster.there(kinds.RESOURCE_CLAIM).values())


@pytest.mark.parametrize("workload", WORKLOADS)
async def test_an_object_of_each_kind_that_a_finalizer_of_others_keeps_is_settled_neither_for_diff_nor_for_sync(workload: str) -> None:
    async with stage() as cluster:
        for body in WORKLOADS[workload]():
            await cluster.apply(dict(body))
        assert (await cluster.sync()).ending is Ending.DONE
        tried = list(ours(cluster))
        assert len(tried) > 1
        for kind, body in tried:
            name = body["metadata"]["name"]
            finalizers = [*(body["metadata"].get("finalizers") or ()), HOLD]
            await cluster.kubectl.patch(kind, "default", name, {"metadata": {"finalizers": finalizers}})
            await cluster.delete(kind, name)

            current, expected = await forecast(cluster)
            report = await cluster.sync(patience=PATIENCE)

            assert expected is not None and End.STUCK in {expected.end_of(plan.root) for plan in current.planned.plans}, name
            assert report.ending is Ending.STUCK, name
            ((why, reason),) = {(wait.why, wait.reason) for wait in report.blocked if wait.id.name == name}
            assert HOLD in why or reason is Reason.IN_USE
            assert why in {wait.why for plan in expected.plans.values() for wait in plan.blocked}

            await cluster.kubectl.patch(kind, "default", name, {"metadata": {"finalizers": None}})
            assert (await cluster.sync()).ending is Ending.DONE, name


@pytest.mark.parametrize("kind", [kinds.SERVICE, kinds.PODCLIQUE, kinds.PODGANG, kinds.RESOURCE_CLAIM], ids=lambda kind: kind.name)
async def test_what_has_the_name_of_a_needed_object_and_is_kept_while_it_is_deleted_is_settled_neither_for_diff_nor_for_sync(
    kind: Kind,
) -> None:
    async with stage() as cluster:
        await cluster.apply(dict(holder("PerReplica")))
        assert (await cluster.sync()).ending is Ending.DONE
        name = min(cluster.there(kind))
        finalizers = [*(cluster.there(kind)[name]["metadata"].get("finalizers") or ()), HOLD]
        await cluster.kubectl.patch(kind, "default", name, {"metadata": {"finalizers": finalizers, "ownerReferences": None}})
        await cluster.delete(kind, name)

        current, expected = await forecast(cluster)
        report = await cluster.sync(patience=PATIENCE)

        (plan,) = current.planned.plans
        assert expected is not None and expected.end_of(plan.root) is End.STUCK
        assert report.ending is Ending.STUCK
        assert {(wait.reason, HOLD in wait.why) for wait in report.blocked if wait.id.name == name} == {(Reason.KEPT, True)}

        await cluster.kubectl.patch(kind, "default", name, {"metadata": {"finalizers": None}})
        assert (await cluster.sync()).ending is Ending.DONE


async def test_a_pod_that_has_ended_and_is_kept_by_a_finalizer_of_others_is_settled_neither_for_diff_nor_for_sync() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("front", 2)))
        await cluster.sync()
        name = min(cluster.there(kinds.POD))
        await cluster.kubectl.patch(kinds.POD, "default", name, {"metadata": {"finalizers": [HOLD]}})
        await cluster.delete(kinds.POD, name)
        await cluster.until(lambda: cluster.there(kinds.POD)[name]["metadata"]["deletionGracePeriodSeconds"] == 0)

        current, expected = await forecast(cluster)
        report = await cluster.sync(patience=PATIENCE)

        (plan,) = current.planned.plans
        assert expected is not None and expected.end_of(plan.root) is End.STUCK
        assert report.ending is Ending.STUCK and {wait.id.name for wait in report.blocked} == {name}


async def released(cluster: Stage, kind: Kind, name: str) -> None:
    """A controller takes its finalizer from the object 30 s after the deletion."""
    while "deletionTimestamp" not in cluster.there(kind)[name]["metadata"]:
        await cluster.clock.sleep(1)
    await cluster.clock.sleep(30)
    await cluster.kubectl.patch(kind, "default", name, {"metadata": {"finalizers": None}})


async def test_sync_waits_for_an_object_whose_controller_removes_its_finalizer() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("front")))
        await cluster.sync()
        await cluster.kubectl.patch(kinds.SERVICE, "default", "web-0", {"metadata": {"finalizers": [HOLD]}})
        await cluster.delete(kinds.SERVICE, "web-0")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(released, cluster, kinds.SERVICE, "web-0")
            assert (await cluster.sync(patience=PATIENCE)).ending is Ending.DONE


@pytest.mark.parametrize("ending", [Ending.DONE, Ending.STUCK])
async def test_sync_waits_two_minutes_for_the_controller_of_a_finalizer_of_a_pod_whose_set_is_gone(ending: Ending) -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("front")))
        await cluster.sync()
        (name,) = cluster.there(kinds.POD)
        await cluster.kubectl.patch(kinds.POD, "default", name, {"metadata": {"finalizers": [HOLD]}})
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "web", {"metadata": {"finalizers": None}})
        await cluster.delete(kinds.PODCLIQUESET, "web")
        await cluster.until(lambda: not cluster.there(kinds.PODCLIQUESET))

        async with anyio.create_task_group() as tasks:
            if ending is Ending.DONE:
                tasks.start_soon(released, cluster, kinds.POD, name)
            report = await cluster.sync(patience=PATIENCE)
            tasks.cancel_scope.cancel()

        assert report.ending is ending
        assert [wait.id.name for wait in report.blocked] == ([name] if ending is Ending.STUCK else [])
        assert bool(cluster.there(kinds.PODCLIQUE)) is (ending is Ending.STUCK)


@pytest.mark.parametrize("kind", [kinds.POD, kinds.SERVICE, kinds.PODCLIQUE, kinds.PODGANG])
async def test_what_is_scaled_in_and_kept_by_a_finalizer_of_others_is_not_settled_and_is_named_with_it(kind: Kind) -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("front"), replicas=2))
        await cluster.sync()
        name = next(name for name in cluster.there(kind) if name.startswith("web-1"))
        finalizers = [*(cluster.there(kind)[name]["metadata"].get("finalizers") or ()), HOLD]
        await cluster.kubectl.patch(kind, "default", name, {"metadata": {"finalizers": finalizers}})
        await cluster.scale(kinds.PODCLIQUESET, "web", 1)

        report = await cluster.sync(patience=PATIENCE)
        current, expected = await forecast(cluster)

        (plan,) = current.planned.plans
        assert report.ending is Ending.STUCK
        assert [(wait.id, wait.reason, HOLD in wait.why) for wait in plan.blocked] == [(kind.id("default", name), Reason.KEPT, True)]
        assert expected is not None and expected.end_of(plan.root) is End.STUCK

        await cluster.kubectl.patch(kind, "default", name, {"metadata": {"finalizers": None}})
        assert (await cluster.sync()).ending is Ending.DONE


async def test_what_finalizers_of_others_will_keep_when_it_is_deleted_is_told_by_diff_with_what_waits_for_it() -> None:
    def pair(replicas: int, image: str = "example/worker:1") -> dict[str, Any]:
        worker = clique("worker", 2, pod_spec={"containers": [{"name": "main", "image": image}]})
        return podcliqueset("pair", worker, replicas=replicas)

    async with stage() as cluster:
        assert (await cluster.sync(manifests=[pair(2)])).ending is Ending.DONE
        for kind in (kinds.POD, kinds.PODCLIQUE, kinds.PODGANG, kinds.SERVICE):
            for name, body in cluster.there(kind).items():
                finalizers = [*(body["metadata"].get("finalizers") or ()), HOLD, "service.kubernetes.io/load-balancer-cleanup"]
                await cluster.kubectl.patch(kind, "default", name, {"metadata": {"finalizers": finalizers}})

        def messages(seen: Preview) -> list[str]:
            return [note for root in seen.report.roots for note in root.notes if HOLD in note]

        keeps = f"finalizer {HOLD} keeps"
        assert messages(await preview_with(cluster, pair(2))) == []
        assert messages(await preview_with(cluster, pair(1))) == [
            f"{keeps} 5 objects: 2 Pods, 1 Service, 1 PodClique, 1 PodGang when deleted, "
            "until other programs remove it; only then a sync is done"
        ]
        assert messages(await preview_with(cluster, podcliqueset("new", clique("front"), namespace="ml"))) == []
        (note,) = messages(await preview_with(cluster, pair(2, "example/worker:2")))
        assert note.startswith(f"{keeps} 4 Pods") and note.endswith("; only then a sync is done"), note


async def test_a_set_that_finalizers_of_others_will_keep_is_told_once() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[podcliqueset("web", clique("front"))])
        finalizers = [*cluster.there(kinds.PODCLIQUESET)["web"]["metadata"]["finalizers"], HOLD]
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "web", {"metadata": {"finalizers": finalizers}})
        removals = cluster.removing(kinds.PODCLIQUESET, "web")

        first = first_pass_of(await cluster.look((), removals), applying((), removals))
        (plan,) = shown(first, forecast_of(first)).planned.plans

        kept = f"finalizer {HOLD} keeps PodCliqueSet/web when deleted, until other programs remove it; only then a sync is done"
        assert [note for note in plan.notes if HOLD in note] == [kept]


async def test_a_set_stays_while_a_finalizer_of_others_keeps_a_clique_of_its_group() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("work"), groups=(group("g", "work", replicas=2),)))
        assert (await cluster.sync()).ending is Ending.DONE
        kept = {"metadata": {"finalizers": [labels.CLIQUE_FINALIZER, HOLD]}}
        await cluster.kubectl.patch(kinds.PODCLIQUE, "default", "web-0-g-1-work", kept)

        report = await cluster.sync(removals=cluster.removing(kinds.PODCLIQUESET, "web"))

        assert report.ending is Ending.STUCK
        assert {wait.id.name: wait.reason for wait in report.blocked} == {"web-0-g-1-work": Reason.KEPT}
        assert set(cluster.there(kinds.PODCLIQUESET)) == {"web"}
        await cluster.kubectl.patch(kinds.PODCLIQUE, "default", "web-0-g-1-work", {"metadata": {"finalizers": []}})
        assert (await cluster.sync(removals=cluster.removing(kinds.PODCLIQUESET, "web"))).ending is Ending.DONE
        assert [kind for kind in (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SCALING_GROUP) if cluster.there(kind)] == []


async def test_a_claim_that_a_finalizer_of_others_keeps_when_its_pods_have_gone_is_settled_neither_for_diff_nor_for_sync() -> None:
    async with stage() as cluster:
        await cluster.apply(dict(holder("AllReplicas")))
        await cluster.sync()
        (name,), pods = cluster.there(kinds.RESOURCE_CLAIM), set(cluster.there(kinds.POD))
        finalizers = [*cluster.there(kinds.RESOURCE_CLAIM)[name]["metadata"]["finalizers"], HOLD]
        await cluster.kubectl.patch(kinds.RESOURCE_CLAIM, "default", name, {"metadata": {"finalizers": finalizers}})
        await cluster.delete(kinds.RESOURCE_CLAIM, name)
        for pod in pods:
            await cluster.delete(kinds.POD, pod)

        _, expected = await forecast(cluster)
        report = await cluster.sync(patience=PATIENCE)

        assert expected is not None and not [each for each in expected.operations() if each.id.name == name]
        assert {expected.end_of(root) for root in expected.plans} == {End.STUCK} and report.ending is Ending.STUCK


async def test_a_domain_of_another_owner_that_is_deleted_while_pods_use_it_is_settled_neither_for_diff_nor_for_sync() -> None:
    async with rack() as cluster:
        await cluster.sync(manifests=[auto()])
        (owner,) = cluster.there(COMPUTE_DOMAIN)["demo-0"]["metadata"]["ownerReferences"]
        gone = {"metadata": {"ownerReferences": [{**owner, "uid": "an-earlier-set"}]}}
        await cluster.kubectl.patch(COMPUTE_DOMAIN, "default", "demo-0", gone)
        await cluster.until(lambda: "deletionTimestamp" in cluster.there(COMPUTE_DOMAIN)["demo-0"]["metadata"])

        current, expected = await forecast(cluster)
        report = await cluster.sync(patience=PATIENCE)

        (plan,) = current.planned.plans
        assert expected is not None and expected.end_of(plan.root) is End.STUCK and report.ending is Ending.STUCK
        assert {wait.reason for wait in report.blocked if wait.id.name == "demo-0"} == {Reason.IN_USE}

        for pod in cluster.there(kinds.POD):
            await cluster.delete(kinds.POD, pod)
        assert (await cluster.sync()).ending is Ending.DONE
