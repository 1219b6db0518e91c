"""Adapters: the scaling adapters among a user's manifests. The number of one counts beside the manifest of its graph."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import InputError
from engine.ids import ResourceId
from engine.memo import Memo
from engine.proposal import proposed_root
from engine.report.printable import clipped, printable
from engine.resource import Body
from enginectl.base import terminal
from enginectl.input.manifest_files import NAME, Manifest, duplicates, faults_by_line, refuse, with_namespace
from enginectl.input.pod_findings import manifest_faults
from resources.base import names
from resources.base.fields import mapping
from resources.base.kinds import DYNAMO_GRAPH, SCALING_ADAPTER
from resources.dynamo.objects.scaling_adapter import SERVICE_FIELDS
from resources.ports.graph_services import adapted
from resources.schema.issues import MAX_VALUE, ErrorType, Issue
from resources.schema.unknown_fields import nearest_name, with_suggestion

ENABLE: Mapping[bool, str] = {False: "scalingAdapter: {enabled: true}", True: "scalingAdapter: {}"}
"""Whether a graph is written as v1beta1 -> what asks for an adapter of a service."""
SWAPPED: Final = {"componentName": "serviceName", "serviceName": "componentName"}
READ: Final = "it was read from a cluster and is ignored"
NOT_WRITTEN: Final = ("labels", "annotations", "finalizers")
MAX_COMMAND: Final = 400
"""The longest command that a fault shows."""


class Adapter(Struct, frozen=True, eq=False):
    """A scaling adapter in a file."""

    manifest: Manifest
    body: Body
    """As v1alpha1, with its namespace."""
    field: str
    """The field of `dgdRef` that has the name of the service."""

    @property
    def graph(self) -> ResourceId:
        """The graph that it names."""
        return DYNAMO_GRAPH.id(self.body["metadata"]["namespace"], self.body["spec"]["dgdRef"]["name"])

    @property
    def service(self) -> str:
        """The service that it names."""
        return str(self.body["spec"]["dgdRef"]["serviceName"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.body["metadata"]["name"])

    @property
    def replicas(self) -> int:
        """The number that it asks for."""
        return int(self.body["spec"]["replicas"])

    @property
    def was_read(self) -> bool:
        """Whether it was read from a cluster, perhaps with everything else that is there."""
        return bool(self.body["metadata"].get("uid") or self.body["metadata"].get("ownerReferences"))

    @property
    def counts_as(self) -> str:
        """The name of the adapter that the graph has for the service."""
        return names.scaling_adapter(self.graph.name, self.service)

    def fault(self, field: str, text: str) -> str:
        """What is wrong with a field of `dgdRef`, with its place."""
        return f"{self.manifest.place('spec', 'dgdRef', field)}: spec.dgdRef.{field}: {text}"


def read_adapters(manifests: Iterable[Manifest], *, namespace: str, forced: bool, faults: list[str]) -> tuple[Adapter, ...]:
    """The adapters in these manifests. What is wrong with others is added to the faults, also that two are for one service."""
    read: list[Adapter] = []
    for manifest in manifests:
        try:
            body = with_namespace(manifest, SCALING_ADAPTER, namespace, forced)
        except InputError as error:
            faults.append(str(error))
            continue
        adapter = Adapter(manifest, _as_alpha(body), SERVICE_FIELDS[body["apiVersion"].rpartition("/")[2]])
        if issues := manifest_faults(SCALING_ADAPTER, adapter.body, Memo()):
            faults += faults_by_line(manifest, (_as_written(issue, body) for issue in issues))
        elif adapter.was_read and adapter.name != adapter.counts_as:
            terminal.note(f"{manifest.place()}: {SCALING_ADAPTER.name} {adapter.name} has no effect, because of its name; {READ}")
        else:
            read.append(adapter)
    faults += duplicates((adapter.manifest, adapter.body) for adapter in read)
    first: dict[tuple[ResourceId, str], Adapter] = {}
    for adapter in read:
        other = first.setdefault((adapter.graph, adapter.service.lower()), adapter)
        if other.name != adapter.name:
            what = f"service {clipped(adapter.service, MAX_VALUE)} of {clipped(adapter.graph.name, MAX_VALUE)}"
            faults.append(adapter.fault(adapter.field, f"{what} has an adapter already, at {other.manifest.place()}: only one can count"))
    return tuple(read)


def asked_replicas(adapters: Sequence[Adapter], graphs: Iterable[Body]) -> Mapping[ResourceId, Mapping[str, int]]:
    """Graph -> service -> the replicas that its adapter asks for. `graphs`: the roots in the same files.

    Raises `InputError` for adapters that cannot count, unless they were read from a cluster: a note says why.
    """
    known = {proposed_root(body).id: body for body in graphs}
    judged = [(adapter, _fault(adapter, known.get(adapter.graph))) for adapter in adapters]
    refuse([fault for adapter, fault in judged if fault and not adapter.was_read])
    numbers: dict[ResourceId, dict[str, int]] = {}
    for adapter, fault in judged:
        if fault:
            terminal.note(f"{fault}; {READ}")
            continue
        if adapter.name != adapter.counts_as:
            kind, counts = SCALING_ADAPTER.name, clipped(adapter.counts_as, MAX_VALUE)
            terminal.note(
                f"{adapter.manifest.place('metadata', 'name')}: {kind} {adapter.name} counts as {kind} {counts}, "
                "which the graph has for that service; aim autoscalers at that one"
            )
        if not adapter.was_read and (dropped := [key for key in NOT_WRITTEN if adapter.body["metadata"].get(key)]):
            what = f"{SCALING_ADAPTER.name} {adapter.name}: {', '.join(dropped)} are not written"
            terminal.note(f"{adapter.manifest.place('metadata', dropped[0])}: {what}: of an adapter in a file only its replicas count")
        numbers.setdefault(adapter.graph, {})[adapter.service] = adapter.replicas
    return numbers


def _fault(adapter: Adapter, graph: Body | None) -> str:
    """Why an adapter cannot count beside this manifest of its graph; empty if it can."""
    service, name = clipped(adapter.service, MAX_VALUE), clipped(adapter.graph.name, MAX_VALUE)
    if graph is None:
        command = f"kubectl scale dgdsa/{adapter.counts_as} -n {adapter.graph.namespace} --replicas={adapter.replicas}"
        missing = f"{DYNAMO_GRAPH.name} {adapter.graph.namespace}/{name} is not in these files, and an adapter counts beside its graph only"
        is_safe = NAME.fullmatch(adapter.counts_as) and len(command) <= MAX_COMMAND  # Users copy it.
        return adapter.fault("name", f"{missing}: add that{f', or run `{command}`, which the engine follows' if is_safe else ''}")
    known = adapted(graph)
    if adapter.service not in known:
        names = ", ".join(printable(each) for each in sorted(known)) or "none"
        return adapter.fault(adapter.field, f"{name} has no service {service}; it has {names}")
    if not known[adapter.service]:
        enable = ENABLE[str(graph.get("apiVersion")).endswith("/v1beta1")]
        return adapter.fault(adapter.field, f"service {service} of {name} has no adapter; add {enable} to it")
    return ""


def _as_alpha(body: Body) -> Body:
    """The adapter as one of v1alpha1: in a newer one, its field with the name of the service is called as there, and no other is."""
    spec = mapping(body.get("spec"))
    if body["apiVersion"] == SCALING_ADAPTER.api_version or not isinstance(spec.get("dgdRef"), Mapping):
        return {**body, "apiVersion": SCALING_ADAPTER.api_version}
    reference = {SWAPPED.get(key, key): value for key, value in spec["dgdRef"].items()}
    return {**body, "apiVersion": SCALING_ADAPTER.api_version, "spec": {**spec, "dgdRef": reference}}


def _as_written(issue: Issue, body: Body) -> Issue:
    """The issue with the fields that the manifest has. An unknown one in `dgdRef` may be meant for that with the name of the service."""
    is_alpha = body["apiVersion"] == SCALING_ADAPTER.api_version
    shown = issue if is_alpha else replace(issue, path=tuple(SWAPPED.get(str(key), key) for key in issue.path))
    if issue.type is not ErrorType.UNKNOWN or issue.path[:-1] != ("spec", "dgdRef"):
        return shown
    near = nearest_name(str(shown.path[-1]), ("name", *SWAPPED)) or ""
    return with_suggestion(shown, SERVICE_FIELDS["v1alpha1" if is_alpha else "v1beta1"] if near in SWAPPED else near)
