"""What `engine diff` tells of an update that is under way: the next step, and why the others are held."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from engine.forecast.forecast import End
from engine.observed import timestamp
from engine.report.html.document import html
from engine.report.json import document, printed
from engine.report.markdown.document import markdown
from engine.report.model import Report
from engine.report.text import text
from engine.verb import Verb
from enginectl.actions.planning import first_pass_of, report_of_pass
from grove_sandbox.actors.script import FAIL
from resources.base import kinds
from resources.preview.forecasting import forecast_of
from resources.preview.shown import shown
from tests.builders import clique, group, podcliqueset
from tests.schemas import checked
from tests.stories.pods import running
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

FIRST = "another replica is updated first"
NEXT = "one unit is updated at a time"
AGAIN = "the last one replaced is not ready yet"


def workload(version: int) -> dict[str, Any]:
    """Two replicas of a clique of two, and a group of two."""
    slow = {"sandbox.grove.io/ready-after": "5s"}
    cliques = [clique(name, replicas, pod_spec=running(version), annotations=slow) for name, replicas in (("router", 2), ("worker", 1))]
    return podcliqueset("llm", *cliques, groups=(group("pool", "worker", replicas=2),), replicas=2)


async def diff_report(cluster: Stage) -> Report:
    """What `engine diff` reports now."""
    return report_of_pass(await cluster.look())


def as_json(report: Report) -> Any:
    """The document that a program reads; it is as the published schema says."""
    return checked(json.loads(printed(document(report))))


def waits(report: Report) -> Mapping[str, str]:
    """What waits for its turn, and why, by clique, as JSON has it."""
    (root,) = as_json(report)["roots"]
    return {one["object"]["name"]: one["why"] for one in root["pending"] if "pods are outdated" in one["why"]}


def deletes(report: Report) -> list[tuple[str, str]]:
    """What would be deleted, and why, as JSON has it."""
    (root,) = as_json(report)["roots"]
    return [(one["object"]["name"], one["why"]) for one in root["operations"] if one["verb"] == "delete"]


def lines(report: Report) -> list[str]:
    """The report as people read it with -v."""
    return [line.text for line in text(report, verbose=True)]


async def test_before_it_begins_the_first_unit_is_named_and_everything_else_waits_behind_it() -> None:
    async with stage() as cluster:
        await cluster.apply(workload(1))
        await cluster.sync()

        await cluster.apply(workload(2))
        report = await diff_report(cluster)

        ((pod, why),) = deletes(report)
        assert pod.startswith("llm-0-router-") and why == "the template has changed"
        left = waits(report)
        assert left["llm-0-router"] == f"1 of 2 pods are outdated: {NEXT}"
        assert left["llm-1-router"] == f"2 of 2 pods are outdated: {FIRST}"
        assert {name: why.partition(": ")[2] for name, why in left.items() if "-pool-" in name} == {
            "llm-0-pool-0-worker": NEXT,
            "llm-0-pool-1-worker": NEXT,
            "llm-1-pool-0-worker": FIRST,
            "llm-1-pool-1-worker": FIRST,
        }

        printed = lines(report)
        assert any(
            line.startswith(f"  - delete   Pod/{pod} ") and line.endswith("TemplateChanged: the template has changed (intent)")
            for line in printed
        )
        assert any("PodClique/llm-0-router " in line and line.endswith(NEXT) for line in printed)
        assert any("PodClique/llm-1-" in line and line.endswith(FIRST) for line in printed)
        assert '      spec.podSpec.containers[main].image: "example/worker:1" → "example/worker:2"' in printed


async def test_while_a_unit_is_replaced_no_other_is_named_and_all_wait_for_it() -> None:
    async with stage() as cluster:
        await cluster.apply(workload(1))
        await cluster.sync()
        async with cluster.running():
            await cluster.apply(workload(2))
            await cluster.clock.advance(4)

            report = await diff_report(cluster)
            assert deletes(report) == []
            assert waits(report)["llm-0-router"] == f"1 of 2 pods are outdated: {AGAIN}"
            assert waits(report)["llm-0-pool-1-worker"] == f"1 of 1 pods are outdated: {AGAIN}"
            assert waits(report)["llm-1-router"] == f"2 of 2 pods are outdated: {FIRST}"
            assert any("PodClique/llm-0-router" in line and "1 of 2 pods ready" in line for line in lines(report))
            assert any("PodClique/llm-0-router" in line and line.endswith(AGAIN) for line in lines(report))


@pytest.mark.parametrize("failure", ["image-pull", "exit:0", "crash"])
async def test_an_update_goes_no_further_in_the_forecast_while_the_container_of_its_first_pod_cannot_run(failure: str) -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[podcliqueset("llm", clique("router", 3, minAvailable=1))])
        failing = clique("router", 3, minAvailable=1, pod_spec=running(2), annotations={FAIL: failure})
        await cluster.sync(manifests=[podcliqueset("llm", failing)], patience=60)

        seen = forecast_of(first_pass_of(await cluster.look()))

        assert seen is not None
        assert [each.id for each in seen.operations() if each.verb is not Verb.STATUS] == []
        assert [seen.end_of(root) for root in seen.plans] == [End.STUCK]


async def test_a_set_whose_models_still_load_is_forecast_to_settle() -> None:
    async with stage(without=("kubelet",)) as cluster:
        await cluster.sync(manifests=[podcliqueset("llm", clique("router", 2))], wait=False)
        at = timestamp(cluster.clock.now())
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": at}
        container = {"name": "main", "started": True, "ready": False, "state": {"running": {"startedAt": at}}}
        loading = {"phase": "Running", "startTime": at, "conditions": [condition], "containerStatuses": [container]}
        for name in cluster.there(kinds.POD):
            await cluster.kubectl.patch(kinds.POD, "default", name, {"status": loading}, subresource="status")
        await cluster.clock.advance(600)

        seen = forecast_of(first_pass_of(await cluster.look([podcliqueset("llm", clique("router", 2), replicas=2)])))

        assert seen is not None and [seen.end_of(root) for root in seen.plans] == [End.SETTLED]


async def test_what_waits_grows_less_from_step_to_step_until_nothing_is_left_to_tell() -> None:
    async with stage() as cluster:
        await cluster.apply(workload(1))
        await cluster.sync()
        left = []
        async with cluster.running():
            await cluster.apply(workload(2))
            for _ in range(120):
                await cluster.clock.advance(1)
                left.append(len(waits(await diff_report(cluster))))

        assert left == sorted(left, reverse=True)
        assert (left[0], left[-1]) == (6, 0)
        assert lines(await diff_report(cluster))[-1] == "No changes."


async def test_of_a_stored_edit_the_fields_of_what_is_created_again_are_told_in_every_format() -> None:
    def edited(version: int, **fields: Any) -> dict[str, Any]:
        pod_spec = running(version)
        pod_spec["containers"][0] |= fields
        return podcliqueset("llm", clique("router"), clique("worker", 2, pod_spec=pod_spec), groups=(group("pool", "worker", replicas=2),))

    async with stage() as cluster:
        await cluster.apply(edited(1, env=[{"name": "A", "value": "secret"}, {"name": "B", "value": "1"}]))
        await cluster.sync()
        await cluster.apply(
            edited(1, securityContext={"runAsUser": 0}, env=[{"name": "B", "value": "1"}, {"name": "A", "value": "other secret"}])
        )
        first = first_pass_of(await cluster.look())
        report = shown(first, forecast_of(first)).report
        documents = ("\n".join(lines(report)), markdown(report), html(report, None), printed(document(report)))

    for content in documents:
        assert "securityContext" in content and "runAsUser" in content and " order " in content
        assert "secret" not in content.replace("Secret", "")
