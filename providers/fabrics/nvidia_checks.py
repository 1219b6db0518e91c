"""Checks: what an installation needs for ComputeDomains, and how it stands."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from engine.ids import Kind
from engine.observed import Live
from engine.paths import get
from engine.resource import Body
from providers.fabrics import nvidia_channels
from providers.fabrics.nvidia_definition import Definition, definition
from providers.fabrics.nvidia_words import (
    CHANNEL,
    CHANNEL_CLASS,
    CLIQUE,
    COMPUTE_DOMAIN,
    DOMAIN_LABEL,
    DRIVER,
    FABRIC_LABEL,
    FINALIZER,
    PARTS,
)
from resources.admission.annotations import mapping, mappings
from resources.base import kinds, labels
from resources.domains.capacity import NodeCapacity
from resources.domains.replica_domains import LONGEST_LABEL
from resources.domains.requests import RequestedDomain
from resources.ports.checks import Check, Level, Outcome, judged, unknown
from resources.ports.inspection import Installation
from resources.ports.queries import Query, QueryResult
from resources.schema.formats import subdomain_faults

MISSING: Final = (
    "MNNVL is enabled but ComputeDomain CRD (computedomains.resource.nvidia.com) is not installed. Please install the NVIDIA DRA driver "
    "or disable MNNVL in the operator configuration"
)
INSTALL: Final = "install the NVIDIA DRA driver, or disable MNNVL in the operator configuration"
PLUGIN: Final = "see whether the kubelet plugin of the driver runs on the nodes with GPUs"
UPGRADE: Final = "upgrade the NVIDIA DRA driver"
SHOWN: Final = 5
"""Names that are told; of the others there is only the number."""

CRD: Final = Query(kinds.CRD, name=f"{COMPUTE_DOMAIN.plural}.{COMPUTE_DOMAIN.group}")
CLIQUES: Final = Query(kinds.CRD, name=f"{CLIQUE.plural}.{CLIQUE.group}")
CLASS: Final = Query(kinds.DEVICE_CLASS, name=CHANNEL_CLASS, versions=kinds.OLDER_DEVICES)
SLICES: Final = Query(kinds.RESOURCE_SLICE, fields=f"spec.driver={DRIVER}", versions=kinds.OLDER_DEVICES)
DEPLOYMENTS: Final = Query(kinds.DEPLOYMENT)
DOMAINS: Final = Query(COMPUTE_DOMAIN)
TEMPLATES: Final = Query(kinds.RESOURCE_CLAIM_TEMPLATE, versions=kinds.OLDER_DEVICES)
CLAIMS: Final = Query(kinds.RESOURCE_CLAIM, versions=kinds.OLDER_DEVICES)
LABELLED: Final = Query(kinds.NODE, labels=DOMAIN_LABEL)
ISLANDS: Final = Query(kinds.NODE, labels=FABRIC_LABEL)
QUESTIONS: Final = (CRD, CLIQUES, CLASS, SLICES, DEPLOYMENTS, DOMAINS, TEMPLATES, CLAIMS, LABELLED, ISLANDS)

KAI: Final = "kai-scheduler"
GATE: Final = "DynamicResourceAllocation=true"


@dataclass(frozen=True)
class Scene:
    """An installation, and what is asked of it."""

    site: Installation
    auto: bool
    """Whether new sets with GPUs are in domains."""
    planned: tuple[RequestedDomain, ...]
    """The domains of the sets that are there."""
    capacity_notes: tuple[str, ...] = ()
    """What the sets ask for and the nodes cannot give."""

    @cached_property
    def needed(self) -> bool:
        """Whether anything asks for domains, or has them."""
        return self.auto or bool(self.planned) or self.site.offer.serves(COMPUTE_DOMAIN)

    @property
    def hard(self) -> Level:
        """What it means when something is missing without which there are no domains at all."""
        return Level.HARD if self.auto else self.soft

    @property
    def soft(self) -> Level:
        """What it means when something is missing that domains would be better with."""
        return Level.WARNING if self.needed else Level.INFO

    @cached_property
    def definition(self) -> Definition | None:
        """The CRD, where it can be read."""
        found = self.site.answers.to(CRD).objects
        return definition(found[0].body) if found else None

    @cached_property
    def domains(self) -> tuple[Live, ...]:
        """The domains that are there."""
        return self.site.answers.to(DOMAINS).objects


Rule = Callable[[Scene], Iterator[Check]]


def checks(scene: Scene) -> Iterator[Check]:
    """Every check, in the order in which one thing rests on another."""
    for rule in RULES:
        yield from rule(scene)


def room(site: Installation) -> NodeCapacity | None:
    """The places for pods of domains, where they can be counted."""
    slices, claims = site.answers.to(SLICES), site.answers.to(CLAIMS)
    if not slices.known or not slices.served or not claims.known:
        return None
    taken = {node: nvidia_channels.domain_of(claim) for node, claim in nvidia_channels.holders(claims.objects)}
    return NodeCapacity(nvidia_channels.places(slices.objects), taken)


def _crd(scene: Scene) -> Iterator[Check]:
    what, offer, found = f"CRD {CRD.name}", scene.site.offer, scene.definition
    if doubt := offer.doubt(COMPUTE_DOMAIN):
        yield unknown(scene.hard, what, doubt)
    elif found is not None and not offer.serves(COMPUTE_DOMAIN):
        fault = (
            "is there, and not established yet" if not found.established else f"serves {_some(found.served)}, not {COMPUTE_DOMAIN.version}"
        )
        yield judged(scene.hard, what, fault, "", UPGRADE)
    else:
        fault = "" if offer.serves(COMPUTE_DOMAIN) else "is not installed"
        yield judged(scene.hard, what, fault, f"{COMPUTE_DOMAIN.version} is served", INSTALL)


def _schema(scene: Scene) -> Iterator[Check]:
    what, found = "ComputeDomain: spec.channel.resourceClaimTemplate.name", scene.definition
    if found is None:
        yield _unread(scene, scene.hard, what)
    else:
        yield judged(scene.hard, what, "" if found.has_template_name else "is not in the schema of the CRD", "is in the schema", UPGRADE)


def _generation(scene: Scene) -> Iterator[Check]:
    what, found = "ComputeDomain: numNodes", scene.definition
    if found is None:
        yield _unread(scene, Level.INFO, what)
    elif not found.has_mode:
        fault = f"{found.told}: numNodes 0 makes its pods run without NVLink between nodes, and nobody tells"
        yield Check(scene.soft, what, Outcome.BAD, fault, UPGRADE)
    else:
        yield Check(Level.INFO, what, Outcome.GOOD, found.told)


def _unread(scene: Scene, level: Level, what: str) -> Check:
    answer = scene.site.answers.to(CRD)
    return unknown(level, what, answer.fault or "there is no CRD to read")


def _resource_api(scene: Scene) -> Iterator[Check]:
    what, offer = "API resource.k8s.io", scene.site.offer
    served = offer.versions(kinds.RESOURCE_CLAIM_TEMPLATE.group, kinds.RESOURCE_CLAIM_TEMPLATE.plural)
    best = next((version for version in (kinds.RESOURCE_CLAIM_TEMPLATE.version, *kinds.OLDER_DEVICES) if version in served), "")
    remedy = "needs Kubernetes 1.34, or 1.32 with the feature gate DynamicResourceAllocation and the API switched on"
    if not served and (doubt := offer.doubt(kinds.RESOURCE_CLAIM_TEMPLATE)):
        yield unknown(scene.hard, what, doubt)
    else:
        older = best != kinds.RESOURCE_CLAIM_TEMPLATE.version
        told = f"{best} is served" + ("; claims that pods share (resourceSharing) need v1" if older else "")
        yield judged(scene.hard, what, "" if best else "is not served", told, remedy)


def _device_class(scene: Scene) -> Iterator[Check]:
    answer = scene.site.answers.to(CLASS)
    yield _there(scene.soft, f"DeviceClass {CHANNEL_CLASS}", answer, "is there" if answer.objects else "", INSTALL)


def _slices(scene: Scene) -> Iterator[Check]:
    answer = scene.site.answers.to(SLICES)
    count = len(nvidia_channels.places(answer.objects))
    told = f"{count} node{'s have' if count != 1 else ' has'} {CHANNEL}" if count else ""
    yield _there(
        scene.soft, f"ResourceSlices of {DRIVER}", answer, told, "see whether the driver's kubelet plugin runs on the nodes with GPUs"
    )


def _there(level: Level, what: str, answer: QueryResult, found: str, remedy: str) -> Check:
    if not answer.known:
        return unknown(level, what, answer.fault)
    return judged(level, what, "" if found else "there is none" if answer.served else "the cluster does not serve it", found, remedy)


def _controller(scene: Scene) -> Iterator[Check]:
    what, answer = "controller of the DRA driver", scene.site.answers.to(DEPLOYMENTS)
    found = _controllers(answer)
    if not answer.known or not found:
        yield _there(scene.soft, what, answer, "", INSTALL)
    for live in found:
        ready, wanted = get(live.body, ("status", "readyReplicas"), 0) or 0, get(live.body, ("spec", "replicas"), 1)
        told = f"Deployment {live.id.namespace}/{live.id.name}: {ready} of {wanted} ready"
        yield judged(scene.soft, what, "" if ready else told, told, f"kubectl -n {live.id.namespace} describe deployment {live.id.name}")


def _controllers(answer: QueryResult) -> list[Live]:
    return [live for live in answer.objects if any(live.labels.get(key) == "controller" for key in PARTS)]


def _driver(scene: Scene) -> Iterator[Check]:
    cliques, deployments = scene.site.answers.to(CLIQUES), scene.site.answers.to(DEPLOYMENTS)
    if not cliques.known:
        yield unknown(Level.INFO, "ComputeDomainCliques", cliques.fault)
    else:
        told = "there: the driver is 25.12 or later" if cliques.objects else "not there: the driver is older than 25.12, or none"
        yield Check(Level.INFO, "ComputeDomainCliques", Outcome.GOOD, told)
    images = sorted({str(one.get("image")) for live in _controllers(deployments) for one in _containers(live.body)})
    if images:
        yield Check(Level.INFO, "image of the DRA driver", Outcome.GOOD, _some(images))


def _names(scene: Scene) -> Iterator[Check]:
    what = "names of planned domains"
    faults = [f"{one.id.name}: {fault}" for one in scene.planned for fault in subdomain_faults(one.id.name)]
    long = [f"{one.id.name} is longer than {LONGEST_LABEL} characters: no label can hold it" for one in scene.planned if _is_long(one)]
    if scene.planned:
        told = f"{len({one.id for one in scene.planned})} domains, all of which can be made"
        yield judged(scene.soft, what, _some([*faults, *long]), told, "a shorter name for the workload, or for the domain")


def _is_long(one: RequestedDomain) -> bool:
    return len(one.id.name) > LONGEST_LABEL


def _templates(scene: Scene) -> Iterator[Check]:
    what, answer = "names of their claim templates", scene.site.answers.to(TEMPLATES)
    if not scene.planned:
        return
    if fault := answer.fault or scene.site.answers.to(DOMAINS).fault:
        yield unknown(scene.soft, what, fault)
        return
    uids, there = {live.id: live.uid for live in scene.domains}, {live.id: live for live in answer.objects}
    taken = []
    for one in {one.id: one for one in scene.planned}.values():
        live = there.get(kinds.RESOURCE_CLAIM_TEMPLATE.id(one.id.namespace, one.id.name))
        if live is not None and live.labels.get(DOMAIN_LABEL) != uids.get(one.id):
            taken.append(f"{live.id.namespace}/{live.id.name}")
    fault = f"taken by templates that are not of these domains: {_some(taken)}" if taken else ""
    yield judged(
        scene.soft, what, fault, "free, or the domain's own", "remove them: the driver never makes its own beside them, and says nothing"
    )


def _nodes(scene: Scene) -> Iterator[Check]:
    what, answer, domains = "nodes left behind", scene.site.answers.to(LABELLED), scene.site.answers.to(DOMAINS)
    if fault := answer.fault or domains.fault:
        yield unknown(scene.soft, what, fault)
        return
    uids = {live.uid for live in domains.objects}
    stale = [live.id.name for live in answer.objects if live.labels.get(DOMAIN_LABEL) not in uids]
    remedy = f"kubectl label node NAME {DOMAIN_LABEL}- once no pod on it uses a domain"
    fault = f"labelled for a domain that does not exist: {_some(stale)}" if stale else ""
    yield judged(scene.soft, what, fault, "none is labelled for a domain that does not exist", remedy)


def _leftovers(scene: Scene) -> Iterator[Check]:
    answer = scene.site.answers.to(DOMAINS)
    if not answer.known:
        yield unknown(scene.soft, "domains that wait for us", answer.fault)
        return
    owed = [live for live in answer.objects if live.deleting_since and _finalizers(live) == [FINALIZER]]
    fault = f"Terminating, and held by our finalizer alone: {_some(map(_place, owed))}" if owed else ""
    yield judged(
        scene.soft, "domains that wait for us", fault, "none", "engine sync; engine why computedomain/NAME says what they wait for"
    )
    if scene.site.sets is None:
        yield unknown(scene.soft, "domains without a workload", "the workloads could not be seen")
        return
    uids = {live.uid for live in scene.site.sets}
    ours = [live for live in answer.objects if live.labels.get(labels.MANAGED_BY) == labels.MANAGER]
    orphans = [live for live in ours if not any(owner.uid in uids for owner in live.owners)]
    fault = f"made for workloads that are gone: {_some(map(_place, orphans))}" if orphans else ""
    yield judged(scene.soft, "domains without a workload", fault, "none", "kubectl delete computedomain NAME, then engine sync")


def _scheduler(scene: Scene) -> Iterator[Check]:
    """KAI, where it is there: it gives out devices only where it is told to."""
    for live in scene.site.answers.to(DEPLOYMENTS).objects:
        for container in _containers(live.body):
            parts = str(container.get("image")).partition("@")[0].partition(":")[0].split("/")
            if KAI in parts[:-1] and parts[-1] in ("scheduler", "binder"):
                said = any(GATE in str(word) for word in (*_words(container, "args"), *_words(container, "command")))
                told = f"Deployment {live.id.namespace}/{live.id.name}"
                fault = "" if said else f"{told} runs without --feature-gates={GATE}: pods in domains are never scheduled by it"
                yield judged(scene.soft, f"KAI {parts[-1]}", fault, f"{told} gives out devices", f"add --feature-gates={GATE}")


def _crowding(scene: Scene) -> Iterator[Check]:
    what, islands = "room for planned domains", scene.site.answers.to(ISLANDS)
    if not scene.planned:
        return
    if room(scene.site) is None:
        yield unknown(scene.soft, what, "ResourceSlices or ResourceClaims cannot be seen")
    else:
        told = "every planned pod can have a node of its own"
        yield judged(
            scene.soft, what, _some(scene.capacity_notes), told, "more nodes, or fewer replicas: pods of one domain, too, need a node each"
        )
    names = {live.labels.get(FABRIC_LABEL) for live in islands.objects}
    count = len({one.id for one in scene.planned})
    fault = f"{count} domains for {len(names)} NVLink clique{'s' if len(names) > 1 else ''}" if names and count > len(names) else ""
    remedy = "where memory cannot be mapped between them (cuMemSetAccess fails): NCCL_MNNVL_ENABLE=0 or NCCL_CUMEM_ENABLE=0"
    if not islands.known:
        yield unknown(scene.soft, "domains in one NVLink clique", islands.fault)
    elif names:
        yield judged(scene.soft, "domains in one NVLink clique", fault and f"{fault}: some will share one", "one each can be had", remedy)


RULES: Final[tuple[Rule, ...]] = (
    _crd,
    _schema,
    _generation,
    _resource_api,
    _device_class,
    _slices,
    _controller,
    _driver,
    _names,
    _templates,
    _nodes,
    _leftovers,
    _scheduler,
    _crowding,
)


def demands(*, auto: bool) -> dict[Kind, str]:
    """R3, R5: where new sets are enrolled there must be something to enrol them in; otherwise nobody asks."""
    return {COMPUTE_DOMAIN: MISSING} if auto else {}


def _containers(body: Body) -> list[Body]:
    return mappings(get(body, ("spec", "template", "spec", "containers"), ()))


def _words(container: Body, field: str) -> tuple[Any, ...]:
    value = container.get(field)
    return tuple(value) if isinstance(value, list | tuple) else ()


def _finalizers(live: Live) -> list[Any]:
    return list(mapping(live.body.get("metadata")).get("finalizers") or ())


def _place(live: Live) -> str:
    return f"{live.id.namespace}/{live.id.name}"


def _some(names: Any) -> str:
    """The first of many names, and how many more there are."""
    listed = list(names)
    rest = len(listed) - SHOWN
    return ", ".join(listed[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
