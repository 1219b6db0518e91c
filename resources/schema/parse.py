"""Parse: converts bodies of the kinds that we define to models, and reports what is wrong with them as issues."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from engine.ids import Kind
from resources.base import kinds
from resources.schema import pod_spec_rules
from resources.schema.child_kinds import PodClique, PodCliqueScalingGroup, PodGang
from resources.schema.issues import ErrorType, Issue, Rejected, rejection, shown
from resources.schema.meta import ApiObject
from resources.schema.podcliqueset import PodCliqueSet
from resources.schema.topology import ClusterTopologyBinding

MODELS: Final[Mapping[Kind, type[ApiObject]]] = {
    kinds.PODCLIQUESET: PodCliqueSet,
    kinds.PODCLIQUE: PodClique,
    kinds.SCALING_GROUP: PodCliqueScalingGroup,
    kinds.TOPOLOGY_BINDING: ClusterTopologyBinding,
    kinds.PODGANG: PodGang,
}
"""The model of each kind that we define, except those of Dynamo: graphs are as large as all others together."""


def model_of(kind: Kind) -> type[ApiObject]:
    """The model of a kind that we define."""
    if kind == kinds.DYNAMO_GRAPH_V1BETA1:
        from resources.schema.dynamo_v1beta1 import DynamoGraphDeploymentV1Beta1

        return DynamoGraphDeploymentV1Beta1
    if kind == kinds.SCALING_ADAPTER:
        from resources.schema.scaling_adapter import DynamoGraphDeploymentScalingAdapter

        return DynamoGraphDeploymentScalingAdapter
    if kind != kinds.DYNAMO_GRAPH:
        return MODELS[kind]
    from resources.schema.dynamo import DynamoGraphDeployment

    return DynamoGraphDeployment


def parse(kind: Kind, body: Any, *, strict: bool = True) -> ApiObject:
    """The model of a body. Raises `Rejected` with all its issues.

    Strict (for manifests): unknown fields are issues, `apiVersion` and `kind` must match, and the fields of pod specs must have their
    types; what else is wrong with pod specs is left to admission.
    Not strict (for live objects): unknown fields are ignored, because a newer version of the CRD may have added them.
    """
    if strict and (wrong_kind := tuple(kind_issues(kind, body))):
        raise Rejected(wrong_kind)
    findings = pod_spec_rules.object_findings(kind, body) if strict else ()
    pod_issues = tuple(filter(pod_spec_rules.is_fault, findings))
    try:
        model = model_of(kind).model_validate(body, extra="forbid" if strict else "ignore")
    except ValidationError as error:
        raise Rejected((*without_repeats(rejection(error).issues, pod_issues), *pod_issues)) from None
    if pod_issues:
        raise Rejected(pod_issues)
    return model


def faults(kind: Kind, body: Any, *, strict: bool = True) -> tuple[Issue, ...]:
    """The issues of a body, by the same rules as `parse`; empty if it is valid."""
    try:
        parse(kind, body, strict=strict)
    except Rejected as rejected:
        return rejected.issues
    return ()


def without_repeats(issues: Iterable[Issue], pod_issues: tuple[Issue, ...]) -> Iterator[Issue]:
    """The issues of the model without those that `pod_spec_rules` reports as well, in Kubernetes' words."""
    reported = {issue.path for issue in pod_issues}
    return (issue for issue in issues if issue.path not in reported)


def kind_issues(kind: Kind, body: Any) -> Iterator[Issue]:
    """An issue for each of `apiVersion` and `kind` that is not that of `kind`: then no other rule applies. None if the body is no map."""
    if isinstance(body, Mapping):
        for field, expected in (("apiVersion", kind.api_version), ("kind", kind.name)):
            if body.get(field) != expected:
                yield Issue((field,), ErrorType.MALFORMED, f'must be "{expected}", got {shown(body.get(field))}')
