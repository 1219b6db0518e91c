"""Judge: what policies say about a plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.plan import Enforcement, Judgement, Violation
from engine.report.printable import some
from resources.plan_policies.expressions import Answer, Expressions, RuleSubject
from resources.plan_policies.plan_data import Data, PlanData, SetData
from resources.schema.plan_policy import MatchCondition, PlanPolicy, RuleScope, Validation

ENFORCEMENTS: Final[Mapping[str, Enforcement]] = {"Deny": Enforcement.DENY, "Warn": Enforcement.WARN, "Audit": Enforcement.AUDIT}
LONGEST: Final = 1_000
"""The most characters of a message that an expression makes."""


def rule_name(policy: PlanPolicy, rule: Validation | MatchCondition) -> str:
    """The name of a rule among the rules of all policies: `policy/rule`."""
    return f"{policy.metadata.name}/{rule.name}"


def rule_names(policies: Iterable[PlanPolicy]) -> frozenset[str]:
    """The names of all rules, and of the match conditions, which are violated if they cannot be evaluated."""
    conditions = (rule_name(policy, condition) for policy in policies for condition in policy.spec.match_conditions)
    return frozenset(conditions).union(rule_name(policy, rule) for policy in policies for rule in policy.spec.validations)


def judge(policies: Sequence[PlanPolicy], plan: PlanData, expressions: Expressions, waivers: Mapping[str, str]) -> Judgement:
    """What the policies say. A plan that does nothing violates nothing.

    `waivers`: name of a rule -> the reason for which it is only recorded, and denies nothing.
    """
    if not plan.sets:
        return Judgement()
    notes: list[str] = []
    whole = plan.plan_of(plan.sets)
    judges = [_Judge(policy, plan, whole, expressions, notes) for policy in policies]
    violations = [violation for each in judges for violation in each.violations()]
    if unmatched := [each.policy.metadata.name for each in judges if not each.has_judged]:
        notes.append(f"no workload that changes matches {some(unmatched)}")
    return Judgement(tuple(replace(each, waived=waivers.get(each.rule, "")) for each in violations), tuple(notes))


class _Judge(Struct, eq=False):
    """Applies one policy."""

    policy: PlanPolicy
    plan: PlanData
    whole: Data
    """The data of the plan with all sets."""
    expressions: Expressions
    notes: list[str] = field(default_factory=list)
    has_judged: bool = False
    """Whether a set matches, or a condition could not be evaluated."""

    def violations(self) -> Iterator[Violation]:
        """The violations of all rules; none if the policy judges none of the sets."""
        matching: list[SetData] = []
        for each in self.plan.sets:
            matches, faults = self._matches(each)
            yield from faults
            if matches:
                matching.append(each)
        if matching:
            yield from self._broken(self._about_plan(matching), None, self._rules(RuleScope.PLAN))
            for each in matching:
                yield from self._broken(self._about_set(each), each.root, self._rules(RuleScope.SET))

    def _rules(self, scope: RuleScope) -> list[Validation]:
        return [rule for rule in self.policy.spec.validations if RuleScope(rule.scope) is scope]

    def _matches(self, each: SetData) -> tuple[bool, list[Violation]]:
        """Whether the policy judges the set, and the violations of conditions that cannot be evaluated."""
        conditions = self.policy.spec.match_conditions
        answers = self._answers(self._about_set(each), [condition.expression for condition in conditions])
        if any(answer.value is False for answer in answers):
            return False, []
        self.has_judged = True
        faults = [
            violation
            for condition, answer in zip(conditions, answers, strict=True)
            for violation in self._fault(rule_name(self.policy, condition), Enforcement.DENY, answer, each.root)
        ]
        return all(answer.value is True for answer in answers), faults

    def _broken(self, subject: RuleSubject, root: ResourceId | None, rules: Sequence[Validation]) -> Iterator[Violation]:
        """The violations of these rules."""
        answers = self._answers(subject, [rule.expression for rule in rules])
        for rule, answer in zip(rules, answers, strict=True):
            name, enforcement = rule_name(self.policy, rule), ENFORCEMENTS[rule.action]
            if answer.value is False:
                yield Violation(name, enforcement, self._message(subject, rule), root)
            else:
                yield from self._fault(name, enforcement, answer, root)

    def _fault(self, rule: str, enforcement: Enforcement, answer: Answer, root: ResourceId | None) -> Iterator[Violation]:
        """The violation of a rule that has no answer; a note instead if the policy ignores that."""
        if isinstance(answer.value, bool):
            return
        fault = answer.fault or "it is neither true nor false"
        if self.policy.spec.failure_policy == "Fail":
            yield Violation(rule, enforcement, f"it cannot be evaluated: {fault}", root)
        else:
            about = f" for {root}" if root else ""
            self.notes.append(f"{rule} is ignored{about}: it cannot be evaluated: {fault}")

    def _message(self, subject: RuleSubject, rule: Validation) -> str:
        """The message of a violation: that of its expression, if it has one, and it makes text."""
        if rule.message_expression:
            (answer,) = self._answers(subject, [rule.message_expression])
            if isinstance(answer.value, str) and answer.value.strip():
                return answer.value.strip()[:LONGEST]
        return rule.message or "the rule is violated; its messageExpression has no text as its value"

    def _answers(self, subject: RuleSubject, expressions: Sequence[str]) -> Sequence[Answer]:
        return self.expressions.evaluate(subject, expressions) if expressions else ()

    def _about_plan(self, sets: Sequence[SetData]) -> RuleSubject:
        data = self.whole if len(sets) == len(self.plan.sets) else self.plan.plan_of(sets)
        return RuleSubject(RuleScope.PLAN, data, self.policy.spec.params, self.plan.now)

    def _about_set(self, each: SetData) -> RuleSubject:
        return RuleSubject(RuleScope.SET, each.data, self.policy.spec.params, self.plan.now)
