"""Pod findings: which of the things that are wrong with the pods of a manifest are faults, and which are warnings; its other faults."""

from collections.abc import Sequence
from typing import Final

from engine.ids import Kind
from engine.memo import Memo
from engine.resource import Body
from enginectl.base.options import FieldValidation
from enginectl.wiring.configuration import Wiring
from resources.admission.set_version import certain_issues, set_faults, version_of
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUESET, version_of_kind
from resources.schema.issues import ErrorType, Issue
from resources.schema.parse import faults, model_of
from resources.schema.pod_spec_rules import is_fault
from resources.schema.unknown_fields import ServedFields, nearest_field, suggestion, with_suggestion

MOST_COMPARED: Final = 500
"""The largest number of unknown fields of a manifest whose names are compared with known ones; all others are faults."""


def judge_pods(
    findings: Sequence[Issue], validation: FieldValidation, served: ServedFields | None = None
) -> tuple[tuple[Issue, ...], tuple[Issue, ...]]:
    """What admission finds about pods, as faults and as warnings.

    Strict: what the API server would refuse is a fault, and so is an unknown field; without a cluster that says what it serves, only if the
    name of a known field is near, because a newer Kubernetes may have it.
    """
    if validation is FieldValidation.IGNORE:
        return (), ()
    faults: list[Issue] = []
    warnings: list[Issue] = []
    compared = 0
    for finding in findings:
        if finding.type is not ErrorType.UNKNOWN:
            faults.append(finding)
        elif served is None or not served.has(finding):
            compared += 1
            name = suggestion(finding, served) if compared <= MOST_COMPARED else ""
            is_wrong = name or served is not None or compared > MOST_COMPARED
            (faults if is_wrong else warnings).append(with_suggestion(finding, name))
    return (tuple(faults), tuple(warnings)) if validation is FieldValidation.STRICT else ((), (*faults, *warnings))


def malformed(kind: Kind, body: Body, memo: Memo) -> tuple[Issue, ...]:
    """Why a manifest cannot be read: it does not have the shape of its kind, or has unknown fields."""
    if kind == DYNAMO_GRAPH:
        from resources.admission.graph_version import graph_faults  # Most files have no graph.

        return graph_faults(body, memo)
    return set_faults(body, memo) if kind == PODCLIQUESET else faults(kind, body)


def manifest_faults(kind: Kind, body: Body, memo: Memo) -> tuple[Issue, ...]:
    """The faults of a manifest because of which it is not admitted at all.

    Each unknown field has the nearest name of one that the kind has at that place.
    """
    issues, kind = malformed(kind, body, memo), version_of_kind(kind, body)
    return (*(_with_nearest(kind, issue) for issue in issues[:MOST_COMPARED]), *issues[MOST_COMPARED:])


def further_faults(kind: Kind, body: Body, memo: Memo, *, wiring: Wiring, is_creation: bool) -> tuple[Issue, ...]:
    """The faults that admission would find in a manifest, told together with those of `manifest_faults`, and those of its pods.

    Unless it is known that the manifest is a creation: those only that hold whatever is stored in the cluster and configured there.
    """
    from resources.admission.admit import admit  # Few files have faults.
    from resources.admission.request import Act, Request

    if is_creation:
        request = Request(Act.CREATE, kind.id(body["metadata"].get("namespace", ""), body["metadata"]["name"]), body)
        decision = admit(request, wiring.configuration, memo=memo)
        issues, pods = decision.issues, decision.pods
    elif kind == PODCLIQUESET:
        issues, pods = certain_issues(body, memo), version_of(body, memo).pods.findings
    elif kind == DYNAMO_GRAPH:
        from resources.admission.graph_version import pod_findings_of

        issues, pods = (), pod_findings_of(body, memo)
    else:
        issues, pods = (), ()
    return (*issues, *judge_pods([finding for finding in pods if not is_fault(finding)], wiring.validation)[0])


def _with_nearest(kind: Kind, issue: Issue) -> Issue:
    return with_suggestion(issue, nearest_field(issue.path, model_of(kind))) if issue.type is ErrorType.UNKNOWN else issue
