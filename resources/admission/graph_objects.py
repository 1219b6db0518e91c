"""Graph objects: what is wrong with the pods and the PodCliqueSet that a DynamoGraphDeployment would have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from resources.admission import update_rules
from resources.admission.create_rules import COMPLETES
from resources.admission.graph_rules import MOST_NODES, service_field, service_path
from resources.admission.graph_schedulers import implied_scheduler
from resources.admission.graph_version import set_version, update_memo
from resources.admission.set_version import STORED
from resources.base.fields import cliques_of, mapping
from resources.base.kinds import PODCLIQUESET
from resources.base.labels import GRAPH_SCHEDULER
from resources.dynamo.model.graph import GraphService, InferenceGraph, Orchestrator, Role, about_service
from resources.dynamo.model.names import clique_names
from resources.dynamo.objects.component_names import instance_name, name_fault
from resources.dynamo.objects.leader_worker_set import group_templates
from resources.dynamo.objects.podcliqueset import PlannedSet, podcliqueset
from resources.dynamo.objects.service import service_name
from resources.dynamo.orchestrator import queue_of, volcano_queue
from resources.dynamo.pods.builder import PodFault, built_pod
from resources.dynamo.pods.defaults import MAIN
from resources.dynamo.pods.role_paths import role_path
from resources.ports.configuration import KAI_SCHEDULER, Configuration, DynamoSettings
from resources.ports.references import NoReferences
from resources.schema.formats import value_faults
from resources.schema.issues import ErrorType, Issue, Located, Path
from resources.schema.pod_spec_rules import template_findings

ALWAYS: Final = "Always"
COMPONENTS: Final = Orchestrator.COMPONENTS
ONLY_ALWAYS: Final = 'supported values: "Always": Deployments and LeaderWorkerSets have no pods that end'
GPUS: Final = ("resources", "limits", "gpu")
"""The number of GPUs, about which there is a warning for every orchestrator."""


class PodFindings(Struct, frozen=True):
    """What building all pods of a graph shows."""

    issues: tuple[Issue, ...] = ()
    warnings: tuple[str, ...] = ()


def pod_findings(graph: InferenceGraph, settings: DynamoSettings) -> PodFindings:
    """The issues and warnings of the pods of all services and roles.

    Pods are built for Grove unless the graph forbids it, else for LeaderWorkerSets and Deployments. Where Grove may be used, what is
    wrong without Grove only is a warning, because the manifest does not say which of the two runs it. Replicas of more nodes than the rules
    allow are not built.
    """
    if not _is_buildable(graph):
        return PodFindings()
    if not graph.may_use_grove:
        return _built(graph, COMPONENTS, settings)
    with_grove, without = (_built(graph, orchestrator, settings) for orchestrator in (Orchestrator.GROVE, COMPONENTS))
    other = [issue for issue in without.issues if issue not in with_grove.issues and issue.path[3:] != GPUS]
    needs_grove = (Located(f"without Grove the service cannot run: {issue}", issue.path) for issue in other)
    return PodFindings(with_grove.issues, (*with_grove.warnings, *needs_grove))


def _is_buildable(graph: InferenceGraph) -> bool:
    return all(service.nodes <= MOST_NODES for service in graph.services)


def _built(graph: InferenceGraph, orchestrator: Orchestrator, settings: DynamoSettings) -> PodFindings:
    issues: list[Issue] = []
    warnings: list[str] = []
    undetermined = dict(graph.faults)  # Whatever a pod without its framework shows is misleading.
    for service in (each for each in graph.services if each.name not in undetermined):
        for role in service.roles:
            try:
                pod = built_pod(graph, service, role, orchestrator, settings)
                warnings += (about_service(service, warning) for warning in pod.warnings)
                if (policy := pod.spec.get("restartPolicy")) not in ("", ALWAYS):
                    path = role_path(service, role, (*service_path(service.name), "extraPodSpec", "restartPolicy"))
                    if orchestrator is COMPONENTS:
                        issues.append(Issue(path, ErrorType.UNSUPPORTED, ONLY_ALWAYS, policy))
                    else:
                        warnings.append(Located(f"{service_field(service.name)}: {COMPLETES.format(policy=policy)}", path))
            except PodFault as fault:
                issues.append(_issue(fault))
        if orchestrator is COMPONENTS and service.is_multinode:
            issues += _group_issues(graph, service, settings)
    return PodFindings(tuple(dict.fromkeys(issues)), tuple(dict.fromkeys(warnings)))


def _group_issues(graph: InferenceGraph, service: GraphService, settings: DynamoSettings) -> Iterator[Issue]:
    """The first issue of the pods of a LeaderWorkerSet."""
    try:
        group_templates(graph, service, settings)
    except PodFault as fault:
        yield _issue(fault)


def _issue(fault: PodFault) -> Issue:
    return Issue(fault.path, ErrorType.MALFORMED, fault.detail)


def name_issues(graph: InferenceGraph) -> Iterator[Issue]:
    """The issues of a new graph's name and of those derived from it. Those of existing graphs cannot be changed any more."""
    for service in graph.services:
        multinode = service.is_multinode and not graph.may_use_grove
        name = instance_name(graph, service, max(service.replicas - 1, 0)) if multinode else service_name(graph, service)
        if fault := name_fault(name):
            yield Issue(service_path(service.name), ErrorType.INVALID, fault, service.name)
        if not graph.may_use_grove:
            yield from _label_issues(service_path(service.name), service.name)
    labels = [graph.name, *([graph.dynamo_namespace] if graph.dynamo_namespace == f"dynamo-{graph.name}" else [])]
    for value in labels:
        yield from _label_issues(("metadata", "name"), value)


