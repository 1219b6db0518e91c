"""What a preview says of quotas, as far as it could read what LimitRanges write into pods."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.answer import TrialOutcome, Trials, TrialVerdict
from engine.forecast.forecast import Forecast, ForecastPass
from engine.observed import Observed, World, live
from engine.operation import Create, Trial
from engine.plan import Plan, Wait
from engine.tick import Plans
from resources.base import labels
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


def of_clique(name: str, replica: int = 0, hash: str = "new", group: str = "") -> Create:
    """A pod of a clique of the set `llm`, without requests."""
    owner = {labels.SCALING_GROUP: f"llm-0-{group}", labels.GROUP_REPLICA_INDEX: str(replica)} if group else {}
    prefix = f"llm-0-{group}-{replica}" if group else f"llm-{replica}"
    index = {labels.PART_OF: "llm", labels.REPLICA_INDEX: "0" if group else str(replica)}
    return labelled({**owner, **index, labels.PODCLIQUE: f"{prefix}-{name}", labels.TEMPLATE_HASH: hash})


def of_service(name: str, instance: int = 0, **spec: Any) -> Create:
    """A pod of a service of a graph, without requests."""
    return labelled({"service": name, "instance": str(instance)}, **spec)


def labelled(given: dict[str, str], **spec: Any) -> Create:
    """A pod with these labels, without requests."""
    pod = created("p", **{**NEW, **spec})
    return replace(pod, manifest={**pod.manifest, "metadata": {**pod.manifest["metadata"], "labels": given}})


A, B = of_clique("a"), of_clique("b")
OTHER_IMAGE = [{"name": "main", "image": "x:1"}]


@pytest.mark.parametrize(
    ("new", "of_plan", "of_components", "blocked"),
    [
        ([A], [(A, ACCEPTED)], [], False),
        ([of_clique("a", 1)], [(A, ACCEPTED)], [], False),
        ([of_clique("a", 1, group="g")], [(of_clique("a", group="g"), ACCEPTED)], [], False),
        ([of_service("a", 1)], [], [(of_service("a"), ACCEPTED)], False),
        ([A, of_service("a")], [(A, ACCEPTED)], [(of_service("a"), ACCEPTED)], False),
        ([A, B], [(A, ACCEPTED)], [], True),
        ([B], [(A, ACCEPTED), (B, None)], [], True),
        ([A], [(A, ACCEPTED), (B, NO)], [], False),
        ([of_clique("a", hash="old")], [(A, ACCEPTED)], [], True),
        ([of_service("a")], [], [(of_service("b"), ACCEPTED)], True),
        ([of_service("a", containers=OTHER_IMAGE)], [(of_service("a"), ACCEPTED)], [], True),
        ([A], [(A, NO)], [], True),
        ([of_service("a")], [], [(of_service("a"), LATE)], True),
        ([A], [], [], True),
    ],
    ids=[
        *("of the plan", "of another replica", "of another replica of a group", "of a new component", "of both"),
        *("one of two cliques", "no time for it", "another is refused", "outdated", "another component", "an earlier template"),
        *("refused", "not answered", "not asked"),
    ],
)
def test_pods_of_whose_kind_the_server_accepted_one_are_not_blocked_by_what_their_manifest_does_not_say(
    new: list[Create], of_plan: list[tuple[Create, TrialOutcome | None]], of_components: list[tuple[Create, TrialOutcome]], blocked: bool
) -> None:
    step = ForecastPass(timedelta(), {GRAPH: tuple(new)})
    forecast = Forecast(START, (step,), True, {}, {}, frozenset())
    root = live({"apiVersion": "nvidia.com/v1alpha1", "kind": GRAPH.kind, "metadata": {"name": "llm", "namespace": "ml", "uid": "g"}})
    plan = Plan(GRAPH, trials=tuple(Trial(str(number), "", pod) for number, (pod, _) in enumerate(of_plan)))
    verdicts = {str(number): TrialVerdict(outcome, "", START) for number, (_, outcome) in enumerate(of_plan) if outcome is not None}
    first = FirstPass(START, World((Observed(root, {}, trials=Trials(verdicts)),)), Plans((plan,)), CONFIGURATION)
    tried = TrialResult(tried=tuple((GRAPH, pod.manifest, outcome) for pod, outcome in of_components))

    ((_, remark),) = quota_remarks(first, forecast, Facts(quotas=(quota(0, 9, "requests.cpu"),), components=tried))

    assert isinstance(remark, Wait) is blocked
