"""Names that other objects have: a preview shows them as what they are for `sync`, whether the set exists yet or not."""

import pytest

from engine.forecast.forecast import End
from engine.intent import Intent
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from enginectl.actions.planning import first_pass_of
from resources.base import kinds
from resources.preview.forecasting import forecast_of
from tests.builders import applying, clique, podcliqueset
from tests.stories.graphs import graph, service
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

WEB = kinds.PODCLIQUESET.id("default", "web")


async def occupy(cluster: Stage, name: str) -> None:
    """Somebody else's Service of that name."""
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": {"ports": [{"port": 80}]}}
    await cluster.kubectl.create(kinds.SERVICE, "default", body)


@pytest.mark.parametrize("replicas", [1, 5], ids=["read one by one", "listed by name"])
async def test_a_new_set_whose_service_has_a_taken_name_is_blocked_before_anything_is_applied(replicas: int) -> None:
    workload = podcliqueset("web", clique("worker", 1), replicas=replicas)
    async with stage() as cluster:
        await occupy(cluster, "web-0")

        current = await cluster.look([workload])

        (plan,) = [plan for plan in current.planned.plans if plan.root == WEB]
        assert [wait.id for wait in plan.blocked] == [kinds.SERVICE.id("default", "web-0")]
        assert "already exists" in plan.blocked[0].why
        created = {operation.id for operation in plan.operations if operation.verb is Verb.CREATE}
        assert {kinds.SERVICE.id("default", f"web-{index}") for index in range(1, replicas)} <= created

        forecast = forecast_of(first_pass_of(current, Intent((workload,))))
        assert forecast is not None
        assert forecast.end_of(WEB) is End.STUCK

        report = await cluster.sync(manifests=[workload])
        assert report.ending is Ending.STUCK
        (after,) = [plan for plan in report.plans if plan.root == WEB]
        assert [(wait.id, wait.why) for wait in after.blocked] == [(wait.id, wait.why) for wait in plan.blocked]


async def test_a_taken_name_of_a_set_that_exists_is_shown_when_it_is_scaled_out() -> None:
    workload = podcliqueset("web", clique("worker", 1))
    async with stage() as cluster:
        await cluster.apply(workload)
        assert (await cluster.sync()).ending is Ending.DONE
        await occupy(cluster, "web-1")
        await cluster.scale(kinds.PODCLIQUESET, "web", 2)

        (plan,) = (await cluster.look()).planned.plans

        assert kinds.SERVICE.id("default", "web-1") in {wait.id for wait in plan.blocked}


async def test_a_taken_name_in_the_set_of_a_new_graph_is_shown() -> None:
    chat = graph(Frontend=service(1, componentType="frontend", resources={}))
    async with stage() as cluster:
        await occupy(cluster, "chat-0")

        current = await cluster.look([chat])

        assert kinds.SERVICE.id("default", "chat-0") in {wait.id for plan in current.planned.plans for wait in plan.blocked}


async def account(cluster: Stage, name: str) -> None:
    """A ServiceAccount of somebody else."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    await cluster.kubectl.create(kinds.SERVICE_ACCOUNT, "default", body)


async def test_a_set_named_like_an_account_of_others_gets_no_token_and_no_rights_for_it_and_says_what_to_do() -> None:
    ordered = podcliqueset("web", clique("leader"), clique("worker"), cliqueStartupType="CliqueStartupTypeInOrder")
    async with stage() as cluster:
        await account(cluster, "web")
        await cluster.apply(ordered)

        report = await cluster.sync(patience=60)

        assert report.ending is Ending.STUCK
        assert (cluster.there(kinds.SECRET), cluster.there(kinds.ROLE_BINDING)) == ({}, {})
        assert [pod["spec"]["hostname"] for pod in cluster.there(kinds.POD).values()] == ["web-0-leader-0"]
        (plan,) = (await cluster.look()).planned.plans
        assert {kinds.SERVICE_ACCOUNT.id("default", "web"), kinds.SECRET.id("default", "web-ic-sat")} <= {wait.id for wait in plan.blocked}
        (event,) = [event for event in cluster.there(kinds.EVENT).values() if event["reason"] == "ServiceAccountConflict"]
        conditions = {each["type"]: each for each in cluster.there(kinds.PODCLIQUESET)["web"]["status"]["conditions"]}
        condition = conditions["ServiceAccountConflict"]
        assert all("create the set under another name" in text for text in (event["message"], condition["message"]))

        await cluster.delete(kinds.SERVICE_ACCOUNT, "web")
        assert (await cluster.sync()).ending is Ending.DONE
        assert len(cluster.there(kinds.POD)) == 2
        left = [each["type"] for each in cluster.there(kinds.PODCLIQUESET)["web"]["status"]["conditions"]]
        assert sorted(left) == ["Applied", "GangSchedulingUnavailable", "Ready", "UpdateInProgress"]


@pytest.mark.parametrize("is_mounted", [True, False])
async def test_an_account_that_the_set_lost_keeps_its_token_only_while_pods_mount_it(is_mounted: bool) -> None:
    order = "CliqueStartupTypeInOrder" if is_mounted else "CliqueStartupTypeAnyOrder"
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("leader"), clique("worker"), cliqueStartupType=order))
        assert (await cluster.sync()).ending is Ending.DONE
        pods = {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items()}
        await cluster.kubectl.patch(kinds.SERVICE_ACCOUNT, "default", "web", {"metadata": {"ownerReferences": None, "labels": None}})

        report = await cluster.sync(patience=60)

        assert report.ending is Ending.STUCK
        assert (set(cluster.there(kinds.SECRET)) == {"web-ic-sat"}) is is_mounted
        assert (len(cluster.there(kinds.ROLE_BINDING)) == 1) is is_mounted
        assert {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items()} == pods


@pytest.mark.parametrize("annotations", [{}, {"nvidia.com/enable-grove": "false"}], ids=["adapters", "deployments"])
async def test_of_two_new_graphs_that_need_one_name_the_second_is_forecast_as_blocked(annotations: dict[str, str]) -> None:
    adapted = service(scalingAdapter={"enabled": True})
    manifests = [graph("chat", annotations, **{"a-b": adapted}), graph("chat-a", annotations, b=adapted)]
    async with stage(addons=("lws", "volcano")) as cluster:
        current = await cluster.look(manifests)
        forecast = forecast_of(first_pass_of(current, applying(manifests)))
        report = await cluster.sync(manifests=manifests, wait=False)

        assert forecast is not None and not forecast.repeating
        first, second = (kinds.DYNAMO_GRAPH.id("default", name) for name in ("chat", "chat-a"))
        assert (forecast.end_of(first), forecast.end_of(second)) == (End.SETTLED, End.STUCK)
        assert any("chat-a-b already exists" in wait.why for wait in forecast.plans[second].deferred)
        assert report.ending is Ending.STUCK
