"""What pods need besides room to start, in one forecast: the objects that they name, and the other pods of their gang."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from engine.forecast.store import ForecastStore
from engine.ids import ResourceId
from engine.observed import Live
from engine.plan import Wait
from engine.reason import APPLY_FIRST, Reason
from resources.base import kinds, labels
from resources.base.fields import mapping, mappings
from resources.model.gang_scheduling import shortfalls
from resources.model.pod_facts import claims_of, unmade_claims
from resources.ports.fabric import Fabric

LISTED: Final = (kinds.RESOURCE_CLAIM_TEMPLATE.name,)
"""The kinds of objects that pods refer to and that every observation of a cluster has."""
Words = tuple[str, str]
"""What is said of one object, and of several."""
MISSING: Final[Words] = ("does not exist", "do not exist")
LEAVING: Final[Words] = ("is being deleted", "are being deleted")
NOTHING_ABSENT: Final[Mapping[ResourceId, Words]] = {}
NOTHING_BESIDE: Final[Mapping[ResourceId, str]] = {}
ALWAYS_THERE: Final = frozenset({("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")})
"""Kind and name of what Kubernetes makes in each namespace."""
SYSTEM: Final = "system-"
"""How the names of Kubernetes' own priority classes begin."""
CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""Kubernetes' annotation of a claim made from a template: the name of the claim in the pod."""


class PodReferences:
    """What pods refer to among the objects of a forecast, and what of it is missing."""

    def __init__(
        self,
        fabrics: Iterable[Fabric],
        listed: Collection[str] = LISTED,
        device_classes: Collection[str] | None = None,
        absent: Mapping[ResourceId, Words] = NOTHING_ABSENT,
        beside: Mapping[ResourceId, str] = NOTHING_BESIDE,
    ) -> None:
        """`listed`: the kinds of objects of which all are known; objects of other kinds are assumed to exist, but for those in `absent`,
        with what is said of each. `beside`: see `Intent.beside`.

        `device_classes`: the names of the DeviceClasses that exist; None: they are not known, and assumed to exist.
        """
        self._fabrics = {fabric.kind.key: fabric for fabric in fabrics}
        self._listed, self._device_classes, self._absent = frozenset(listed), device_classes, absent
        self._beside = beside
        self._promised: set[ResourceId] = set()
        """The templates of claims that drivers make for domains that exist."""

    def note_promises(self, store: ForecastStore, ids: Iterable[ResourceId]) -> None:
        """Take note of the templates that drivers make for these domains."""
        for id in ids:
            for key in self._fabrics.keys() & set(id.keys()) if self._fabrics else ():
                name = self._fabrics[key].template_name(store.find(id), id.name)
                self._promised.add(kinds.RESOURCE_CLAIM_TEMPLATE.id(id.namespace, name))

    def make_claims(self, store: ForecastStore, pod: Live) -> bool:
        """Create the claims of a pod whose templates exist. Returns whether there are any."""
        templates = [(name, live) for name, id in _unmade_claims(store, pod) if (live := store.find(id)) is not None]
        for name, template in templates:
            store.create(claim_of(pod, name, template.body))
        return bool(templates)

    def lacks(self, store: ForecastStore, pod: Live) -> tuple[ResourceId, ...]:
        """The objects that a pod refers to and that do not exist: those of listed kinds, and templates that drivers have still to make.

        Also the DeviceClasses that its claims ask for: until they exist the scheduler places no pod with a claim that has no devices yet.
        """
        claims = (id for id in claims_of(pod.id.namespace, pod.body.get("spec")) if id.kind in self._listed or id in self._absent)
        templates = (id for _, id in _unmade_claims(store, pod) if id.kind in self._listed or id in self._promised)
        return tuple(dict.fromkeys(id for id in (*templates, *claims, *self._classes(store, pod)) if store.find(id) is None))

    def _classes(self, store: ForecastStore, pod: Live) -> Iterator[ResourceId]:
        """The DeviceClasses that do not exist and that the claims of a pod ask for, as they are or as their templates describe them."""
        if self._device_classes is None or not mapping(pod.body.get("spec")).get("resourceClaims"):
            return
        named = (store.find(id) for id in claims_of(pod.id.namespace, pod.body.get("spec")) if id.kind == kinds.RESOURCE_CLAIM.name)
        made = (store.lives[id] for id in store.dependents(pod.uid) if id.kind == kinds.RESOURCE_CLAIM.name)
        templates = (store.find(id) for _, id in _unknown_claims(store, pod))
        asking = [each for each in (*named, *made, *templates) if each is not None and not is_allocated(each)]
        names = (name for each in asking for name in device_classes_of(each))
        yield from (kinds.DEVICE_CLASS.id("", name) for name in names if name not in self._device_classes)

    def are_assumed(self, store: ForecastStore, pod: Live) -> bool:
        """Whether a pod refers to an object that is not known to exist."""
        named = (*(id for _, id in _unmade_claims(store, pod)), *references_of(pod.id.namespace, pod.body.get("spec")))
        return any(store.find(id) is None for id in named)

    def shortages(self, store: ForecastStore, pods: Iterable[tuple[ResourceId, ResourceId, Live]]) -> Mapping[ResourceId, tuple[Wait, ...]]:
        """Root -> for each PodClique or component with pods that refer to what does not exist, what that is.

        `pods`: each with its root, and with the PodClique or component that it is of.
        """
        counts = Counter((root, member, lacks) for root, member, pod in pods if (lacks := self.lacks(store, pod)))
        waits: dict[ResourceId, list[Wait]] = {}
        for (root, id, lacks), count in counts.items():
            waits.setdefault(root, []).append(cannot_start(id, count, lacks, self._absent, self._beside))
        return {root: tuple(listed) for root, listed in waits.items()}


