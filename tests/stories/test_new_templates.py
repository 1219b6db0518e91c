"""New templates: what only the API server can refuse deletes no running pod; what it does not say holds nothing up."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.errors import ClusterError
from engine.forecast.forecast import End
from engine.runtime.sync_report import Ending
from enginectl.actions.planning import first_pass_of
from providers.kubernetes.errors import error_of_status
from resources.base import kinds
from resources.preview.forecasting import forecast_of
from tests.builders import applying, clique, group, podcliqueset
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

OLD, NEW = "example/worker:1", "example/worker:2"


def web(image: str, front: str = "") -> dict[str, Any]:
    """A set of two replicas with a clique that stands alone and a scaling group of two cliques."""
    spec, own = {"containers": [{"name": "main", "image": image}]}, {"containers": [{"name": "main", "image": front or image}]}
    cliques = (clique("front", 2, pod_spec=own), clique("lead", pod_spec=spec), clique("work", 2, pod_spec=spec))
    return podcliqueset("web", *cliques, groups=(group("g", "lead", "work", replicas=2),), replicas=2)


def refusal(code: int, message: str, **details: Any) -> ClusterError:
    """An answer of an API server."""
    return error_of_status({"kind": "Status", "reason": "", "message": message, "code": code, "details": details})


REFUSED = refusal(403, 'admission webhook "images.example.com" denied the request: the image is not signed')
UNANSWERED = refusal(500, "Internal error occurred: failed calling webhook")
NO_RIGHT = refusal(403, 'pods is forbidden: User "u" cannot create resource "pods" in API group "" in the namespace "default"')
NO_DRY_RUN = refusal(400, 'admission webhook "images.example.com" does not support dry run')
NO_ROOM = refusal(403, 'pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=9, limited: pods=9', name="a")


def refusing(error: ClusterError, image: str = NEW) -> Any:
    """Refuses trials of pods with that image."""
    return lambda pod: error if pod["spec"]["containers"][0]["image"] == image else None


async def running(cluster: Stage) -> frozenset[str]:
    """Brings the old version up; returns the uids of its pods."""
    await cluster.sync(manifests=[web(OLD)])
    return uids(cluster)


def uids(cluster: Stage) -> frozenset[str]:
    """The uids of the pods that are not being deleted."""
    pods = cluster.there(kinds.POD).values()
    return frozenset(pod["metadata"]["uid"] for pod in pods if not pod["metadata"].get("deletionTimestamp"))


def images(cluster: Stage) -> set[str]:
    """The images of all pods."""
    return {pod["spec"]["containers"][0]["image"] for pod in cluster.there(kinds.POD).values()}


def conditions(cluster: Stage) -> Mapping[str, Any]:
    """The conditions of the set, by type."""
    return {each["type"]: each for each in (cluster.there(kinds.PODCLIQUESET)["web"].get("status") or {}).get("conditions") or ()}


async def test_no_pod_is_deleted_for_a_template_that_the_server_refuses() -> None:
    async with stage() as cluster:
        before, ours = await running(cluster), cluster.start()
        ours.refuses_trial = refusing(REFUSED)

        report = await cluster.sync(ours, manifests=[web(NEW)])

        assert uids(cluster) == before
        assert report.ending is Ending.STUCK
        assert str(REFUSED) in str([alarm.text for alarm in report.blocking_alarms])
        condition = conditions(cluster)["PodTemplateRefused"]
        assert condition["status"] == "True"
        assert str(REFUSED) in condition["message"]


@pytest.mark.parametrize("answer", [UNANSWERED, NO_DRY_RUN], ids=["unanswered", "side effects"])
async def test_what_the_server_does_not_say_holds_nothing_up_and_is_told(answer: ClusterError) -> None:
    async with stage() as cluster:
        await running(cluster)
        ours = cluster.start()
        ours.refuses_trial = refusing(answer)
        notes = [note for plan in (await cluster.look([web(NEW)], ours=ours)).planned.plans for note in plan.notes]

        report = await cluster.sync(ours, manifests=[web(NEW)])

        assert any(str(answer) in note for note in notes)
        assert report.ending is Ending.DONE
        assert images(cluster) == {NEW}


async def test_a_quota_without_room_refuses_no_template() -> None:
    async with stage() as cluster:
        await running(cluster)
        ours = cluster.start()
        ours.refuses_trial = refusing(NO_ROOM)

        assert (await cluster.sync(ours, manifests=[web(NEW)])).ending is Ending.DONE

        assert images(cluster) == {NEW}


async def test_a_server_that_does_not_answer_in_time_holds_an_update_up_for_seconds() -> None:
    async with stage() as cluster:
        await running(cluster)
        ours = cluster.start()
        ours.answers_trials = False

        assert (await cluster.sync(ours, manifests=[web(NEW)])).ending is Ending.DONE

        assert images(cluster) == {NEW}


async def test_one_pod_of_each_clique_is_tried_for_each_template_and_none_while_nothing_changes() -> None:
    async with stage() as cluster:
        ours = cluster.start()
        async with cluster.running(ours):
            await cluster.apply(web(OLD))
            await cluster.settle()
            assert ours.tried == []

            await cluster.apply(web(NEW))
            await cluster.settle()
            assert images(cluster) == {NEW}
            assert len(ours.tried) == len(set(ours.tried)) == 3

            await cluster.apply(web(NEW, front="example/worker:3"))
            await cluster.settle()
            assert len(ours.tried) == 4
            assert set(ours.tried).isdisjoint(cluster.there(kinds.POD))


async def test_an_update_goes_on_when_the_template_or_the_server_has_changed() -> None:
    async with stage() as cluster:
        ours = cluster.start()
        async with cluster.running(ours):
            await cluster.apply(web(OLD))
            await cluster.settle()
            before, ours.refuses_trial = uids(cluster), refusing(REFUSED)
            await cluster.apply(web(NEW))
            await cluster.settle()
            assert uids(cluster) == before
            assert "PodTemplateRefused" in conditions(cluster)

            await cluster.apply(web("example/worker:3"))
            await cluster.until(lambda: images(cluster) == {"example/worker:3"}, within=120)
            await cluster.settle()
            assert "PodTemplateRefused" not in conditions(cluster)

            await cluster.apply(web(NEW))
            await cluster.settle()
            assert images(cluster) == {"example/worker:3"}
            ours.refuses_trial = lambda pod: None
            await cluster.until(lambda: images(cluster) == {NEW}, within=900)
            await cluster.settle()
            assert "PodTemplateRefused" not in conditions(cluster)


async def test_the_server_is_asked_again_with_growing_pauses_and_the_event_comes_once() -> None:
    async with stage() as cluster:
        ours = cluster.start()
        async with cluster.running(ours):
            await cluster.apply(web(OLD))
            await cluster.settle()
            ours.refuses_trial = refusing(REFUSED)
            await cluster.apply(web(NEW))
            await cluster.clock.advance(3600)

            assert 3 * 10 < len(ours.tried) < 3 * 20
            events = [event for event in cluster.there(kinds.EVENT).values() if event["reason"] == "PodTemplateRefused"]
            assert [event["type"] for event in events] == ["Warning"]
            assert "the image is not signed" in events[0]["message"]


async def test_a_refusal_stands_while_the_server_does_not_answer_and_after_a_restart() -> None:
    async with stage() as cluster:
        before, ours = await running(cluster), cluster.start()
        ours.refuses_trial = refusing(REFUSED)
        await cluster.sync(ours, manifests=[web(NEW)])

        for answer in (UNANSWERED, NO_RIGHT):
            later = cluster.start()
            later.refuses_trial = refusing(answer)
            assert (await cluster.sync(later)).ending is Ending.STUCK
            assert uids(cluster) == before

        another = cluster.start()
        another.refuses_trial = refusing(NO_RIGHT, "example/worker:3")
        assert (await cluster.sync(another, manifests=[web("example/worker:3")])).ending is Ending.DONE


async def test_a_preview_shows_what_the_server_refuses_and_that_nothing_follows() -> None:
    async with stage() as cluster:
        await running(cluster)
        ours = cluster.start()
        ours.refuses_trial = refusing(REFUSED)

        current = await cluster.look([web(NEW)], ours=ours)

        forecast = forecast_of(first_pass_of(current, applying([web(NEW)])))
        assert forecast is not None
        (plan,) = current.planned.plans
        assert any("the image is not signed" in wait.why for wait in plan.blocked)
        assert forecast.end_of(plan.root) is End.STUCK
        assert not [operation for operation in forecast.operations() if operation.verb == "delete"]


async def test_users_who_delete_pods_themselves_need_no_verdict() -> None:
    async with stage() as cluster:
        manifest = web(OLD)
        manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
        await cluster.sync(manifests=[manifest])
        ours, later = cluster.start(), web(NEW)
        later["spec"]["updateStrategy"] = {"type": "OnDelete"}

        assert (await cluster.sync(ours, manifests=[later])).ending is Ending.DONE

        assert ours.tried == []


async def test_pods_that_do_not_run_are_replaced_without_a_verdict() -> None:
    async with stage(nodes=0) as cluster:
        await cluster.sync(manifests=[web(OLD)], patience=30)
        ours = cluster.start()
        ours.refuses_trial = refusing(REFUSED)

        await cluster.sync(ours, manifests=[web(NEW)], patience=30)

        assert ours.tried == []
        assert NEW in images(cluster)


async def test_a_scaling_group_and_a_clique_wait_for_each_other() -> None:
    async with stage() as cluster:
        before, ours = await running(cluster), cluster.start()
        ours.refuses_trial = refusing(REFUSED)

        await cluster.sync(ours, manifests=[web(NEW, front="example/worker:3")])

        assert uids(cluster) == before
