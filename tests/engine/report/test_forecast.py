"""Forecasts in reports: stages, the fewest ready members, totals, the end, and what is assumed."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.forecast.cluster_model import Assumption, Effects, Level
from engine.forecast.forecast import Forecast, ForecastPass
from engine.operation import Operation
from engine.plan import Plan, Wait
from engine.reason import Reason
from engine.report.forecast_text import REST
from engine.report.html.document import html
from engine.report.json import document
from engine.report.markdown.document import markdown
from engine.report.model import Report, compose
from engine.report.text import text
from engine.verb import Verb
from tests.engine.report.plans import ROOT, operation, pod, replica_of, report_of

FIRST = operation(Verb.DELETE, pod("simple-0-worker-aaaaa"))


def forecast_of(*passes: Sequence[Operation], plan: Plan | None = None, effects: Effects | None = None, finished: bool = True) -> Forecast:
    """A forecast of passes a second apart, the first of which is listed in the report."""
    return Forecast(
        datetime(2026, 1, 1, tzinfo=UTC),
        tuple(ForecastPass(timedelta(seconds=second), {ROOT: tuple(operations)}) for second, operations in enumerate(passes)),
        finished,
        {ROOT: plan} if plan else {},
        {ROOT: effects} if effects else {},
        frozenset({Assumption.CAPACITY}),
    )


def with_another_root(forecast: Forecast) -> Forecast:
    """The forecast with the same effects on another root, of which a pod is deleted in the first pass."""
    other = ROOT._replace(name="other")
    first = replace(forecast.passes[0], operations={**forecast.passes[0].operations, other: (FIRST,)})
    return replace(forecast, passes=(first, *forecast.passes[1:]), effects={**forecast.effects, other: forecast.effects[ROOT]})


def lines(forecast: Forecast, *, verbose: bool = False) -> list[str]:
    """The lines of the report of one operation with this forecast, without its own."""
    report: Report = replace(report_of(FIRST), forecast=forecast)
    return [line.text for line in text(report, verbose=verbose)][2:]


def rolled(count: int) -> list[list[Operation]]:
    """Passes that replace pods one by one."""
    names = [f"simple-{index}-worker-{letter * 5}" for index in range(count) for letter in "bc"]
    return [[operation(Verb.DELETE if number % 2 == 0 else Verb.CREATE, pod(name))] for number, name in enumerate(names)]


def test_stages_that_repeat_are_one_line() -> None:
    assert lines(forecast_of([FIRST], *rolled(8)))[0] == "  stage 1  8 times: delete 1 Pod; then create 1 Pod"


def test_the_repetition_that_covers_the_most_passes_is_found() -> None:
    text = lines(forecast_of([FIRST], [operation(Verb.DELETE, pod("x"))], *rolled(4), [operation(Verb.CREATE, pod("y"))]))

    assert text[:3] == ["  stage 1  delete Pod/x", "  stage 2  4 times: delete 1 Pod; then create 1 Pod", "  stage 3  create Pod/y"]


def test_a_single_object_is_named_and_several_are_counted() -> None:
    many = [operation(Verb.CREATE, pod(f"simple-0-x-{index}")) for index in range(3)]

    assert lines(forecast_of([FIRST], [operation(Verb.CREATE, pod("one"))], many))[:2] == [
        "  stage 1  create Pod/one",
        "  stage 2  create 3 Pods",
    ]


def test_what_the_report_lists_already_is_no_stage() -> None:
    assert not any(line.startswith("  stage") for line in lines(forecast_of([FIRST], effects=Effects({"pods removed": 1}))))


def test_nothing_is_said_if_nothing_follows() -> None:
    assert lines(forecast_of([FIRST])) == ["Plan: 1 to delete."]


def test_what_one_pass_does_to_pods_is_assumed_too() -> None:
    text = lines(forecast_of([FIRST], effects=Effects({"pods restarted": 1})))

    assert text[-1] == "This assumes that every new pod is scheduled and becomes ready."


def test_a_root_that_was_stuck_before_and_for_which_nothing_is_done_is_still_stuck() -> None:
    waits = Plan(ROOT, pending=(Wait(pod("p"), "it is not ready"),))

    first, *_ = text(replace(report_of(), forecast=forecast_of([], plan=waits)))

    assert first.text == "default/simple: no changes, still STUCK"


@pytest.mark.parametrize("mistake", [{"problems": ("replicas: must be positive",)}, {"error": "a defect"}], ids=["INVALID", "FAILED"])
def test_a_root_whose_new_manifest_cannot_be_carried_out_is_not_said_to_have_been_stuck_before(
    mistake: Any, request: pytest.FixtureRequest
) -> None:
    report = compose([Plan(ROOT, **mistake)], replica_of)

    first, *_ = text(replace(report, forecast=forecast_of([], plan=Plan(ROOT, **mistake))))

    assert first.text == f"default/simple: no changes, {request.node.callspec.id}, STUCK"


def test_a_stage_after_a_long_time_says_when() -> None:
    forecast = forecast_of([FIRST], [operation(Verb.CREATE, pod("one"))])
    late = replace(forecast, passes=(forecast.passes[0], replace(forecast.passes[1], after=timedelta(hours=4))))

    assert lines(late) == [
        "  stage 1  after 4h0m0s: create Pod/one",
        "  total    1 to create, 1 to delete; settled, 2 passes, the last one after 4h0m0s",
        "Plan: 1 to create, 1 to delete.",
        f"The last pass begins 4h0m0s after the first, or later: {REST}.",
        "This assumes that every new pod is scheduled and becomes ready.",
    ]


def test_the_last_line_counts_all_passes_as_in_every_format() -> None:
    report = replace(report_of(FIRST), forecast=forecast_of([FIRST], *rolled(2)))
    summary = document(report)["forecast"]

    assert "Plan: 2 to create, 3 to delete." in [line.text for line in text(report)]
    assert "### engine: 5 changes" in markdown(report) and "In all: 2 to create, 3 to delete." in markdown(report)
    assert "<strong>In all: </strong>2 to create, 3 to delete." in html(report, datetime(2026, 1, 1, tzinfo=UTC))
    assert summary is not None and (summary["operations"]["create"], summary["operations"]["delete"]) == (2, 3)


def test_the_fewest_ready_members_are_named_with_their_minimum() -> None:
    effects = Effects({"pods restarted": 2}, (Level(pod("simple-0-a"), 3, 1, 3, 2), Level(pod("simple-0-b"), 3, 2, 3, 2)))

    assert lines(forecast_of([FIRST], effects=effects))[:2] == [
        "  lowest   Pod/simple-0-a: 1 of 3 pods ready (min 2) BELOW",
        "  lowest   Pod/simple-0-b: 2 of 3 pods ready (min 2)",
    ]


@pytest.mark.parametrize(
    ("plan", "finished", "end"),
    [
        (Plan(ROOT), True, "settled, 3 passes"),
        (None, True, "settled, 3 passes"),
        (Plan(ROOT, pending=(Wait(pod("one"), "waits"),)), True, "STUCK: the remaining steps need manual action, 3 passes"),
        (Plan(ROOT, operations=(FIRST,)), False, "at least: more follows than was computed, 3 passes"),
    ],
)
def test_the_totals_say_how_it_ends(plan: Plan | None, finished: bool, end: str) -> None:
    text = lines(forecast_of([FIRST], *rolled(1), plan=plan, effects=Effects({"pods restarted": 1}), finished=finished))

    assert f"  total    1 pod restarted; 1 to create, 2 to delete; {end}" in text


def test_what_is_left_is_named() -> None:
    waits = tuple(Wait(pod(f"p-{index}"), "it never starts") for index in range(5))

    text = lines(forecast_of([FIRST], *rolled(1), plan=Plan(ROOT, pending=waits)))

    assert "  left     Pod/p-0: it never starts" in text and "           … 2 more objects are left" in text


def test_what_will_be_blocked_comes_first_with_its_remedy() -> None:
    taken = Wait(pod("p"), "it is not ours", blocked=True, reason=Reason.NAME_CONFLICT)
    report = replace(report_of(FIRST), forecast=forecast_of([FIRST], *rolled(1), plan=Plan(ROOT, deferred=(taken,))))

    assert [line.text for line in text(report)][:2] == [
        "default/simple: update, STUCK",
        "  ! blocked  Pod/p  NameConflict: it is not ours; do: delete or rename it",
    ]


def test_the_end_of_the_report_has_all_roots_and_the_assumptions() -> None:
    assert lines(with_another_root(forecast_of([FIRST], *rolled(2), effects=Effects({"pods restarted": 2}))))[-2:] == [
        "Plan: 2 to create, 4 to delete; 4 pods restarted.",
        "This assumes that every new pod is scheduled and becomes ready.",
    ]


def test_an_unfinished_forecast_has_lower_bounds() -> None:
    forecast = with_another_root(forecast_of([FIRST], *rolled(2), effects=Effects({"pods restarted": 2}), finished=False))

    assert "Plan: at least 2 to create, 4 to delete; 4 pods restarted." in lines(forecast)


def test_many_stages_are_cut_unless_verbose() -> None:
    kinds = [[operation(Verb.CREATE, pod("x")._replace(kind=f"Kind{number}"))] for number in range(12)]

    assert "           … 4 more stages; -v shows every pass" in lines(forecast_of([FIRST], *kinds))
    assert sum(line.startswith("  stage") for line in lines(forecast_of([FIRST], *kinds), verbose=True)) == 12


def test_hostile_names_are_harmless() -> None:
    hostile = "\x1b[31m‮evil" + "x" * 300
    effects = Effects({}, (Level(pod(hostile), 2, 0, 2, 1),))
    forecast = forecast_of(
        [FIRST], [operation(Verb.CREATE, pod(hostile))], plan=Plan(ROOT, pending=(Wait(pod(hostile), hostile),)), effects=effects
    )

    text = "\n".join(lines(forecast))

    assert "\x1b" not in text and "\u202e" not in text
    assert max(map(len, text.splitlines())) < 340


def test_json_has_stages_totals_availability_and_the_end() -> None:
    effects = Effects({"pods restarted": 2}, (Level(pod("simple-0-a"), 3, 1, 3, 2),))
    forecast = forecast_of([FIRST], *rolled(2), effects=effects)

    value = document(replace(report_of(FIRST), forecast=forecast))

    assert value["forecast"] == {
        "complete": True,
        "assumptions": ["CAPACITY"],
        "mayNotFit": [],
        "roomNotChecked": "",
        "operations": {"create": 2, "patch": 0, "scale": 0, "replace": 0, "release": 0, "delete": 3},
        "collected": 0,
    }
    (root,) = value["roots"]
    entry = root["forecast"]
    assert entry is not None
    assert entry["end"] == "settled" and entry["effects"] == {"pods restarted": 2}
    assert entry["availability"][0]["lowest"] == 1 and entry["availability"][0]["below"] is True
    assert [(stage["times"], len(stage["passes"])) for stage in entry["stages"]][-1] == (2, 2)


def test_json_without_a_forecast_says_so() -> None:
    value = document(report_of(FIRST))

    assert value["forecast"] is None and value["roots"][0]["forecast"] is None
