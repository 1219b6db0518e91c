"""PlanPolicy: rules about plans, as users write them in files. Its fields are those of a ValidatingAdmissionPolicy where that has them."""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError, model_validator

from resources.schema.issues import ErrorType, Issue, Rejected, duplicates, rejection
from resources.schema.unknown_fields import nearest_field, with_suggestion
from resources.schema.wire import Opaque, Seq, Wire, broken

GROUP: Final = "engine.grove.io"
KIND: Final = "PlanPolicy"
API_VERSION: Final = f"{GROUP}/v1alpha1"

Expression = Annotated[str, Field(min_length=1, max_length=20_000)]
"""An expression in CEL."""
RuleName = Annotated[str, Field(max_length=63, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")]
Message = Annotated[str, Field(max_length=1_000)]


class RuleScope(StrEnum):
    """What an expression sees besides `now` and `params`."""

    PLAN = "Plan"
    """`plan`."""
    SET = "Set"
    """`set`."""

    @property
    def variable(self) -> str:
        """The name of the variable."""
        return self.value.lower()


class MatchCondition(Wire):
    """What a set must fulfil for the policy to judge it."""

    name: RuleName
    """The name of the condition; unique within the policy."""
    expression: Expression
    """True for the sets that the policy judges. It sees `set`, `now` and `params`."""


class Validation(Wire):
    """One rule."""

    name: RuleName
    """The name of the rule; unique within the policy."""
    action: Literal["Deny", "Warn", "Audit"] = "Deny"
    """What follows when the rule is violated."""
    scope: Literal["Plan", "Set"] = "Plan"
    """What is judged: the plan as a whole, or each of its sets."""
    expression: Expression
    """True if the rule is fulfilled. It sees `plan` or `set`, by its scope, and `now` and `params`."""
    message: Message = ""
    """What is shown when the rule is violated."""
    message_expression: Annotated[str, Field(max_length=20_000)] = ""
    """The message as an expression. If its value is no text, `message` is shown."""


class PlanPolicySpec(Wire):
    """The rules of one policy."""

    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    """What an expression means that cannot be evaluated: a violation, or a note."""
    params: Opaque = Field(default_factory=dict)
    """Values for the expressions."""
    match_conditions: Annotated[Seq[MatchCondition], Field(max_length=64)] = ()
    """The policy judges the sets that fulfil all of these: without any, all sets."""
    validations: Annotated[Seq[Validation], Field(min_length=1, max_length=256)]
    """The rules. At least one."""

    @model_validator(mode="after")
    def _is_told(self) -> "PlanPolicySpec":
        for index, validation in enumerate(self.validations):
            if not (validation.message or validation.message_expression):
                raise broken("either this or messageExpression says what is wrong", "FieldValueRequired", ("validations", index, "message"))
        return self


class PolicyMeta(Wire):
    """The metadata of a policy."""

    name: RuleName
    """The name of the policy: its rules are called `policy/rule`."""
    labels: dict[str, str] | None = None
    """They mean nothing to the engine."""
    annotations: dict[str, str] | None = None
    """They mean nothing to the engine."""


class PlanPolicy(Wire):
    """PlanPolicy is a set of rules that a plan and its forecast must fulfil."""

    api_version: Literal["engine.grove.io/v1alpha1"]
    """The version of these fields."""
    kind: Literal["PlanPolicy"]
    """The kind of the document."""
    metadata: PolicyMeta
    """The name of the policy."""
    spec: PlanPolicySpec
    """The rules."""


def plan_policy(body: Any) -> PlanPolicy:
    """The policy of a document. Raises `Rejected` with every issue that does not depend on the meaning of expressions.

    A field that does not exist is named with the nearest one.
    """
    try:
        return PlanPolicy.model_validate(body)
    except ValidationError as error:
        issues = rejection(error).issues
    named = (with_suggestion(each, nearest_field(each.path, PlanPolicy)) if each.type is ErrorType.UNKNOWN else each for each in issues)
    raise Rejected(named)


def repeated_names(policy: PlanPolicy) -> tuple[Issue, ...]:
    """An issue for each rule or condition whose name another one of the policy has: both can be waived by their names."""
    conditions = ((("spec", "matchConditions", index, "name"), each.name) for index, each in enumerate(policy.spec.match_conditions))
    rules = ((("spec", "validations", index, "name"), each.name) for index, each in enumerate(policy.spec.validations))
    return tuple(duplicates((*conditions, *rules)))
