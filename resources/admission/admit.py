"""Admit: decides admission requests, for the webhook, the preview and the sandbox."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, reduce
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import Kind
from engine.memo import Memo
from engine.paths import get
from engine.report.printable import clipped
from engine.resource import Body
from resources.admission import (
    annotation_rules,
    computable_rules,
    create_rules,
    dependency_rules,
    json_rules,
    managed_rules,
    size_rules,
    topology_rules,
    update_rules,
)
from resources.admission.annotations import written_keys
from resources.admission.defaults import defaulted
from resources.admission.managed_rules import Protection
from resources.admission.request import Act, Decision, Request, unknown_field
from resources.admission.set_version import STORED, VERSION, SetVersion, read_set, read_version, spec_of
from resources.base import labels
from resources.base.fields import mapping
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUESET, SCALING_ADAPTER, TOPOLOGY_BINDING, version_of_kind
from resources.model.domain import specified
from resources.model.gang_scheduling import placed_one_by_one, without_gangs
from resources.ports.configuration import Configuration
from resources.ports.fabric import SpecifiedSet, WrittenKeys
from resources.ports.references import NoReferences, References
from resources.ports.scheduler import Scheduler
from resources.schema import pod_spec_rules
from resources.schema.issues import MAX_TEXT, Issue, Located, Rejected
from resources.schema.parse import kind_issues, parse, without_repeats
from resources.schema.podcliqueset import PodCliqueSet, SetTemplate
from resources.schema.topology import ClusterTopologyBinding
from resources.schema.unknown_fields import unknown_paths

NO_REFERENCES: Final = NoReferences()
UNPROTECTED: Final = Protection()

Decide = Callable[[Request, Configuration, References, Memo], Decision]


def admit(
    request: Request,
    configuration: Configuration,
    references: References = NO_REFERENCES,
    protection: Protection = UNPROTECTED,
    memo: Memo | None = None,
) -> Decision:
    """The decision on a request. Never raises, whatever the object is. `memo`: what is remembered of the object of the request.

    All issues are reported together, with these exceptions: if the object is not JSON or does not have the shape of its kind, only that
    is reported; an update is compared with the stored object only if it has no issue of its own; and topology rules stop at the first
    rule that fails (`topology_rules`).
    """
    if request.subresource or request.act is Act.CONNECT:
        return Decision(tuple(_scale_issues(request, configuration, references)), body=request.body)
    decide = BY_KIND.get((request.id.group, request.id.kind))
    decision = (
        decide(request, configuration, references, memo or Memo()) if decide else managed_rules.decide(request, references, protection)
    )
    warnings = {(str(each), each.path if isinstance(each, Located) else ()): each for each in map(_clipped, decision.warnings)}
    return replace(decision, warnings=tuple(warnings.values()), denial=clipped(decision.denial, MAX_TEXT))


def _scale_issues(request: Request, configuration: Configuration, references: References) -> Iterator[Issue]:
    """The issues of a change of `scale`; every other subresource has none."""
    is_scale = request.subresource == "scale" and request.act is Act.UPDATE
    if is_scale and isinstance(request.body, Mapping) and isinstance(request.old, Mapping):
        if request.resource == SCALING_ADAPTER.plural:
            yield from _adapter_issues(request, configuration, references)
            return
        sizes = references.sizes(request.id.namespace)
        yield from size_rules.scale_issues(request.id, request.resource, request.body, request.old, configuration.limits, sizes)


def _adapter_issues(request: Request, configuration: Configuration, references: References) -> Iterator[Issue]:
    """The issues of the replicas of a scaling adapter, or of its `scale`."""
    from resources.admission import graph_size_rules  # Only where there are graphs.

    old, new = cast(Body, request.old), cast(Body, request.body)
    yield from graph_size_rules.scale_issues(request.id.name, new, old, configuration.limits, references.sizes(request.id.namespace))


def _clipped(warning: str) -> str:
    text = clipped(warning, MAX_TEXT)
    return Located(text, warning.path) if isinstance(warning, Located) else text


class _SetInHand(Struct, frozen=True, eq=False, dict=True):
    """One version of a set with its object."""

    body: Body
    """With its defaults."""
    model: PodCliqueSet
    version: SetVersion

    @property
    def template(self) -> SetTemplate:
        """Its `spec.template`."""
        return self.model.spec.template

    @cached_property
    def specified(self) -> SpecifiedSet:
        """What fabrics read of it."""
        return specified(self.model)

    @cached_property
    def written(self) -> tuple[WrittenKeys, ...]:
        """The keys of annotations and labels in it, also those in places for which the model has no field."""
        return written_keys(self.body)


def _decide_set(request: Request, configuration: Configuration, references: References, memo: Memo) -> Decision:
    """The decision on a PodCliqueSet. While it is being deleted every change is admitted, so that its finalizers can be removed."""
    if request.act is Act.DELETE or _is_terminating(request.old):
        return Decision(body=request.body)
    if malformed := _shape_issues(PODCLIQUESET, without_spec(request.body) if isinstance(request.body, Mapping) else request.body):
        return Decision(malformed, body=request.body)
    known = memo.last(VERSION)
    old = _stored(request.old, known, memo.last(STORED)) if request.act is Act.UPDATE else None
    body, version = _read(cast(Body, request.body), old, known)
    memo.remember(VERSION, version)
    if old is not None and old.version is not version:
        memo.remember(STORED, old.version)
    if version.not_json:
        return Decision(version.not_json, body=request.body)
    model, malformed = read_set(body, version)
    findings = version.findings(old.version if old else None)
    pod_issues = tuple(filter(pod_spec_rules.is_fault, findings))
    pods = tuple(finding for finding in findings if not pod_spec_rules.is_fault(finding))
    unknown = tuple(unknown_field(path) for path in unknown_paths(request.body, PodCliqueSet))
    if model is None:
        return Decision((*without_repeats(malformed, pod_issues), *pod_issues), unknown, body=request.body, pods=pods)
    new = _SetInHand(body, model, version)
    pods = (*pods, *dependency_rules.added_name_issues(new.template))
    if request.act is Act.CREATE:
        new = _with_defaults_of_fabrics(new, configuration)
        issues = (*pod_issues, *_creation_issues(new, configuration, references))
        from_topology = topology_rules.warnings(new.template, references, enabled=configuration.topology)
    else:
        issues = (*pod_issues, *_update_issues(old, new, configuration, references))
        from_topology = update_rules.warnings(
            old.template if old else new.template, new.template, references, topology=configuration.topology
        )
    issues = (*issues, *_size_issues(request, new.body, configuration, references))
    if old and not issues:
        scheduler = configuration.default_scheduler
        issues = tuple(update_rules.issues(old.template, new.template, references, topology=configuration.topology, scheduler=scheduler))
    from_domains = (*annotation_rules.domain_warnings(new.specified, new.written, configuration),)
    from_removal = (*annotation_rules.removal_warnings(new.written),)
    of_numbers = create_rules.zero_warnings(request.body)
    of_template = (
        *of_numbers,
        *create_rules.warnings(new.template),
        *create_rules.sharing_warnings(new.template, request.id.namespace, references),
    )
    from_numbers = update_rules.kept_number_warnings(old.model, new.model, mapping(new.body.get("metadata"))) if old else ()
    warnings = (*unknown, *of_template, *from_topology, *from_domains, *from_removal, *from_numbers)
    warnings = (*warnings, *_plug_in_warnings(new, configuration, references))
    warnings = (*warnings, *annotation_rules.mistyped_key_warnings(new.written, configuration, besides=warnings))
    gangs = _unscheduled_gangs(new, configuration) if request.act is Act.CREATE else ""
    return Decision(issues, warnings, body=new.body, pods=tuple(without_repeats(pods, issues)), gangs=gangs)


def _read(body: Body, old: _SetInHand | None, known: SetVersion | None) -> tuple[Body, SetVersion]:
    """The set with its defaults, and its version; on an update, with what it keeps of the stored one."""
    if old is None:
        body = defaulted(body)
        return body, read_version(spec_of(body), known)
    updated = defaulted(body, old.body)
    if known is None:
        return updated, read_version(spec_of(updated), old.version)
    return updated, read_version(spec_of(defaulted(body)), known, old.version).keeping(spec_of(updated))


def _stored(old: Any, *known: SetVersion | None) -> _SetInHand | None:
    """The stored version that an update is compared with; None if it is not a valid PodCliqueSet."""
    if not isinstance(old, Mapping) or any(json_rules.issues(without_spec(old))):
        return None
    body = defaulted(old)
    version = read_version(spec_of(body), *known)
    model, _ = read_set(body, version)
    return _SetInHand(body, model, version) if model is not None else None


def _with_defaults_of_fabrics(new: _SetInHand, configuration: Configuration) -> _SetInHand:
    """A new set with what the fabrics add to it."""
    body = reduce(lambda body, fabric: fabric.with_defaults(body), configuration.fabrics, new.body)
    if body is new.body:
        return new
    version = read_version(spec_of(body), new.version)
    model, _ = read_set(body, version)
    return _SetInHand(body, model or new.model, version)


def _size_issues(request: Request, body: Body, configuration: Configuration, references: References) -> Iterator[Issue]:
    """What makes a set too large, alone or with the others of its namespace. What is no object counts as stored with nothing in it."""
    namespace = request.id.namespace or str(get(body, ("metadata", "namespace")) or "")
    before = (request.old if isinstance(request.old, Mapping) else {}) if request.act is Act.UPDATE else None
    return size_rules.set_issues(body, before, namespace, configuration.limits, references.sizes(namespace))


def own_issues(model: PodCliqueSet, version: SetVersion, configuration: Configuration) -> Iterator[Issue]:
    """The issues of one version of a set by itself, whether it is created or changed."""
    yield from create_rules.metadata_issues(model)
    yield from version.problems(configuration)
    yield from version.refused
    yield from create_rules.length_issues(model)


def _creation_issues(new: _SetInHand, configuration: Configuration, references: References) -> Iterator[Issue]:
    """The issues of a new set."""
    yield from topology_rules.issues(new.template, references, enabled=configuration.topology)
    yield from own_issues(new.model, new.version, configuration)
    yield from create_rules.new_set_issues(new.template)
    if (
        mapping(new.model.metadata.labels).get(labels.MANAGED_BY) != labels.GRAPH_MANAGER
    ):  # Graphs are judged as if they were new, those that run, too.
        yield from computable_rules.collision_issues(new.model.metadata.name or "", new.template)
    yield from annotation_rules.issues(new.specified)
    for fabric in configuration.fabrics:
        yield from fabric.creation_issues(new.specified)
    if (scheduler := _scheduler(new, configuration)) is not None:
        yield from scheduler.issues(new.model, references)


def _update_issues(old: _SetInHand | None, new: _SetInHand, configuration: Configuration, references: References) -> Iterator[Issue]:
    """The issues of a new version by itself, and the changes that fabrics forbid."""
    yield from own_issues(new.model, new.version, configuration)
    yield from annotation_rules.issues(new.specified, old.specified if old else None)
    if old is not None:
        for fabric in configuration.fabrics:
            yield from fabric.update_issues(old.specified, new.specified)
    if (scheduler := _scheduler(new, configuration)) is not None:
        yield from scheduler.issues(new.model, references)


def without_spec(body: Mapping[str, Any]) -> dict[str, Any]:
    """An object without its spec, of which `SetVersion` knows whether it is JSON."""
    return {key: value for key, value in body.items() if key != "spec"}


def _shape_issues(kind: Kind, body: Any) -> tuple[Issue, ...]:
    """The issues because of which no other rule applies: the object is not JSON, or its `apiVersion` and `kind` are not those of `kind`."""
    return tuple(json_rules.issues(body)) or tuple(kind_issues(kind, body))


def _is_terminating(old: Any) -> bool:
    return isinstance(old, Mapping) and bool(get(old, ("metadata", "deletionTimestamp")))


def _scheduler(new: _SetInHand, configuration: Configuration) -> Scheduler | None:
    """The scheduler back end of the set; None if it is not enabled. The first clique names it: all must name the same."""
    name = next((clique.spec.pod_spec.get("schedulerName") or "" for clique in new.template.cliques), "")
    return configuration.schedulers.get(name or configuration.default_scheduler)


def _plug_in_warnings(new: _SetInHand, configuration: Configuration, references: References) -> Iterator[str]:
    yield from annotation_rules.fabric_warnings(new.written, configuration)
    if (scheduler := _scheduler(new, configuration)) is not None:
        yield from scheduler.warnings(new.model, references)


def _unscheduled_gangs(new: _SetInHand, configuration: Configuration) -> str:
    scheduler = without_gangs(new.body, configuration)
    return placed_one_by_one(scheduler, "this set") if scheduler is not None else ""


def _decide_binding(request: Request, configuration: Configuration, _: References, __: Memo) -> Decision:
    """The decision on a ClusterTopologyBinding."""
    if request.act is Act.DELETE or _is_terminating(request.old):
        return Decision(body=request.body)
    if malformed := _shape_issues(TOPOLOGY_BINDING, request.body):
        return Decision(malformed, body=request.body)
    unknown = tuple(unknown_field(path) for path in unknown_paths(request.body, ClusterTopologyBinding))
    try:
        binding = cast(ClusterTopologyBinding, parse(TOPOLOGY_BINDING, request.body, strict=False))
    except Rejected as rejected:
        return Decision(rejected.issues, unknown, body=request.body)
    return Decision(tuple(topology_rules.binding_issues(binding, configuration)), unknown, body=request.body)


def _decide_graph(request: Request, configuration: Configuration, references: References, memo: Memo) -> Decision:
    """The decision on a DynamoGraphDeployment. Objects that it refers to, for example queues, may be created later: none is looked up."""
    if request.act is Act.DELETE or _is_terminating(request.old):
        return Decision(body=request.body)
    if malformed := _shape_issues(version_of_kind(DYNAMO_GRAPH, request.body), request.body):
        return Decision(malformed, body=request.body)
    from resources.admission import graph_decision

    def judge_set(planned: Request, of_set: Memo) -> Decision:
        return _decide_set(planned, configuration, NO_REFERENCES, of_set)

    namespace = request.id.namespace or str(get(cast(Body, request.body), ("metadata", "namespace")) or "")
    return graph_decision.decide(request, configuration, memo, judge_set, references.sizes(namespace))


def _decide_adapter(request: Request, configuration: Configuration, references: References, _: Memo) -> Decision:
    """The decision on a scaling adapter: how large it makes its graph. The server knows its shape.

    A new one is allowed: the engine makes it again with the number of what runs, which may be above a limit that is lower now. What it
    asks for beyond that is limited by the plan.
    """
    is_change = request.act is Act.UPDATE and isinstance(request.old, Mapping) and isinstance(request.body, Mapping)
    if not is_change or _is_terminating(request.old):
        return Decision(body=request.body)
    return Decision(tuple(_adapter_issues(request, configuration, references)), body=request.body)


BY_KIND: Final[Mapping[tuple[str, str], Decide]] = {
    (PODCLIQUESET.group, PODCLIQUESET.name): _decide_set,
    (TOPOLOGY_BINDING.group, TOPOLOGY_BINDING.name): _decide_binding,
    (DYNAMO_GRAPH.group, DYNAMO_GRAPH.name): _decide_graph,
    (SCALING_ADAPTER.group, SCALING_ADAPTER.name): _decide_adapter,
}
"""The decision function by group and kind. Any other kind may be a managed object: `managed_rules` decides."""
