"""Judging: which violations follow from the answers of expressions, whoever gives them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.plan import Enforcement, Judgement
from resources.plan_policies.expressions import Answer, RuleSubject
from resources.plan_policies.judge import judge, rule_names
from resources.plan_policies.plan_data import PlanData
from resources.schema.plan_policy import PlanPolicy, RuleScope, plan_policy
from tests.resources.plan_policies.data import MONDAY, plan_data, set_data

FAULT = Answer(fault="no such key")


@dataclass(frozen=True)
class Scripted:
    """Answers by expression: a value, an answer, or a function of the subject."""

    answers: Mapping[str, Any]

    def evaluate(self, subject: RuleSubject, expressions: Sequence[str]) -> Sequence[Answer]:
        values = [self.answers[expression] for expression in expressions]
        values = [value(subject) if callable(value) else value for value in values]
        return [value if isinstance(value, Answer) else Answer(value) for value in values]


def policy(*rules: Mapping[str, Any], name: str = "prod", **spec: Any) -> PlanPolicy:
    """A policy; each rule has a message."""
    validations = [{"message": "not so", **rule} for rule in rules]
    return plan_policy(
        {
            "apiVersion": "engine.grove.io/v1alpha1",
            "kind": "PlanPolicy",
            "metadata": {"name": name},
            "spec": {"validations": validations, **spec},
        }
    )


def judged(*policies: PlanPolicy, waivers: Mapping[str, str] | None = None, **answers: Any) -> Judgement:
    """What the policies say about two sets."""
    plan = plan_data(set_data("one"), set_data("two"))
    return judge(policies, plan, Scripted(answers), waivers or {})


def is_named(name: str) -> Callable[[RuleSubject], bool]:
    """Whether the subject is the set of that name."""
    return lambda subject: bool(subject.data["name"] == name)


def test_a_rule_about_the_plan_is_asked_once_and_one_about_sets_for_each() -> None:
    of_plan, of_sets = {"name": "plan", "expression": "p"}, {"name": "sets", "expression": "s", "scope": "Set", "action": "Warn"}

    judgement = judged(policy(of_plan, of_sets), p=False, s=False)

    assert [(each.rule, each.about.name if each.about else None) for each in judgement.violations] == [
        ("prod/plan", None),
        ("prod/sets", "one"),
        ("prod/sets", "two"),
    ]
    assert [len(judgement.denied), len(judgement.warned)] == [1, 2]


def test_a_rule_that_is_fulfilled_says_nothing() -> None:
    assert judged(policy({"name": "a", "expression": "a"}), a=True) == Judgement()


def test_a_policy_judges_the_sets_that_fulfil_its_conditions_also_as_a_plan() -> None:
    seen: list[str] = []

    def note(subject: RuleSubject) -> bool:
        seen.extend(each["name"] for each in subject.data["sets"])
        return False

    conditions = [{"name": "first", "expression": "c"}]
    rules = {"name": "plan", "expression": "p"}, {"name": "set", "expression": "s", "scope": "Set"}

    judgement = judged(
        policy(*rules, matchConditions=conditions),
        c=is_named("one"),
        p=note,
        s=False,
    )

    assert seen == ["one"]
    assert [each.about.name if each.about else None for each in judgement.denied] == [None, "one"]


def test_a_policy_that_judges_none_of_the_sets_denies_nothing_and_says_so() -> None:
    conditions = [{"name": "none", "expression": "c"}]

    judgement = judged(policy({"name": "freeze", "expression": "p"}, matchConditions=conditions), c=False, p=False)

    assert judgement == Judgement(notes=("no workload that changes matches prod",))


def test_a_plan_that_does_nothing_violates_nothing() -> None:
    rules = policy({"name": "freeze", "expression": "p"})

    assert judge([rules], PlanData((), True, MONDAY), Scripted({"p": False}), {}) == Judgement()


def test_an_expression_that_cannot_be_evaluated_is_a_violation() -> None:
    (violation,) = judged(policy({"name": "a", "expression": "a", "action": "Warn"}), a=FAULT).violations

    assert (violation.enforcement, violation.message) == (Enforcement.WARN, "it cannot be evaluated: no such key")


def test_or_a_note_if_the_policy_says_so() -> None:
    judgement = judged(policy({"name": "a", "expression": "a"}, failurePolicy="Ignore"), a=FAULT)

    assert (judgement.violations, judgement.notes) == ((), ("prod/a is ignored: it cannot be evaluated: no such key",))


def test_a_condition_that_cannot_be_evaluated_denies() -> None:
    conditions = [{"name": "where", "expression": "c"}]
    rule = {"name": "a", "expression": "a", "action": "Audit"}

    strict = judged(policy(rule, matchConditions=conditions), c=FAULT, a=True)
    lenient = judged(policy(rule, matchConditions=conditions, failurePolicy="Ignore"), c=FAULT, a=True)

    assert [(each.rule, each.enforcement) for each in strict.violations] == [("prod/where", Enforcement.DENY)] * 2
    assert (lenient.violations, len(lenient.notes)) == ((), 2)


def test_the_message_is_that_of_the_expression_where_it_makes_text() -> None:
    rule = {"name": "a", "expression": "a", "messageExpression": "m"}
    texts = [judged(policy(rule), a=False, m=made).violations[0].message for made in ("3 pods", "", " \n", FAULT, True)]

    assert texts == ["3 pods", "not so", "not so", "not so", "not so"]


def test_a_waived_rule_is_recorded_with_the_reason_and_denies_nothing() -> None:
    judgement = judged(policy({"name": "a", "expression": "a"}), waivers={"prod/a": "agreed"}, a=False)

    assert (judgement.denied, [each.waived for each in judgement.waived]) == ((), ["agreed"])


def test_rules_are_named_by_their_policy() -> None:
    conditions = [{"name": "where", "expression": "c"}]

    assert rule_names([policy({"name": "a", "expression": "a"}, matchConditions=conditions)]) == {"prod/a", "prod/where"}


def test_expressions_see_their_scope_the_parameters_and_the_time() -> None:
    seen: list[RuleSubject] = []

    def note(subject: RuleSubject) -> bool:
        seen.append(subject)
        return True

    judged(policy({"name": "a", "expression": "a"}, {"name": "b", "expression": "b", "scope": "Set"}, params={"most": 3}), a=note, b=note)

    assert [each.scope for each in seen] == [RuleScope.PLAN, RuleScope.SET, RuleScope.SET]
    assert all((each.params, each.now) == ({"most": 3}, "2026-11-23T09:00:00Z") for each in seen)
