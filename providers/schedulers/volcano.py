"""Volcano: every PodGang has a PodGroup with one policy for each of its cliques. It supports no topology constraints of Grove."""

from collections.abc import Iterator
from typing import Any, Final

from engine.observed import Live
from engine.paths import get
from engine.resource import Body, Policy
from providers.schedulers.queues import ConstraintMessages, clique_paths, constraint_issues, metadata_of, requested_queues
from resources.base import kinds, labels
from resources.base.fields import CLIQUES, manifest, mapping, mappings
from resources.ports.checks import Check, Installation, Query, Severity, judged, unread
from resources.ports.references import References
from resources.ports.scheduler import GangObject, LabelsAndAnnotations, OneObjectForEachGang, Scheduler, SetMetadata
from resources.schema.formats import subdomain_faults
from resources.schema.issues import ErrorType, Issue, Path, shown
from resources.schema.podcliqueset import PodCliqueSet

QUEUE: Final = "scheduling.grove.io/volcano-queue"
"""The annotation of a set or a clique that names its queue."""
DEFAULT_QUEUE: Final = "default"
GROUP_NAMES: Final = ("scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name")
"""The annotations of a pod that name its PodGroup."""
OPEN: Final = "Open"

UNSUPPORTED: Final = "volcano scheduler backend does not support topologyConstraint on"
MESSAGES: Final = ConstraintMessages(
    f"{UNSUPPORTED} PodCliqueSet",
    lambda name: f"{UNSUPPORTED} PodClique {shown(name)}",
    lambda name: f"{UNSUPPORTED} PodCliqueScalingGroup {shown(name)}",
)

CRD: Final = Query(kinds.CRD, name=f"{kinds.VOLCANO_POD_GROUP.plural}.{kinds.VOLCANO_POD_GROUP.group}")
TOO_OLD: Final = "volcano scheduler backend requires Volcano 1.14 or newer with PodGroup.spec.subGroupPolicy"
POLICY_SCHEMA: Final = ("schema", "openAPIV3Schema", "properties", "spec", "properties", "subGroupPolicy")


class VolcanoPodGroups(OneObjectForEachGang):
    """The PodGroup of each PodGang."""

    kind = kinds.VOLCANO_POD_GROUP
    mapping_failed = "VolcanoBackendMappingFailed"

    def pod_metadata(self, gang: str, podclique: str, live: Live | None, metadata: SetMetadata) -> LabelsAndAnnotations:
        """The annotations that name the PodGroup; its policies select pods by the label of their clique."""
        return LabelsAndAnnotations({}, dict.fromkeys(GROUP_NAMES, gang))

    def object_for(self, podgang: Body, live: Live | None, metadata: SetMetadata) -> GangObject:
        """The PodGroup. The minimum and the policies of an existing one stay while no pod group has a minimum."""
        queues = requested_queues(metadata, _declared)
        if queues.names and not queues.agreed:
            return GangObject({}, problem=_conflict(queues.names))
        meta, spec = podgang["metadata"], podgang["spec"]
        body: dict[str, Any] = {"queue": queues.agreed or DEFAULT_QUEUE}
        if priority := spec.get("priorityClassName"):
            body["priorityClassName"] = priority
        if any(group["minReplicas"] for group in spec["podgroups"]) or not _is_populated(live):
            body |= _members(spec["podgroups"])
        manifest_body = manifest(self.kind, meta["namespace"], meta["name"], meta["labels"], spec=body)
        return GangObject(manifest_body, Policy(owned=(("spec", "priorityClassName"),)))


