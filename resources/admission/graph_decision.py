"""Graph decision: the decision on a DynamoGraphDeployment that is created or changed."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from engine.ids import ResourceId
from engine.resource import Body
from resources.admission import (
    graph_objects,
    graph_rules,
    graph_schedulers,
    graph_update_rules,
    graph_warnings,
    json_rules,
    metadata_rules,
)
from resources.admission.graph_defaults import corrections, defaulted
from resources.admission.graph_objects import PodFindings
from resources.admission.metadata_rules import GENERATED_BASE, GENERATED_SUFFIX
from resources.admission.request import Act, Decision, Request
from resources.base.fields import mapping
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUESET
from resources.dynamo.model.graph import InferenceGraph, read_graph
from resources.ports.configuration import Configuration
from resources.schema import pod_spec_rules
from resources.schema.issues import Issue, Located, Rejected
from resources.schema.meta import ApiObject
from resources.schema.parse import parse, without_repeats

JudgeSet = Callable[[Request], Decision]
"""The decision on a PodCliqueSet, whatever other objects exist."""
NO_FINDINGS: Final = PodFindings()


def decide(request: Request, configuration: Configuration, judge_set: JudgeSet) -> Decision:
    """The decision on a creation or an update. The body of the request is JSON, and its `apiVersion` and `kind` are right.

    All issues are reported together, with these exceptions: if the graph does not have its shape, only that is reported; pods are not
    built from malformed parts; and only a graph without issues is judged by the PodCliqueSet that it would have, and compared with the
    stored one.
    """
    old = _stored(request.old) if request.act is Act.UPDATE else None
    body = defaulted(cast(Body, request.body))
    findings = pod_spec_rules.object_findings(DYNAMO_GRAPH, body, old.body if old else None)
    malformed = tuple(filter(pod_spec_rules.is_fault, findings))
    of_graph = tuple(finding for finding in findings if not pod_spec_rules.is_fault(finding))
    read_otherwise = tuple(Located(str(correction), correction.path) for correction in corrections(request.body))
    try:
        model = parse(DYNAMO_GRAPH, body, strict=False)
    except Rejected as rejected:
        return Decision((*without_repeats(rejected.issues, malformed), *malformed), read_otherwise, body=request.body, pods=of_graph)
    graph = _graph(body)
    pods = graph_objects.pod_findings(graph, configuration.dynamo) if not malformed else NO_FINDINGS
    issues = (*malformed, *_own_issues(request.act, model, graph, configuration))
    issues = (*issues, *graph_objects.without_repeats(pods.issues, issues))
    warnings = (*read_otherwise, *graph_warnings.warnings(graph), *graph_warnings.mistyped(graph, configuration), *pods.warnings)
    if issues:
        return Decision(issues, warnings, body=body, pods=of_graph)
    return _decide_valid(old, graph, configuration, judge_set, warnings, of_graph)


def _decide_valid(
    old: InferenceGraph | None,
    graph: InferenceGraph,
    configuration: Configuration,
    judge_set: JudgeSet,
    warnings: tuple[str, ...],
    of_graph: tuple[Issue, ...],
) -> Decision:
    """The decision on a graph that has no issue of its own. `of_graph` is what would keep its pods from being created.

    What is wrong with its pods is said once: where the user wrote it, if it is found there.
    """
    warnings = (*warnings, *graph_warnings.notes(graph, configuration))
    planned = graph_objects.planned_set(graph, configuration)
    before = graph_objects.planned_set(old, configuration) if old else None
    is_said = any(finding.pods_only for finding in of_graph)
    pods = of_graph if is_said else (*of_graph, *_refused_pods(graph, old, configuration))
    if issues := _set_issues(graph, planned, before, judge_set):
        return Decision(issues, warnings, body=graph.body, pods=pods)
    if old is None:
        return Decision((), warnings, body=graph.body, pods=pods)
    replaces_set = graph_objects.is_replaced(before, planned)
    about_change = graph_update_rules.warnings(old, graph, replaces_set=replaces_set)
    return Decision(tuple(graph_update_rules.issues(old, graph)), (*warnings, *about_change), body=graph.body, pods=pods)


def _refused_pods(graph: InferenceGraph, old: InferenceGraph | None, configuration: Configuration) -> Iterator[Issue]:
    """What an API server would refuse in the pods of a graph, and not in those of the stored one."""
    refused = graph_objects.refused_pods(graph, configuration.dynamo)
    admitted = graph_objects.refused_pods(old, configuration.dynamo) if old is not None and refused else ()
    return (issue for issue in refused if issue not in admitted)


def _set_issues(graph: InferenceGraph, planned: Body | None, before: Body | None, judge_set: JudgeSet) -> tuple[Issue, ...]:
    """The issues of the set that a graph would have, without those that the set of the stored graph has as well."""

    def issues_of(body: Body | None) -> tuple[Issue, ...]:
        return judge_set(Request(Act.CREATE, PODCLIQUESET.id(graph.namespace, graph.name), body)).issues if body is not None else ()

    issues = issues_of(planned)
    admitted = issues_of(before) if issues else ()
    return tuple(graph_objects.under(("spec",), PODCLIQUESET.name, (issue for issue in issues if issue not in admitted)))


def _own_issues(act: Act, model: ApiObject, graph: InferenceGraph, configuration: Configuration) -> Iterator[Issue]:
    """The issues of the graph itself, besides those of its pods."""
    yield from metadata_rules.issues(model.metadata, namespaced=True)
    yield from graph_rules.issues(graph)
    yield from graph_schedulers.issues(graph, configuration)
    yield from graph_objects.count_issues(graph)
    if act is Act.CREATE:
        yield from graph_objects.name_issues(graph)


def _stored(old: Any) -> InferenceGraph | None:
    """The stored version that an update is compared with; None if it is not a valid DynamoGraphDeployment."""
    if not isinstance(old, Mapping) or any(json_rules.issues(old)):
        return None
    body = defaulted(old)
    try:
        parse(DYNAMO_GRAPH, body, strict=False)
    except Rejected:
        return None
    return _graph(body)


def _graph(body: Body) -> InferenceGraph:
    """The graph of a valid body. A name that is to be generated counts with its generated suffix."""
    metadata = mapping(body.get("metadata"))
    base = str(metadata.get("generateName") or "")[:GENERATED_BASE]
    name = str(metadata.get("name") or "") or (f"{base}{'x' * GENERATED_SUFFIX}" if base else "")
    return read_graph(ResourceId(DYNAMO_GRAPH.group, DYNAMO_GRAPH.name, str(metadata.get("namespace") or ""), name), body)
