"""Parse: bodies of our kinds into models, or into all the issues that stand in the way."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from engine.ids import Kind
from resources.base.kinds import PODCLIQUE, PODCLIQUESET, PODGANG, SCALING_GROUP, TOPOLOGY_BINDING
from resources.schema import pod_spec_rules
from resources.schema.issues import Fault, Issue, Rejected, shown
from resources.schema.meta import Root
from resources.schema.podclique import PodClique
from resources.schema.podcliqueset import PodCliqueSet
from resources.schema.podgang import PodGang
from resources.schema.rejection import rejection
from resources.schema.scaling_group import PodCliqueScalingGroup
from resources.schema.topology import ClusterTopologyBinding

MODELS: Final[Mapping[Kind, type[Root]]] = {
    PODCLIQUESET: PodCliqueSet,
    PODCLIQUE: PodClique,
    SCALING_GROUP: PodCliqueScalingGroup,
    TOPOLOGY_BINDING: ClusterTopologyBinding,
    PODGANG: PodGang,
}
"""The model of each kind that is ours."""


def parse(kind: Kind, body: Any, *, strict: bool = True) -> Root:
    """The model of a body. Raises `Rejected` with everything that is wrong with it.

    Strict, for manifests that somebody wrote: unknown fields are issues, the object must say which kind it is, and every field of a pod
    spec has its type; only what is not known in there is left to `unknown`.
    Otherwise, for live objects: a newer version of the CRD may have added fields, which are not looked at.
    """
    if strict and (wrong := tuple(mistaken(kind, body))):
        raise Rejected(wrong)
    deeper = tuple(issue for issue in pod_spec_rules.judged(kind, body) if issue.kind is not Fault.UNKNOWN) if strict else ()
    try:
        model = MODELS[kind].model_validate(body, extra="forbid" if strict else "ignore")
    except ValidationError as error:
        raise Rejected((*beside(rejection(error).issues, deeper), *deeper)) from None
    if deeper:
        raise Rejected(deeper)
    return model


def faults(kind: Kind, body: Any, *, strict: bool = True) -> tuple[Issue, ...]:
    """Everything that is wrong with a body; the same rules as `parse`."""
    try:
        parse(kind, body, strict=strict)
    except Rejected as rejected:
        return rejected.issues
    return ()


def unknown(kind: Kind, body: Any) -> tuple[Issue, ...]:
    """Fields in the pod specs of a body that are not known: kept, for a newer Kubernetes may have them, but worth a warning."""
    return tuple(issue for issue in pod_spec_rules.judged(kind, body) if issue.kind is Fault.UNKNOWN)


def beside(issues: tuple[Issue, ...], deeper: tuple[Issue, ...]) -> Iterator[Issue]:
    """The issues without those that are told better: the model looks at the little of a pod spec that we read ourselves."""
    told = {issue.path for issue in deeper}
    return (issue for issue in issues if issue.path not in told)


def mistaken(kind: Kind, body: Any) -> Iterator[Issue]:
    """Whether the object says that it is something else; then no other complaint makes sense."""
    if isinstance(body, Mapping):
        for field, expected in (("apiVersion", kind.api_version), ("kind", kind.name)):
            if body.get(field) != expected:
                yield Issue((field,), Fault.MALFORMED, f'must be "{expected}", got {shown(body.get(field))}')