def cannot_start(
    id: ResourceId,
    count: int,
    lacks: Sequence[ResourceId],
    absent: Mapping[ResourceId, Words] = NOTHING_ABSENT,
    beside: Mapping[ResourceId, str] = NOTHING_BESIDE,
) -> Wait:
    """What is said of a PodClique or component with so many pods that refer to these objects.

    They do not exist, unless `absent` says something else of them. `beside`: see `Intent.beside`.
    """
    named: dict[Words, list[str]] = {}
    for each in lacks:
        place = f" (in {beside[each]})" if each in beside else ""
        named.setdefault(absent.get(each, MISSING), []).append(f"{each.kind} {each.name}{place}")
    missing = "; ".join(f"{', '.join(names)} {words[len(names) > 1]}" for words, names in named.items())
    why = f"{count} pod{'s' if count > 1 else ''} cannot start: {missing}"
    return Wait(id, why, blocked=True, reason=Reason.REFERENCE_MISSING, to_do=APPLY_FIRST if all(each in beside for each in lacks) else "")


class PodSlots:
    """Counts the places that the templates of a pod's claims ask for."""

    def __init__(self, fabrics: Iterable[Fabric], known: Collection[str]) -> None:
        """`known`: the kinds of domains of which it is known which nodes have a place."""
        slots = ((fabric.kind.name, fabric.slots) for fabric in fabrics)
        self._slots = [(kind, each) for kind, each in slots if each is not None and kind in known]

    def of(self, store: ForecastStore, pod: Live) -> Mapping[str, int]:
        """Kind of domains -> the places that a pod takes; kinds of which it takes none are absent."""
        if not self._slots:
            return {}
        templates = [store.find(kinds.RESOURCE_CLAIM_TEMPLATE.id(pod.id.namespace, name)) for name in claims_from_templates(pod).values()]
        specs = [mapping(mapping(template.body.get("spec")).get("spec")) for template in templates if template is not None]
        counts = {kind: sum(map(slots.claimed, specs)) for kind, slots in self._slots}
        return {kind: count for kind, count in counts.items() if count}


