"""The policies in `examples/policies`: each rule is fulfilled by one plan and violated by another, for the reason that it tells."""

from typing import Any

import jsonschema_rs
import pytest
import yaml

from enginectl.actions.schema import schema
from enginectl.base.options import DocumentName
from enginectl.input.plan_policies import load_policies
from providers.plan_policies.cel import CelExpressions
from resources.plan_policies.judge import judge, rule_names
from resources.plan_policies.plan_data import PlanData
from tests.enginectl.calling import ROOT
from tests.resources.plan_policies.data import blank, operation, plan_data, set_data

POLICIES = load_policies([ROOT / "examples" / "policies"])
KEEP = {"example.com/keep": ""}
DIGEST = f"registry.example.com/serve@sha256:{'0' * 64}"


def clique(name: str, lowest: int, *, below: bool) -> dict[str, Any]:
    """A clique with a minimum of 2."""
    data: dict[str, Any] = blank("Availability", name=name, before=3, lowest=lowest, after=3, minAvailable=2, below=below)
    return data


def message_of(rule: str, plan: PlanData) -> str | None:
    """What the rule says about the plan; None if it is fulfilled. No expression of the examples fails."""
    judgement = judge(POLICIES, plan, CelExpressions(), {})
    assert [note for note in judgement.notes if not note.startswith("no workload that changes matches ")] == []
    return next((each.message for each in judgement.violations if each.rule == rule), None)


CASES: dict[str, tuple[PlanData, PlanData, str]] = {
    "limits/restarts": (
        plan_data(set_data(summary={"podsRestarted": 20}), set_data("other", "dev", summary={"podsRestarted": 500})),
        plan_data(set_data(summary={"podsRestarted": 12}), set_data("other", summary={"podsRestarted": 9})),
        "21 pods restart, at most 20 may: update fewer sets at a time",
    ),
    "limits/deletes": (
        plan_data(set_data(summary={"deletes": 50})),
        plan_data(set_data(summary={"deletes": 49, "replaces": 2})),
        "51 objects are deleted, at most 50 may be",
    ),
    "limits/gpu-budget": (
        plan_data(set_data(summary={"gpusAdded": 128, "gpusRemoved": 64})),
        plan_data(set_data(summary={"gpusAdded": 72, "gpusRemoved": 7})),
        "65 more GPUs are used, the budget is 64",
    ),
    "protected/objects": (
        plan_data(set_data(operations=[operation("patch", annotations=KEEP), operation("delete")])),
        plan_data(set_data(operations=[operation("replace", annotations=KEEP)])),
        "Pod/x has the annotation example.com/keep and would be deleted",
    ),
    "protected/sets": (
        plan_data(set_data(annotations=KEEP), set_data("other", isDeleted=True)),
        plan_data(set_data(annotations=KEEP, isDeleted=True)),
        "a set with the annotation example.com/keep would be deleted",
    ),
    "protected/namespaces": (
        plan_data(set_data(namespace="payments", summary={"podsRestarted": 2}), set_data(isDeleted=True, summary={"podsRemoved": 2})),
        plan_data(set_data(namespace="payments", summary={"podsRemoved": 1})),
        "no workload of this namespace is deleted or scaled in",
    ),
    "calendar/end-of-year": (
        plan_data(now="2027-01-03T23:00:00Z"),
        plan_data(now="2027-01-03T22:59:59Z"),
        "no changes from 18 December to 3 January",
    ),
    "calendar/working-days": (
        plan_data(now="2026-11-26T09:00:00Z"),
        plan_data(now="2026-11-27T09:00:00Z"),
        "changes are made from Monday to Thursday",
    ),
    "calendar/working-hours": (
        plan_data(now="2026-11-26T14:59:59Z"),
        plan_data(now="2026-11-26T15:00:00Z"),
        "changes are made from 8 to 16 o'clock",
    ),
    "safety/available": (
        plan_data(set_data(cliques=[clique("a", 2, below=False)])),
        plan_data(set_data(cliques=[clique("a", 1, below=True), clique("b", 2, below=False)], groups=[clique("c", 0, below=True)])),
        "a has 1 of at least 2, one of 2 below their minimum",
    ),
    "safety/domains": (
        plan_data(set_data(summary={"domainsRemoved": 1, "domainsMade": 1})),
        plan_data(set_data(summary={"domainsReplaced": 1})),
        "a fabric domain is replaced, and all of its pods restart",
    ),
    "safety/settles": (
        plan_data(set_data(end="settled")),
        plan_data(set_data(end="stuck", blocked=[blank("Blocked", message="Service web is not ours")]), set_data("other")),
        "the plan does not settle, it ends stuck: Service web is not ours",
    ),
    "safety/digests": (
        plan_data(set_data(images=[DIGEST])),
        plan_data(set_data(images=[DIGEST, "serve:1", "route:2"])),
        "by tag: serve:1, route:2",
    ),
}
"""Name of a rule -> a plan that fulfils it, one that violates it, and the message."""


def test_every_rule_has_a_case() -> None:
    assert rule_names(POLICIES) - {"limits/production", "calendar/production"} == CASES.keys()


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_is_fulfilled_and_violated(rule: str) -> None:
    good, bad, message = CASES[rule]

    assert (message_of(rule, good), message_of(rule, bad)) == (None, message)


@pytest.mark.parametrize(
    ("now", "is_allowed"),
    [
        ("2026-10-24T06:00:00Z", True),  # 8:00 in summer
        ("2026-10-24T05:59:59Z", False),
        ("2026-10-25T06:00:00Z", False),  # 7:00: the clocks have been put back in this night
        ("2026-10-25T07:00:00Z", True),
        ("2026-10-25T14:59:59Z", True),  # 15:59 in winter
        ("2026-10-24T14:00:00Z", False),  # 16:00 in summer
        ("2027-03-27T07:00:00Z", True),  # 8:00 in winter
        ("2027-03-28T06:00:00Z", True),  # 8:00 again: the clocks have been put forward
    ],
)
def test_hours_are_those_of_the_place_before_and_after_the_clocks_change(now: str, is_allowed: bool) -> None:
    assert (message_of("calendar/working-hours", plan_data(now=now)) is None) is is_allowed


def test_the_freeze_begins_and_ends_at_midnight_of_the_place() -> None:
    moments = ["2026-12-17T22:59:59Z", "2026-12-17T23:00:00Z"]

    assert [message_of("calendar/end-of-year", plan_data(now=now)) is None for now in moments] == [True, False]


def test_the_calendar_is_that_of_production_alone() -> None:
    plan = plan_data(set_data(namespace="dev"), now="2026-12-24T12:00:00Z")

    assert message_of("calendar/end-of-year", plan) is None
    assert judge(POLICIES, plan, CelExpressions(), {}).notes == ("no workload that changes matches calendar, limits",)


def test_the_published_schema_accepts_them_and_no_other_field() -> None:
    validator = jsonschema_rs.validator_for(schema(DocumentName.POLICY))
    bodies = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in (ROOT / "examples" / "policies").iterdir()]

    assert all(validator.is_valid(body) for body in bodies)
    assert not any(validator.is_valid({**body, "spec": {**body["spec"], "rules": []}}) for body in bodies)