def _label_issues(path: Path, value: str) -> Iterator[Issue]:
    """The issues of a text that becomes the value of a label."""
    return (Issue(path, ErrorType.INVALID, f"as the value of a label: {fault}", value) for fault in value_faults(value))


def planned_set(graph: InferenceGraph, configuration: Configuration, recorded: str = "") -> PlannedSet | None:
    """The PodCliqueSet that the graph would have where KAI is served if it is enabled; None without Grove or without any replica.

    None as well if a pod cannot be built. `recorded`: the scheduler that the stored graph records, if this one records none.
    """
    if not graph.may_use_grove or not _is_buildable(graph):
        return None
    volcano = volcano_queue(graph, configuration.schedulers)
    queue = queue_of(graph) if implied_scheduler(graph, configuration, recorded) == KAI_SCHEDULER else None
    try:
        return podcliqueset(graph, configuration.dynamo, queue, volcano)
    except PodFault:
        return None


def is_replaced(old: InferenceGraph, new: InferenceGraph, configuration: Configuration) -> bool:
    """Whether the set of the new graph cannot be made from that of the old one by changing it."""
    recorded = old.annotations.get(GRAPH_SCHEDULER, "")
    before, after = planned_set(old, configuration), planned_set(new, configuration, recorded)
    if before is None or after is None or before is after:
        return False
    stored, desired = set_version(before), set_version(after)
    if stored.parsed is None or desired.parsed is None:
        return False
    update_memo(after).remember(STORED, stored)  # The set in the cluster usually has this version.
    scheduler = configuration.default_scheduler
    return any(update_rules.issues(stored.template, desired.template, NoReferences(), topology=False, scheduler=scheduler))


def refused_pods(graph: InferenceGraph, configuration: Configuration) -> tuple[Issue, ...]:
    """What an API server would refuse in the pods of a graph: where its user wrote it, else at their services. Pods that cannot be built
    are left out."""
    planned = planned_set(graph, configuration)
    in_set = _findings_by_clique(planned) if planned is not None else {}
    issues: dict[tuple[Path, str], Issue] = {}
    for service in graph.services if _is_buildable(graph) else ():
        for role in service.roles:
            findings = in_set.get(clique_names(graph, service).clique(role))
            for finding in _findings_of_pod(graph, service, role, configuration.dynamo) if findings is None else findings:
                if finding.pods_only:
                    issue = _as_written(graph, service, role, finding, configuration.dynamo)
                    if issue is None:
                        message = f"its pods would not be valid: {finding}"
                        issue = Issue(service_path(service.name), ErrorType.INVALID, message, pods_only=True)
                    issues.setdefault((issue.path, issue.message), issue)
    return tuple(issues.values())


def of_set(graph: InferenceGraph, configuration: Configuration, issues: Iterable[Issue]) -> Iterator[Issue]:
    """Issues of the set that a graph would have: where its user wrote what they are about, else at its spec."""
    planned = planned_set(graph, configuration)
    names = [entry["name"] for entry in cliques_of(planned.body)] if planned is not None else []
    groups = planned.body["spec"]["template"].get("podCliqueScalingGroups", []) if planned is not None else []
    pods = {clique_names(graph, service).clique(role): (service, role) for service in graph.services for role in service.roles}
    seen: set[tuple[Path, str]] = set()
    for issue in issues:
        written = None
        match issue.path:
            case ("spec", "template", "cliques", int(number), "spec", "podSpec", *path):
                written = _as_written(graph, *pods[names[number]], replace(issue, path=tuple(path)), configuration.dynamo)
            case ("spec", "template", "cliques", int(number), "annotations", str(key)):
                written = _of_annotation(*pods[names[number]], key, issue)
            case ("metadata", "annotations", str(key), *_) if key in graph.annotations:
                written = issue
            case ("spec", "template", "topologyConstraint", *_) if graph.spec.topology_constraint is not None:
                written = replace(issue, path=("spec", "topologyConstraint"))
            case ("spec", "template", "cliques", int(number), "topologyConstraint", *_):
                written = _of_topology(pods[names[number]][0], issue)
            case ("spec", "template", "podCliqueScalingGroups", int(number), "topologyConstraint", *_):
                written = _of_topology(pods[groups[number]["cliqueNames"][0]][0], issue)
        if written is None:
            written = Issue(("spec",), ErrorType.INVALID, f"its {PODCLIQUESET.name} would not be valid: {issue}")
        if (written.path, written.message) not in seen:
            seen.add((written.path, written.message))
            yield written