class IncompleteGangs:
    """The gangs in one forecast that list fewer pods of a clique than its minimum: their scheduler places none of them that waits.

    A gang lists as many pods of a clique as the clique has by its own number.
    """

    def __init__(self, schedulers: Collection[str]) -> None:
        """`schedulers`: the names of those that place a PodGang only with the minimum of each of its pod groups."""
        self._schedulers = frozenset(schedulers)
        self._waiting: dict[ResourceId, None] = {}
        self._read: dict[ResourceId, tuple[Live, Mapping[str, tuple[int, int]]]] = {}
        """PodGang -> the object that was read last, and what it lacks: it is asked once for each of its pods."""

    def keeps(self, store: ForecastStore, pod: Live) -> bool:
        """Whether a pod without a node waits for others of its gang. It is taken note of."""
        if not self._lacking(store, pod):
            return False
        self._waiting[pod.id] = None
        return True

    def released(self, store: ForecastStore) -> list[ResourceId]:
        """The pods that have waited and that wait no longer."""
        pods = {id: self._waiting_pod(store, id) for id in self._waiting}
        released = [id for id, pod in pods.items() if pod is not None and not self._lacking(store, pod)]
        for id in (*released, *(id for id, pod in pods.items() if pod is None)):
            del self._waiting[id]
        return released

    def shortages(self, store: ForecastStore, root_of: Callable[[Live], ResourceId]) -> Mapping[ResourceId, tuple[Wait, ...]]:
        """Root -> for each PodClique with fewer pods than its minimum, how many pods of its gang that stops."""
        pods = [pod for id in self._waiting if (pod := self._waiting_pod(store, id)) is not None]
        lacking = ((pod, name, numbers) for pod in pods for name, numbers in self._lacking(store, pod).items())
        counts = Counter((root_of(pod), kinds.PODCLIQUE.id(pod.id.namespace, name), numbers) for pod, name, numbers in lacking)
        waits: dict[ResourceId, list[Wait]] = {}
        for (root, id, (has, least)), count in counts.items():
            why = f"{count} pod{'s' if count > 1 else ''} of its gang cannot start: it has {has} of its minimum of {least}"
            waits.setdefault(root, []).append(Wait(id, why, blocked=True, reason=Reason.GANG_INCOMPLETE))
        return {root: tuple(listed) for root, listed in waits.items()}

    def _waiting_pod(self, store: ForecastStore, id: ResourceId) -> Live | None:
        pod = store.find(id)
        return pod if pod is not None and pod.deleting_since is None else None

    def _lacking(self, store: ForecastStore, pod: Live) -> Mapping[str, tuple[int, int]]:
        """Pod group of a pod's gang -> the numbers of its pods and of its minimum, for those with fewer; empty if the pod may be placed."""
        if mapping(pod.body.get("spec")).get("schedulerName") not in self._schedulers:
            return {}
        gang = store.find(kinds.PODGANG.id(pod.id.namespace, pod.labels.get(labels.PODGANG, "")))
        if gang is None:
            return {}
        read, lacking = self._read.get(gang.id, (None, {}))
        if read is not gang:
            lacking = shortfalls(gang.body)
            self._read[gang.id] = gang, lacking
        return lacking


def is_allocated(claim: Live) -> bool:
    """Whether a claim has its devices."""
    return bool(mapping(claim.body.get("status")).get("allocation"))


def device_classes_of(claim: Live) -> Iterator[str]:
    """The names of the DeviceClasses that a claim or template asks for, alternatives included: the scheduler wants all of them to exist."""
    spec = claim.body.get("spec")
    claim_spec = mapping(spec).get("spec") if claim.id.kind == kinds.RESOURCE_CLAIM_TEMPLATE.name else spec
    for request in mappings(mapping(mapping(claim_spec).get("devices")).get("requests")):
        for each in (request, mapping(request.get("exactly")), *mappings(request.get("firstAvailable"))):
            if isinstance(name := each.get("deviceClassName"), str) and name:
                yield name


def claim_id(pod: ResourceId, name: str) -> ResourceId:
    """The id of the claim that a pod gets for an entry with a template. A real one ends in random characters; nothing depends on them."""
    return kinds.RESOURCE_CLAIM.id(pod.namespace, f"{pod.name}-{name}")


def is_claim_for(claim: Live, name: str) -> bool:
    """Whether a claim, which a pod owns, is the one for that entry of the pod; a claim that does not say it may be."""
    annotations = mapping(claim.body["metadata"].get("annotations"))
    return claim.id.kind == kinds.RESOURCE_CLAIM.name and annotations.get(CLAIM_NAME, name) == name


