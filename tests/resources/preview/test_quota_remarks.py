"""What a preview says of quotas, as far as it could read what LimitRanges write into pods."""

from datetime import timedelta

import pytest

from engine.answer import TrialOutcome, Trials, TrialVerdict
from engine.forecast.forecast import Forecast, ForecastPass
from engine.observed import Observed, World, live
from engine.plan import Wait
from engine.tick import Plans
from resources.placement.cluster_room import Defaults, LimitDefaults
from resources.preview.facts import Facts, FirstPass, TrialResult
from resources.preview.shown import quota_remarks
from tests.laws.toy import CONFIGURATION, START
from tests.resources.cluster_model.test_quota_shortages import GRAPH, NEW, created, quota

REFUSED = "container main has no requests.cpu: the API server will refuse such pods"


@pytest.mark.parametrize(
    ("defaults", "expected"),
    [
        ({}, [REFUSED]),
        ({"ml": LimitDefaults(requests={"cpu": "1"})}, []),
        ({"other": LimitDefaults(requests={"cpu": "1"})}, [REFUSED]),
        (
            None,
            ["ResourceQuota team: container main has no requests.cpu: unless a LimitRange says it, the API server will refuse such pods"],
        ),
    ],
    ids=["none", "of the namespace", "of another one", "not listed"],
)
def test_what_no_container_says_is_refused_unless_a_limit_range_says_it_or_may(defaults: Defaults | None, expected: list[str]) -> None:
    step = ForecastPass(timedelta(), {GRAPH: (created("a", **NEW), created("b", **NEW))})
    forecast = Forecast(START, (step,), True, {}, {}, frozenset())
    first = FirstPass(START, World(()), Plans(()), CONFIGURATION)

    remarks = [remark for _, remark in quota_remarks(first, forecast, Facts(quotas=(quota(0, 9, "requests.cpu"),), defaults=defaults))]

    assert [remark.why if isinstance(remark, Wait) else remark for remark in remarks] == expected


ACCEPTED, LATE, NO = TrialOutcome.ACCEPTED, TrialOutcome.UNANSWERED, TrialOutcome.REFUSED


@pytest.mark.parametrize(
    ("of_plan", "of_components", "blocked"),
    [
        ([ACCEPTED], [], False),
        ([], [ACCEPTED], False),
        ([ACCEPTED], [ACCEPTED], False),
        ([ACCEPTED, NO], [], True),
        ([ACCEPTED], [LATE], True),
        ([], [], True),
    ],
    ids=["of the plan", "of new components", "of both", "one is refused", "one is not answered", "not asked"],
)
def test_pods_that_the_server_accepted_are_not_blocked_by_what_their_manifest_does_not_say(
    of_plan: list[TrialOutcome], of_components: list[TrialOutcome], blocked: bool
) -> None:
    step = ForecastPass(timedelta(), {GRAPH: (created("a", **NEW),)})
    forecast = Forecast(START, (step,), True, {}, {}, frozenset())
    root = live({"apiVersion": "nvidia.com/v1alpha1", "kind": GRAPH.kind, "metadata": {"name": "llm", "namespace": "ml", "uid": "g"}})
    trials = Trials({str(number): TrialVerdict(outcome, "", START) for number, outcome in enumerate(of_plan)})
    first = FirstPass(START, World((Observed(root, {}, trials=trials),)), Plans(()), CONFIGURATION)
    facts = Facts(quotas=(quota(0, 9, "requests.cpu"),), components=TrialResult(outcomes={GRAPH: frozenset(of_components)}))

    ((_, remark),) = quota_remarks(first, forecast, facts)

    assert isinstance(remark, Wait) is blocked
