"""What is remembered of the loop: the last pass, and the last operations with their outcomes."""

import pytest

from engine.errors import Forbidden
from engine.operation import Outcome, Result
from engine.plan import Plan
from engine.verb import Verb
from enginectl.serving.last_pass import KEPT, LastPass
from tests.builders import clique, podcliqueset
from tests.engine.report.plans import ROOT, operation, pod
from tests.stories.stage import stage

pytestmark = pytest.mark.anyio


async def test_the_last_operations_are_kept_with_root_outcome_and_error_and_without_statuses() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("racks", clique("worker", 2)))
        current, last = await cluster.look(), LastPass(cluster.clock)
        created, refused, status = operation(Verb.CREATE, pod("a")), operation(Verb.DELETE, pod("b")), operation(Verb.STATUS, ROOT)
        results = [Result(created, Outcome.DONE), Result(status, Outcome.DONE), Result(refused, Outcome.FAILED, error=Forbidden("no"))]
        last.leading(True)
        last.planned(current, [Plan(ROOT, (created, refused, status))])
        executing = last.state
        last.passed(current, results)

    assert (executing.current, executing.is_executing, last.state.is_executing) == (current, True, False)
    kept = [(each.verb, each.id, each.root, each.outcome, each.error) for each in last.state.done]
    assert kept == [(Verb.DELETE, pod("b"), ROOT, "failed", "no"), (Verb.CREATE, pod("a"), ROOT, "done", "")]


async def test_the_newest_operations_of_many_passes_are_kept() -> None:
    async with stage() as cluster:
        current, last = await cluster.look(), LastPass(cluster.clock)
        for number in range(3):
            results = [Result(operation(Verb.CREATE, pod(f"{number}-{index}")), Outcome.DONE) for index in range(KEPT - 50)]
            last.passed(current, results)

    names = [each.id.name for each in last.state.done]
    assert len(names) == KEPT
    assert (names[0], names[KEPT - 50 - 1], names[KEPT - 50]) == (f"2-{KEPT - 51}", "2-0", f"1-{KEPT - 51}")


async def test_who_loses_the_lease_has_no_plan_and_a_failed_pass_leaves_the_one_before_with_the_reason() -> None:
    async with stage() as cluster:
        current, last = await cluster.look(), LastPass(cluster.clock)
        last.leading(True)
        last.passed(current, ())
        last.failed(Forbidden("no"))
        failed = last.state
        last.leading(False)

    assert (failed.current, failed.error) == (current, "no")
    assert (last.state.leads, last.state.current) == (False, None)
