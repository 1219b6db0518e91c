"""Graph decision: the decision on a DynamoGraphDeployment that is created or changed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from engine.memo import Memo
from engine.resource import Body
from resources.admission import (
    graph_executor_rules,
    graph_field_rules,
    graph_objects,
    graph_provider_rules,
    graph_rules,
    graph_schedulers,
    graph_size_rules,
    graph_update_rules,
    graph_v1beta1,
    graph_warnings,
    json_rules,
    metadata_rules,
    size_rules,
)
from resources.admission.graph_defaults import absent_services, corrections, defaulted
from resources.admission.graph_objects import PodFindings
from resources.admission.graph_version import GraphVersion, read_deployment, read_graph_version
from resources.admission.request import Act, Decision, Request, unknown_field
from resources.admission.set_version import VERSION, spec_of
from resources.base.kinds import PODCLIQUESET
from resources.base.set_size import SetSizes
from resources.dynamo.model.form import PodForm
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.model.names import set_name
from resources.dynamo.versions.api_versions import ALPHA, BETA, is_beta
from resources.ports.configuration import Configuration
from resources.schema import pod_spec_rules
from resources.schema.dynamo import DynamoGraphDeployment
from resources.schema.issues import Issue, Located
from resources.schema.parse import without_repeats
from resources.schema.unknown_fields import unknown_paths

JudgeSet = Callable[[Request, Memo], Decision]
"""The decision on a PodCliqueSet, whatever other objects exist. The memo is that of the set."""
NO_FINDINGS: Final = PodFindings()
SPEC: Final = ("spec",)
"""Where issues of the set are that no field of the graph shows."""


class _Stored(Struct, frozen=True):
    """The stored version that an update is compared with."""

    version: GraphVersion
    graph: InferenceGraph


def decide(request: Request, configuration: Configuration, memo: Memo, judge_set: JudgeSet, sizes: SetSizes | None) -> Decision:
    """The decision on a creation or an update of a graph of either version.

    The body of the request is JSON, and its `apiVersion` and `kind` are right. `sizes`: those of its namespace, if they are known.
    """
    body, old = cast(Body, request.body), request.old
    if is_beta(old):
        request = replace(request, old=graph_v1beta1.alpha_of(old))
    if not is_beta(body):
        return _decide(request, configuration, memo, judge_set, sizes, ALPHA)

    def decide_alpha(alpha: Body, *, is_valid: bool) -> Decision:
        return _decide(replace(request, body=alpha), configuration, memo, judge_set, sizes, BETA, is_valid=is_valid)

    return graph_v1beta1.decided(body, decide_alpha)


def _decide(
    request: Request,
    configuration: Configuration,
    memo: Memo,
    judge_set: JudgeSet,
    sizes: SetSizes | None,
    api_version: str,
    *,
    is_valid: bool = True,
) -> Decision:
    """The decision on a graph as it is in v1alpha1; `api_version` is that of its object, whose own rules it keeps if `is_valid`.

    All issues are reported together, with these exceptions: if the graph does not have its shape, only that is reported; pods are not
    built from malformed parts; and only a graph without issues is judged by the PodCliqueSet that it would have, and compared with the
    stored one. What follows from the graph alone is computed once for each version of it.
    """
    known = memo.last(VERSION)
    old = _stored(request.old, known) if request.act is Act.UPDATE else None
    body = defaulted(cast(Body, request.body))
    version = read_graph_version(spec_of(body), known, old.version if old else None)
    memo.remember(VERSION, version)
    model, misshapen = read_deployment(body, version)
    findings = version.findings(old.version if old else None)
    malformed = tuple(filter(pod_spec_rules.is_fault, findings))
    of_graph = tuple(finding for finding in findings if not pod_spec_rules.is_fault(finding))
    unknown = (unknown_field(path) for path in unknown_paths(request.body, DynamoGraphDeployment))
    warnings = (
        *unknown,
        *absent_services(request.body),
        *(Located(str(correction), correction.path) for correction in corrections(request.body)),
    )
    if model is None:
        return Decision((*without_repeats(misshapen, malformed), *malformed), warnings, body=request.body, pods=of_graph)
    graph = version.graph_of(model.metadata, PodForm.FIRST if old else PodForm.CURRENT, api_version)
    pods = _pod_findings(graph, configuration) if not malformed else NO_FINDINGS
    issues = (*malformed, *_own_issues(request.act, model, graph, configuration))
    before, stored = (old.graph, old.version.spec) if old else (None, None)
    issues = (*issues, *graph_size_rules.issues(graph, version.spec, before, stored, configuration.limits, sizes))
    issues = (*issues, *graph_objects.without_repeats(_new_pod_issues(pods.issues, old, configuration), issues))
    warnings = (
        *warnings,
        *graph_warnings.warnings(graph),
        *graph_field_rules.warnings(graph),
        *graph_provider_rules.warnings(graph, configuration),
        *graph_warnings.mistyped(model, configuration),
        *pods.warnings,
    )
    if issues or not is_valid:
        return Decision(issues, warnings, body=body, pods=tuple(_unsaid(of_graph, issues)))
    decision = _decide_valid(old.graph if old else None, graph, configuration, judge_set)
    of_pods = (*of_graph, *graph_objects.without_repeats(decision.pods, of_graph))  # What is wrong is said once.
    return replace(decision, warnings=(*warnings, *decision.warnings), body=body, pods=tuple(_unsaid(of_pods, decision.issues)))


def _unsaid(findings: Iterable[Issue], issues: Iterable[Issue]) -> Iterator[Issue]:
    """The findings about pods of which no issue tells. Issues of the whole spec tell of none."""
    return graph_objects.without_repeats(findings, [issue for issue in issues if issue.path != SPEC])


def _pod_findings(graph: InferenceGraph, configuration: Configuration) -> PodFindings:
    settings = configuration.dynamo
    return graph.memo.recall("pod findings", (settings,), lambda: graph_objects.pod_findings(graph, settings))


def _new_pod_issues(issues: tuple[Issue, ...], old: _Stored | None, configuration: Configuration) -> tuple[Issue, ...]:
    """The issues of the pods, without restart policies that the stored graph has: it was admitted with them, and can be edited."""
    if old is None or not any(issue.message == graph_objects.ONLY_ALWAYS for issue in issues):
        return issues
    is_malformed = any(map(pod_spec_rules.is_fault, old.version.findings(None)))
    stored = _pod_findings(old.graph, configuration).issues if not is_malformed else ()
    return tuple(issue for issue in issues if issue.message != graph_objects.ONLY_ALWAYS or issue not in stored)


def _decide_valid(old: InferenceGraph | None, graph: InferenceGraph, configuration: Configuration, judge_set: JudgeSet) -> Decision:
    """The decision on a graph that has no issue of its own; `pods` is what an API server would refuse in the pods that are built for it."""
    notes = tuple(graph_warnings.notes(graph, configuration))
    pods = tuple(_refused_pods(graph, old, configuration))
    if issues := _new_set_issues(graph, old, configuration, judge_set):
        return Decision(issues, notes, pods=pods)
    if old is None:
        return Decision((), (*notes, *graph_field_rules.new_warnings(graph)), pods=pods)
    about_change = graph_update_rules.warnings(old, graph, replaces_set=graph_objects.is_replaced(old, graph, configuration))
    return Decision(tuple(graph_update_rules.issues(old, graph)), (*notes, *about_change), pods=pods)


def _refused_pods(graph: InferenceGraph, old: InferenceGraph | None, configuration: Configuration) -> Iterator[Issue]:
    """What an API server would refuse in the pods of a graph, and not in those of the stored one."""

    def refused_in(each: InferenceGraph) -> tuple[Issue, ...]:
        return each.memo.recall("refused pods", (configuration,), lambda: graph_objects.refused_pods(each, configuration))

    refused = refused_in(graph)
    admitted = refused_in(old) if old is not None and refused else ()
    return (issue for issue in refused if issue not in admitted)


def _new_set_issues(
    graph: InferenceGraph, old: InferenceGraph | None, configuration: Configuration, judge_set: JudgeSet
) -> tuple[Issue, ...]:
    """The issues of the set that a graph would have, without those that the set of the stored graph has as well."""
    issues = _set_issues(graph, configuration, judge_set)
    admitted = _set_issues(old, configuration, judge_set) if old is not None and issues else ()
    return tuple(graph_objects.of_set(graph, configuration, size_rules.without_smaller(issues, admitted)))


def _set_issues(graph: InferenceGraph, configuration: Configuration, judge_set: JudgeSet) -> tuple[Issue, ...]:
    """The issues of the set that a graph would have; none if it would have none."""
    planned = graph_objects.planned_set(graph, configuration)
    if planned is None:
        return ()
    request = Request(Act.CREATE, PODCLIQUESET.id(graph.namespace, set_name(graph)), planned.body)
    return planned.memo.recall("issues", (configuration,), lambda: judge_set(request, planned.memo).issues)


def _own_issues(act: Act, model: DynamoGraphDeployment, graph: InferenceGraph, configuration: Configuration) -> Iterator[Issue]:
    """The issues of the graph itself, besides those of its pods."""
    yield from metadata_rules.issues(model.metadata, namespaced=True)
    yield from graph.memo.recall("issues", (configuration,), lambda: tuple(_graph_issues(graph, configuration)))
    yield from graph_provider_rules.issues(graph, model.metadata.annotations or {})
    if act is Act.CREATE:
        yield from graph_objects.name_issues(graph)
        yield from graph_field_rules.new_issues(graph)


def _graph_issues(graph: InferenceGraph, configuration: Configuration) -> Iterator[Issue]:
    yield from graph_rules.issues(graph)
    yield from graph_field_rules.issues(graph)
    yield from graph_schedulers.issues(graph, configuration)
    yield from graph_executor_rules.issues(graph)


def _stored(old: Any, known: GraphVersion | None) -> _Stored | None:
    """The stored version that an update is compared with; None if it is not a valid DynamoGraphDeployment."""
    if not isinstance(old, Mapping) or any(json_rules.issues(old)):
        return None
    body = defaulted(old)
    version = read_graph_version(spec_of(body), known)
    model, _ = read_deployment(body, version)
    return _Stored(version, version.graph_of(model.metadata, PodForm.FIRST)) if model is not None else None