def claims_from_templates(pod: Live) -> dict[str, str]:
    """Name of each claim of a pod that is made from a template -> the name of the template."""
    entries = mappings(mapping(pod.body.get("spec")).get("resourceClaims"))
    return {
        entry["name"]: entry["resourceClaimTemplateName"]
        for entry in entries
        if isinstance(entry.get("name"), str) and isinstance(entry.get("resourceClaimTemplateName"), str)
    }


def claim_of(pod: Live, name: str, template: Mapping[str, Any]) -> dict[str, Any]:
    """The claim that the pod gets for the entry `name`, from the body of its template."""
    id, spec = claim_id(pod.id, name), mapping(template.get("spec"))
    inherited = mapping(spec.get("metadata"))
    owner = {"apiVersion": "v1", "kind": pod.id.kind, "name": pod.id.name, "uid": pod.uid, "controller": True, "blockOwnerDeletion": True}
    annotations = {**mapping(inherited.get("annotations")), CLAIM_NAME: name}
    return {
        "apiVersion": kinds.RESOURCE_CLAIM.api_version,
        "kind": id.kind,
        "metadata": {**inherited, "name": id.name, "namespace": id.namespace, "annotations": annotations, "ownerReferences": [owner]},
        "spec": mapping(spec.get("spec")),
    }


def _unmade_claims(store: ForecastStore, pod: Live) -> list[tuple[str, ResourceId]]:
    """The claims of a pod that are made from templates, and are not made: name in the pod, and template."""
    unmade = unmade_claims(pod)
    return [each for each in _unknown_claims(store, pod) if each[0] in unmade]


def _unknown_claims(store: ForecastStore, pod: Live) -> list[tuple[str, ResourceId]]:
    """The same with those that are made and are not known: without fabrics claims are not listed."""
    made = [store.lives[id] for id in store.dependents(pod.uid)]
    return [
        (name, kinds.RESOURCE_CLAIM_TEMPLATE.id(pod.id.namespace, template))
        for name, template in claims_from_templates(pod).items()
        if not any(is_claim_for(claim, name) for claim in made)
    ]


def references_of(namespace: str, pod_spec: Any) -> Iterator[ResourceId]:
    """The objects that a pod spec names and that have to exist, some of them more than once. It is not validated."""
    spec = mapping(pod_spec)
    yield from claims_of(namespace, spec)
    for kind, name in _named(spec):
        if isinstance(name, str) and name and (kind, name) not in ALWAYS_THERE:
            yield ResourceId("", kind, namespace, name)
    if isinstance(name := spec.get("priorityClassName"), str) and name and not name.startswith(SYSTEM):
        yield ResourceId("scheduling.k8s.io", "PriorityClass", "", name)
    if isinstance(name := spec.get("runtimeClassName"), str) and name:
        yield ResourceId("node.k8s.io", "RuntimeClass", "", name)


def _named(spec: Any) -> Iterator[tuple[str, Any]]:
    """Kind and name of each Secret, ConfigMap and service account that is not optional."""
    yield "ServiceAccount", spec.get("serviceAccountName")
    for secret in mappings(spec.get("imagePullSecrets")):
        yield "Secret", secret.get("name")
    for volume in mappings(spec.get("volumes")):
        yield from _sources((volume, *mappings(mapping(volume.get("projected")).get("sources"))), "secret", "configMap")
    for field in ("initContainers", "containers"):
        for container in mappings(spec.get(field)):
            yield from _sources(mappings(container.get("envFrom")), "secretRef", "configMapRef")
            values = [mapping(variable.get("valueFrom")) for variable in mappings(container.get("env"))]
            yield from _sources(values, "secretKeyRef", "configMapKeyRef")


def _sources(holders: Any, secret: str, config_map: str) -> Iterator[tuple[str, Any]]:
    for holder in holders:
        for field, kind in ((secret, "Secret"), (config_map, "ConfigMap")):
            source = mapping(holder.get(field))
            if source and source.get("optional") is not True:
                yield kind, source.get("name", source.get("secretName"))
