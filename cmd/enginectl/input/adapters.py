"""Adapters: the scaling adapters among a user's manifests. The manifest of their graph carries the numbers that they ask for."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import InputError
from engine.ids import ResourceId
from engine.memo import Memo
from engine.proposal import proposed_root
from engine.report.printable import clipped, printable
from engine.resource import Body
from enginectl.base import terminal
from enginectl.input.manifest_files import Manifest, refuse
from enginectl.input.pod_findings import manifest_faults
from enginectl.input.roots import Roots, duplicates, faults_by_line, with_namespace
from resources.base.fields import mapping
from resources.base.kinds import DYNAMO_GRAPH, SCALING_ADAPTER
from resources.dynamo.objects.asked_replicas import with_asked_replicas
from resources.dynamo.objects.scaling_adapter import SERVICE_FIELDS
from resources.ports.graph_services import adapted
from resources.ports.references import KnownReferences
from resources.schema.issues import MAX_VALUE, Issue

ENABLE: Mapping[bool, str] = {False: "scalingAdapter: {enabled: true}", True: "scalingAdapter: {}"}
"""Whether a graph is written as v1beta1 -> what asks for an adapter of a service."""


class Adapter(Struct, frozen=True, eq=False):
    """A scaling adapter in a file."""

    manifest: Manifest
    graph: ResourceId
    service: str
    replicas: int
    field: str
    """The field of `dgdRef` that has the name of the service."""

    def fault(self, field: str, text: str) -> str:
        """What is wrong with a field of `dgdRef`, with its place."""
        return f"{self.manifest.place('spec', 'dgdRef', field)}: spec.dgdRef.{field}: {text}"


def read_adapters(manifests: Iterable[Manifest], *, namespace: str, forced: bool, faults: list[str]) -> tuple[Adapter, ...]:
    """The adapters in these manifests. What is wrong with others is added to the faults, also that two are for one service."""
    read: list[tuple[Adapter, Body]] = []
    for manifest in manifests:
        field = SERVICE_FIELDS.get(str(manifest.body["apiVersion"]).rpartition("/")[2])
        if field is None:
            versions = " and ".join(f"{SCALING_ADAPTER.group}/{version}" for version in SERVICE_FIELDS)
            faults.append(f"{manifest.place('apiVersion')}: {SCALING_ADAPTER.name} is supported as {versions} only")
            continue
        try:
            body = with_namespace(replace(manifest, body=_renamed(manifest.body, field)), SCALING_ADAPTER, namespace, forced)
        except InputError as error:
            faults.append(str(error))
            continue
        if issues := manifest_faults(SCALING_ADAPTER, body, Memo()):
            faults += faults_by_line(manifest, (_in_its_words(issue, field) for issue in issues))
            continue
        reference = body["spec"]["dgdRef"]
        id = DYNAMO_GRAPH.id(body["metadata"]["namespace"], reference["name"])
        read.append((Adapter(manifest, id, reference["serviceName"], body["spec"]["replicas"], field), body))
    faults += duplicates([(adapter.manifest, body) for adapter, body in read])
    first: dict[tuple[ResourceId, str], Manifest] = {}
    for adapter, body in read:
        key = (adapter.graph, adapter.service.lower())
        other = first.setdefault(key, adapter.manifest)
        if other is not adapter.manifest and other.body["metadata"]["name"] != body["metadata"]["name"]:
            what = f"service {clipped(adapter.service, MAX_VALUE)} of {adapter.graph.name}"
            faults.append(adapter.fault(adapter.field, f"{what} has an adapter already, at {other.place()}: only one can count"))
    return tuple(adapter for adapter, _ in read)


def with_adapters(roots: Roots, adapters: Sequence[Adapter], *, is_complete: bool) -> Roots:
    """The roots with the numbers of the adapters. A graph that is not among them stands there without a spec, which `with_stored_specs`
    adds. `is_complete`: whether there is no cluster that may have it. Raises `InputError` for adapters that cannot count."""
    by_graph: dict[ResourceId, list[Adapter]] = {}
    for adapter in adapters:
        by_graph.setdefault(adapter.graph, []).append(adapter)
    bodies = tuple(_asking(body, by_graph.pop(proposed_root(body).id, ())) for body in roots.bodies)
    if is_complete:
        refuse([_missing(adapter, "in these files") for each in by_graph.values() for adapter in each])
    stand_ins = tuple(_stand_in(id, each) for id, each in by_graph.items())
    manifests = (*roots.manifests, *(each[0].manifest for each in by_graph.values()))
    return replace(roots, bodies=(*bodies, *stand_ins), manifests=manifests, asking=tuple(adapters))


def with_stored_specs(roots: Roots, references: KnownReferences) -> Roots:
    """The roots, of which graphs that only adapters name are as they are stored. Raises `InputError` if one does not exist."""
    if not roots.stands_in:
        return roots
    by_graph: dict[ResourceId, list[Adapter]] = {}
    for adapter in roots.asking:
        by_graph.setdefault(adapter.graph, []).append(adapter)
    bodies: list[Body] = []
    faults: list[str] = []
    for body in roots.bodies:
        if "spec" in body:
            bodies.append(body)
            continue
        id = proposed_root(body).id
        live = references.find(id)
        if live is None:
            faults += [_missing(adapter, "in the cluster, nor in these files") for adapter in by_graph[id]]
            continue
        stored = live.body
        metadata = {key: value for key, value in stored["metadata"].items() if key in ("name", "namespace", "labels", "annotations")}
        try:
            bodies.append(_asking({**{key: stored[key] for key in ("apiVersion", "kind", "spec")}, "metadata": metadata}, by_graph[id]))
        except InputError as error:
            faults += str(error).splitlines()
    refuse(faults)
    return replace(roots, bodies=tuple(bodies))


def _renamed(body: Body, field: str) -> Body:
    """The adapter as one of v1alpha1."""
    spec = body.get("spec")
    reference = mapping(spec).get("dgdRef")
    if field == "serviceName" or not isinstance(reference, Mapping):
        return {**body, "apiVersion": SCALING_ADAPTER.api_version}
    renamed = {"serviceName" if key == field else key: value for key, value in reference.items()}
    return {**body, "apiVersion": SCALING_ADAPTER.api_version, "spec": {**mapping(spec), "dgdRef": renamed}}


def _in_its_words(issue: Issue, field: str) -> Issue:
    return replace(issue, path=tuple(field if key == "serviceName" else key for key in issue.path))


def _stand_in(id: ResourceId, adapters: Sequence[Adapter]) -> Body:
    metadata = {"name": id.name, "namespace": id.namespace}
    manifest = {"apiVersion": DYNAMO_GRAPH.api_version, "kind": DYNAMO_GRAPH.name, "metadata": metadata}
    return with_asked_replicas(manifest, ((adapter.service, adapter.replicas) for adapter in adapters))


def _asking(graph: Body, adapters: Sequence[Adapter]) -> Body:
    """The manifest of a graph with the numbers of its adapters. Raises `InputError` for those that cannot count."""
    known = adapted(graph) if adapters else {}
    faults: list[str] = []
    for adapter in adapters:
        service = clipped(adapter.service, MAX_VALUE)
        if adapter.service not in known:
            there = ", ".join(printable(name) for name in sorted(known)) or "none"
            faults.append(adapter.fault(adapter.field, f"{adapter.graph.name} has no service {service}; it has {there}"))
        elif not known[adapter.service]:
            enable = ENABLE[str(graph.get("apiVersion")).endswith("/v1beta1")]
            faults.append(adapter.fault(adapter.field, f"service {service} of {adapter.graph.name} has no adapter; add {enable} to it"))
        name, counts = adapter.manifest.body["metadata"]["name"], f"{adapter.graph.name}-{adapter.service}".lower()
        if not faults and name != counts:
            kind = SCALING_ADAPTER.name
            terminal.note(
                f"{adapter.manifest.place('metadata', 'name')}: {kind} {name} counts as {kind} {clipped(counts, MAX_VALUE)}, "
                "which the graph has for that service; aim autoscalers at that one"
            )
    refuse(faults)
    return with_asked_replicas(graph, ((adapter.service, adapter.replicas) for adapter in adapters))


def _missing(adapter: Adapter, where: str) -> str:
    return adapter.fault("name", f"there is no {DYNAMO_GRAPH.name} {clipped(str(adapter.graph.name), MAX_VALUE)} {where}")