class VolcanoScheduler(Scheduler):
    """The back end `volcano`."""

    name = "volcano"
    gangs = VolcanoPodGroups()
    referenced_kinds = (kinds.VOLCANO_QUEUE,)

    def issues(self, model: PodCliqueSet, references: References) -> Iterator[Issue]:
        """No topology constraints; one queue, which is named correctly, exists and is open."""
        yield from constraint_issues(model, MESSAGES)
        metadata, paths = metadata_of(model), clique_paths(model)
        queues = requested_queues(metadata, _declared)
        of_set = ("metadata", "annotations", QUEUE)
        named: list[tuple[Path, str]] = [(of_set, queues.of_set)] if queues.of_set else []
        named += [((*paths[clique], "annotations", QUEUE), queue) for clique, queue in queues.of_cliques.items()]
        malformed = [Issue(path, ErrorType.INVALID, fault, queue) for path, queue in named for fault in subdomain_faults(queue)]
        yield from malformed
        for clique, queue in queues.of_cliques.items() if queues.of_set else ():
            if queue != queues.of_set:
                message = f"volcano queue on PodCliqueSet is {shown(queues.of_set)} but PodClique {shown(clique)} has {shown(queue)}"
                yield Issue((*paths[clique], "annotations", QUEUE), ErrorType.INVALID, message, queue)
        if queues.names and not queues.agreed:
            yield Issue(CLIQUES, ErrorType.INVALID, _conflict(queues.names))
        elif not malformed:
            path = named[0][0] if named else of_set
            yield from _queue_issues(path, queues.agreed or DEFAULT_QUEUE, references)

    def warnings(self, model: PodCliqueSet, references: References) -> Iterator[str]:
        """A warning if the queue could not be checked: queues were not read, or the queue has no state yet."""
        queue = requested_queues(metadata_of(model), _declared).agreed or DEFAULT_QUEUE
        live = references.find(kinds.VOLCANO_QUEUE.id("", queue))
        if live is None and not references.knows(kinds.VOLCANO_QUEUE.key):
            yield f"volcano queue {shown(queue)} was not checked: queues were not read"
        elif live is not None and not _state(live):
            yield f"volcano queue {shown(queue)} has no state yet"

    def installation_queries(self) -> tuple[Query, ...]:
        """The CRD of PodGroups."""
        return (CRD,)

    def checks(self, installation: Installation) -> Iterator[Check]:
        """Whether PodGroups have sub-group policies; nothing where PodGroups are not served, which is a check of its own."""
        if not installation.apis.serves(kinds.VOLCANO_POD_GROUP):
            return
        subject, result = f"{CRD.name} has spec.subGroupPolicy", installation.results.of(CRD)
        if not result.known or not result.objects:
            yield unread(Severity.WARNING, subject, result, "the CRD was not found")
        else:
            fault = "" if _has_policies(result.objects[0].body) else TOO_OLD
            yield judged(Severity.HARD, subject, fault, "PodGroups can have minimums of cliques", "upgrade Volcano")


def _declared(keys: LabelsAndAnnotations) -> tuple[str, str]:
    """The queue of an object: its annotation, without surrounding blanks."""
    return keys.annotations.get(QUEUE, "").strip(), "annotations"


def _conflict(names: tuple[str, ...]) -> str:
    return f"conflicting volcano queues on PodCliques: [{' '.join(names)}]"


def _queue_issues(path: Path, queue: str, references: References) -> Iterator[Issue]:
    """Whether the queue exists and is open. Skipped if queues were not read; a queue without a state is not open yet, and accepted."""
    live = references.find(kinds.VOLCANO_QUEUE.id("", queue))
    if live is None and references.knows(kinds.VOLCANO_QUEUE.key):
        yield Issue(path, ErrorType.INVALID, f"volcano queue {shown(queue)} does not exist", queue)
    elif live is not None and _state(live) not in ("", OPEN):
        yield Issue(path, ErrorType.INVALID, f"volcano queue {shown(queue)} is not Open", queue)


def _state(queue: Live) -> str:
    state = mapping(queue.body.get("status")).get("state")
    return state if isinstance(state, str) else ""


def _members(pod_groups: list[Body]) -> dict[str, Any]:
    """The minimum of a PodGroup and of each of its cliques; at least one pod each."""
    minimum = sum(group["minReplicas"] for group in pod_groups)
    return {"minMember": minimum or 1, "subGroupPolicy": [_policy(group["name"], group["minReplicas"]) for group in pod_groups]}


def _policy(podclique: str, minimum: int) -> dict[str, Any]:
    return {
        "name": podclique,
        "labelSelector": {"matchLabels": {labels.PODCLIQUE: podclique}},
        "matchLabelKeys": [labels.PODCLIQUE],
        "subGroupSize": minimum or 1,
        "minSubGroups": 1,
    }


def _is_populated(live: Live | None) -> bool:
    """Whether a live PodGroup has a minimum and policies."""
    spec = mapping(live.body.get("spec")) if live is not None else {}
    return bool(spec.get("minMember")) and bool(spec.get("subGroupPolicy"))


def _has_policies(crd: Body) -> bool:
    versions = mappings(mapping(crd.get("spec")).get("versions"))
    return any(version.get("name") == kinds.VOLCANO_POD_GROUP.version and get(version, POLICY_SCHEMA) for version in versions)
