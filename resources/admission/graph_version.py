"""GraphVersion: one version of a DynamoGraphDeployment, read once for admission, its PodCliqueSet and its other objects."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from msgspec import Struct, field
from pydantic import Field, ValidationError

from engine.ids import ResourceId
from engine.memo import Memo, is_equal
from engine.resource import Body
from resources.admission import graph_v1beta1, json_rules
from resources.admission.graph_defaults import defaulted
from resources.admission.metadata_rules import GENERATED_BASE, GENERATED_SUFFIX
from resources.admission.set_version import VERSION, SetVersion, read_object, spec_of, version_of
from resources.base.kinds import DYNAMO_GRAPH
from resources.base.labels import VLLM_EXECUTORS
from resources.dynamo.backends.executor import executor_record
from resources.dynamo.model.form import PodForm, with_form
from resources.dynamo.model.graph import InferenceGraph, read_graph
from resources.dynamo.objects.podcliqueset import PlannedSet
from resources.dynamo.versions.api_versions import ALPHA, is_beta
from resources.dynamo.versions.converted import as_alpha
from resources.dynamo.versions.paths import component_paths
from resources.schema.dynamo import DynamoGraphDeployment, DynamoGraphSpec
from resources.schema.issues import ErrorType, Issue, rejection
from resources.schema.meta import ObjectMeta
from resources.schema.parse import kind_issues, without_repeats
from resources.schema.pod_spec_rules import below, is_fault, new_parts, object_findings
from resources.schema.unknown_fields import unknown_paths
from resources.schema.wire import Wire

UNREAD: Final = DynamoGraphSpec()
"""Stands for a spec whose faults are known, while the rest of its object is read."""


class GraphVersion(Struct, frozen=True, eq=False, dict=True):
    """The `spec` of a graph with its defaults: parsed and, when it is asked for, its pods judged; each once."""

    spec: Any
    """The JSON."""
    parsed: DynamoGraphSpec | None
    """The model; None if the spec does not have its shape."""
    malformed: tuple[Issue, ...] = ()
    """Why it does not have its shape."""
    memo: Memo = field(default_factory=Memo)

    @cached_property
    def all_findings(self) -> tuple[Issue, ...]:
        """What an API server would say of the parts of pods in it."""
        return object_findings(DYNAMO_GRAPH, {"spec": self.spec})

    def findings(self, old: "GraphVersion | None") -> tuple[Issue, ...]:
        """The same without the parts that the old version has as well: older rules may have admitted them."""
        if old is None:
            return self.all_findings
        new = new_parts(DYNAMO_GRAPH, {"spec": self.spec}, {"spec": old.spec})
        return below(new, self.all_findings) if new else ()

    def graph(self, id: ResourceId, annotations: Mapping[str, str], api_version: str = ALPHA) -> InferenceGraph:
        """The graph of this name; the same object for the same annotations. The spec has its shape.

        A record of executors that are chosen without it as well says nothing: the graph is the same object with and without it.
        """
        assert self.parsed is not None
        parsed = self.parsed
        record, plain = annotations.get(VLLM_EXECUTORS), {key: value for key, value in annotations.items() if key != VLLM_EXECUTORS}
        unrecorded = self.memo.recall("graph", (id, plain, api_version), lambda: read_graph(id, plain, parsed, api_version))
        if not record or executor_record(unrecorded) == record:
            return unrecorded
        facts = (id, annotations, api_version)
        return self.memo.recall("recorded graph", facts, lambda: read_graph(id, annotations, parsed, api_version))

    def graph_of(self, metadata: ObjectMeta, unrecorded: PodForm, api_version: str = ALPHA) -> InferenceGraph:
        """The graph with these metadata; `unrecorded` is the form of its pods if none is recorded. A name that is to be generated counts
        with its generated suffix."""
        base = (metadata.generate_name or "")[:GENERATED_BASE]
        name = metadata.name or (f"{base}{'x' * GENERATED_SUFFIX}" if base else "")
        id = DYNAMO_GRAPH.id(metadata.namespace or "", name)
        return self.graph(id, with_form(metadata.annotations or {}, unrecorded), api_version)


def read_graph_version(spec: Any, *known: GraphVersion | None) -> GraphVersion:
    """The version of a spec that is JSON and has its defaults; one of the known ones if it has the same spec."""
    for version in known:
        if version is not None and is_equal(version.spec, spec):
            return version
    try:
        return GraphVersion(spec, _OfSpec.model_validate({"spec": spec}, extra="ignore").spec)
    except ValidationError as error:
        return GraphVersion(spec, None, rejection(error).issues)


class _OfSpec(Wire):
    """The part of a graph that a version is read from."""

    spec: DynamoGraphSpec = Field(default_factory=DynamoGraphSpec)


def read_deployment(body: Any, version: GraphVersion) -> tuple[DynamoGraphDeployment | None, tuple[Issue, ...]]:
    """The model of a graph with this version of its spec, or None; and what is malformed in it."""
    return read_object(DynamoGraphDeployment, body, version.parsed, UNREAD, version.malformed)


def version_of_graph(body: Body, memo: Memo) -> GraphVersion:
    """The version of a manifest of a graph of v1alpha1; it is remembered as that of the graph."""
    version = read_graph_version(spec_of(defaulted(body)), memo.last(VERSION))
    memo.remember(VERSION, version)
    return version


def pod_findings_of(body: Body, memo: Memo) -> tuple[Issue, ...]:
    """What an API server would say of the pods of a manifest of a graph that can be read."""
    if not is_beta(body):
        return version_of_graph(body, memo).all_findings
    return tuple(graph_v1beta1.located(version_of_graph(as_alpha(body), memo).all_findings, component_paths(body)))


def graph_faults(body: Body, memo: Memo) -> tuple[Issue, ...]:
    """Why a manifest of a graph cannot be read; its unknown fields are faults. What is read is remembered as that of the graph."""
    if not is_beta(body):
        return _alpha_faults(body, memo)
    if not_json := tuple(json_rules.issues(body)):
        return tuple(graph_v1beta1.named(not_json, component_paths(body)))
    complete = graph_v1beta1.defaulted_components(body)
    paths = component_paths(complete)
    unknown = tuple(Issue(paths.named(path), ErrorType.UNKNOWN) for path in unknown_paths(body, graph_v1beta1.MODEL))
    model, malformed = graph_v1beta1.shape(complete)
    if model is None:
        return (*unknown, *graph_v1beta1.named(malformed, paths))
    known = {issue.path for issue in unknown}
    others = graph_v1beta1.located(_alpha_faults(as_alpha(complete), memo), paths)
    return (*unknown, *(issue for issue in others if issue.path not in known))


def _alpha_faults(body: Body, memo: Memo) -> tuple[Issue, ...]:
    if wrong_kind := tuple(kind_issues(DYNAMO_GRAPH, body)):
        return wrong_kind
    version = version_of_graph(body, memo)
    unknown = (Issue(path, ErrorType.UNKNOWN) for path in unknown_paths(body, DynamoGraphDeployment))
    of_pods = tuple(filter(is_fault, version.all_findings))
    return (*without_repeats((*unknown, *read_deployment(defaulted(body), version)[1]), of_pods), *of_pods)


def set_version(planned: PlannedSet) -> SetVersion:
    """The version of the PodCliqueSet that a graph should have."""
    return planned.memo.last(VERSION) or version_of(planned.body, planned.memo)


def update_memo(planned: PlannedSet) -> Memo:
    """What is remembered of an update of a stored set to the one that a graph should have."""
    memo = planned.memo.scope("update")
    memo.remember(VERSION, set_version(planned))
    return memo
