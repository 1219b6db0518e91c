"""Unscheduled gangs: sets say whether their scheduler places the pods of a gang together, in one condition and in no event."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.runtime.sync_report import Ending
from engine.verb import Verb
from providers.registry import SCHEDULERS
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.stories.stage import SETUP, Stage, stage

pytestmark = pytest.mark.anyio

VOLCANO = replace(SETUP, schedulers=SCHEDULERS, default_scheduler="volcano")
TYPE = "GangSchedulingUnavailable"


def types_of(cluster: Stage) -> dict[str, list[str]]:
    """Whether each set has the condition, as a list with its type."""
    return {name: [each["type"] for each in conditions(cluster, name)] for name in cluster.there(kinds.PODCLIQUESET)}


def conditions(cluster: Stage, name: str) -> list[dict[str, Any]]:
    """That condition of a set, if it has it."""
    found = cluster.there(kinds.PODCLIQUESET)[name]["status"].get("conditions", ())
    return [each for each in found if each["type"] == TYPE]


def about_gangs(cluster: Stage) -> list[dict[str, Any]]:
    """The events that mention it."""
    return [event for event in cluster.there(kinds.EVENT).values() if "does not schedule gangs" in event["message"]]


async def test_run_says_once_that_the_scheduler_schedules_no_gangs_and_takes_it_back_when_it_does() -> None:
    async with stage(addons=("volcano",)) as cluster:
        async with cluster.running():
            await cluster.apply(podcliqueset("several", clique("worker", 2), replicas=2))
            await cluster.apply(podcliqueset("single", clique("worker"), replicas=2))
            await cluster.settle()
            assert types_of(cluster) == {"several": [TYPE], "single": []}
            (condition,) = conditions(cluster, "several")

            await cluster.scale(kinds.PODCLIQUESET, "several", 3)
            await cluster.settle()
            assert conditions(cluster, "several") == [condition]

        cluster.setup = VOLCANO
        assert (await cluster.sync()).ending is Ending.DONE
        assert types_of(cluster) == {"several": [], "single": []}
        assert about_gangs(cluster) == []


async def test_a_set_of_a_scheduler_with_gangs_never_has_the_condition() -> None:
    async with stage(addons=("volcano",)) as cluster:
        cluster.setup = VOLCANO
        await cluster.apply(podcliqueset("several", clique("worker", 2)))

        assert (await cluster.sync()).ending is Ending.DONE
        assert types_of(cluster) == {"several": []}


async def test_an_upgrade_writes_one_status_for_each_set_with_such_gangs_and_touches_nothing_else() -> None:
    async with stage() as cluster:
        for number in range(3):
            await cluster.apply(podcliqueset(f"set-{number}", clique("worker", 2), replicas=2))
        await cluster.apply(podcliqueset("single", clique("worker")))
        assert (await cluster.sync()).ending is Ending.DONE
        for number in range(3):  # As an engine that knows no such condition has left them.
            patch: dict[str, Any] = {"status": {"conditions": []}}
            await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", f"set-{number}", patch, subresource="status")

        planned = [(each.verb, each.id.name) for plan in (await cluster.look()).planned.plans for each in plan.operations]
        assert planned == [(Verb.STATUS, "set-0"), (Verb.STATUS, "set-1"), (Verb.STATUS, "set-2")]
        before = {name: body["metadata"]["uid"] for name, body in cluster.there(kinds.POD).items()}
        assert (await cluster.sync()).ending is Ending.DONE
        assert {name: body["metadata"]["uid"] for name, body in cluster.there(kinds.POD).items()} == before
        assert types_of(cluster) == {"set-0": [TYPE], "set-1": [TYPE], "set-2": [TYPE], "single": []}
        assert [plan.operations for plan in (await cluster.look()).planned.plans] == [(), (), (), ()]