def _of_annotation(service: GraphService, role: Role, key: str, issue: Issue) -> Issue | None:
    """An issue of an annotation of a clique at that of the service; None if the service has none of this key."""
    extra = service.of(role).spec.extra_pod_metadata
    for annotations, field in (
        (extra.annotations if extra is not None else {}, ("extraPodMetadata", "annotations")),
        (service.of(role).spec.annotations, ("annotations",)),
    ):
        if key in annotations:
            return replace(issue, path=role_path(service, role, (*service_path(service.name), *field, key)))
    return None


def _of_topology(service: GraphService, issue: Issue) -> Issue | None:
    """An issue of where the pods of a replica run, at the field of the service; None if it has none."""
    if service.spec.topology_constraint is None:
        return None
    return replace(issue, path=(*service_path(service.name), "topologyConstraint"))


def _as_written(graph: InferenceGraph, service: GraphService, role: Role, issue: Issue, settings: DynamoSettings) -> Issue | None:
    """An issue of the pods of a service at the field of the graph that its user wrote; None if the engine has made what it is about."""
    pod = built_pod(graph, service, role, graph.expected, settings).spec
    for place, user, built, path in _sources(graph, service.of(role), pod, issue.path):
        if (below := _walked(user, built, path)) is not None:
            return replace(issue, path=role_path(service, role, (*place, *below)))
    return None


def _sources(graph: InferenceGraph, service: GraphService, pod: Any, path: Path) -> Iterator[tuple[Path, Any, Any, Path]]:
    """Where a user may have written a field of a pod: the path of each place in the graph, what is there, what became of it in the pod,
    and the rest of the path."""
    own, extra = service_path(service.name), service.spec.extra_pod_spec or {}
    match path:
        case ("containers", int(number), *rest) if mapping(pod["containers"][number]).get("name") == MAIN:
            main, below = pod["containers"][number], tuple(rest[1:])
            if rest[:1] == ["env"]:
                yield (*own, "envs"), service.spec.envs, main["env"], below
                yield ("spec", "envs"), graph.spec.envs, main["env"], below
            yield (*own, "extraPodSpec", "mainContainer"), mapping(extra.get("mainContainer")), main, tuple(rest)
        case _:
            yield (*own, "extraPodSpec"), extra, pod, path


def _walked(user: Any, built: Any, path: Path) -> Path | None:
    """The path in what a user wrote to what this path leads to in what was built of it; None if the user has not written that. What is
    missing in the end of the path is missing where it was written. Elements of lists may have changed their places."""
    walked: list[str | int] = []
    for number, step in enumerate(path, 1):
        if isinstance(user, Mapping) and isinstance(built, Mapping):
            if step not in user and (number < len(path) or step in built):
                return None
            walked.append(step)
            user, built = user.get(step), built.get(step)
        elif isinstance(user, list | tuple) and isinstance(built, list | tuple) and isinstance(step, int):
            built = built[step]
            same = (place for place, each in enumerate(user) if each == built)
            named = (place for place, each in enumerate(user) if mapping(each).get("name", each) == mapping(built).get("name", built))
            place = next(same, next(named, None))
            if place is None:
                return None
            walked.append(place)
            user = user[place]
        else:
            return None
    return tuple(walked)


def _findings_by_clique(planned: PlannedSet) -> Mapping[str, Sequence[Issue]]:
    """Clique of a set -> the findings of its pod spec, which has been walked with the set; their paths begin in the pod spec."""
    by_clique: dict[str, list[Issue]] = {entry["name"]: [] for entry in cliques_of(planned.body)}
    names = list(by_clique)
    for finding in set_version(planned).pods.findings:
        _, _, _, number, _, _, *path = finding.path
        by_clique[names[int(number)]].append(replace(finding, path=tuple(path)))
    return by_clique


def _findings_of_pod(graph: InferenceGraph, service: GraphService, role: Role, settings: DynamoSettings) -> Iterable[Issue]:
    try:
        return template_findings(built_pod(graph, service, role, graph.expected, settings).spec)
    except PodFault:
        return ()


def without_repeats(issues: Iterable[Issue], reported: Sequence[Issue]) -> Iterator[Issue]:
    """The issues whose field, or a field above or below it, has not been reported already."""
    return (issue for issue in issues if not any(_contains(issue.path, other.path) for other in reported))


def _contains(left: Path, right: Path) -> bool:
    length = min(len(left), len(right))
    return left[:length] == right[:length]
