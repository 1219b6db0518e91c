"""Evidence: the objects that explain the state of one ComputeDomain and of its pods, and the queries for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from msgspec import Struct

from engine import conditions
from engine.ids import ResourceId
from engine.observed import Live
from engine.paths import get
from engine.report.printable import some
from engine.resource import Body
from providers.fabrics.nvidia import domain_facts
from providers.fabrics.nvidia.domain_facts import is_ready_without_nodes, joined_nodes, template_name
from providers.fabrics.nvidia.driver import (
    CONTROLLERS,
    PLUGINS,
    ImexMode,
    Installed,
    controllers,
    imex_mode,
    in_namespace,
    installed,
    plugins,
    tracks_cliques,
)
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, COMPUTE_DOMAIN_CLIQUE, DOMAIN_LABEL, DRIVER, NAMED, NVLINK_CLIQUE_LABEL
from providers.fabrics.nvidia.pod_messages import PrepareFailure, SchedulingFailure, prepare_failures, scheduling_failures
from resources.base import kinds, labels
from resources.base.fields import annotations_of, mapping, mappings
from resources.domains.release import has_ended, users_of_claim, uses_template
from resources.model.domain import REQUIRED_TERMS
from resources.ports.checks import Query, QueryResults
from resources.ports.fabric import GROUP_INDEX, INDEX

CLAIM_FAILED: Final = "FailedResourceClaimCreation"
SCHEDULING_FAILED: Final = "FailedScheduling"
PREPARE_FAILED: Final = "FailedPrepareDynamicResources"
"""Reasons of the warning events about pods: no claim was created, no node was found, the kubelet could not prepare the claim."""

DOMAINS: Final = Query(COMPUTE_DOMAIN, versions=COMPUTE_DOMAIN.newer)
LABELLED_TEMPLATES: Final = Query(kinds.RESOURCE_CLAIM_TEMPLATE, labels=DOMAIN_LABEL, versions=kinds.OLDER_RESOURCE_VERSIONS)
CLAIMS: Final = Query(kinds.RESOURCE_CLAIM, versions=kinds.OLDER_RESOURCE_VERSIONS)
DAEMONS: Final = Query(kinds.POD, labels=DOMAIN_LABEL)
DAEMON_SETS: Final = Query(kinds.DAEMON_SET, labels=DOMAIN_LABEL)
CLIQUES: Final = Query(COMPUTE_DOMAIN_CLIQUE, labels=DOMAIN_LABEL)
NODES: Final = Query(kinds.NODE, labels=DOMAIN_LABEL)
NVLINK_NODES: Final = Query(kinds.NODE, labels=NVLINK_CLIQUE_LABEL)
SLICES: Final = Query(kinds.RESOURCE_SLICE, fields=f"spec.driver={DRIVER}", versions=kinds.OLDER_RESOURCE_VERSIONS)


class NamespaceQueries(Struct, frozen=True):
    """The queries for the objects in the namespace of a domain."""

    domains: Query
    templates: Query
    claims: Query
    pods: Query
    warnings: Query


def namespace_queries(namespace: str) -> NamespaceQueries:
    """The queries for the objects in one namespace."""
    return NamespaceQueries(
        Query(COMPUTE_DOMAIN, namespace, versions=COMPUTE_DOMAIN.newer),
        Query(kinds.RESOURCE_CLAIM_TEMPLATE, namespace, versions=kinds.OLDER_RESOURCE_VERSIONS),
        Query(kinds.RESOURCE_CLAIM, namespace, versions=kinds.OLDER_RESOURCE_VERSIONS),
        Query(kinds.POD, namespace),
        Query(kinds.EVENT, namespace, fields="type=Warning"),
    )


def domain_queries(domain: ResourceId) -> tuple[Query, ...]:
    """Everything that a diagnosis reads."""
    local = namespace_queries(domain.namespace)
    cluster = (DOMAINS, LABELLED_TEMPLATES, CLAIMS, *CONTROLLERS, PLUGINS, DAEMONS, DAEMON_SETS, CLIQUES, NODES, NVLINK_NODES, SLICES)
    return (local.domains, local.templates, local.claims, local.pods, local.warnings, *cluster)


@dataclass(frozen=True)
class Evidence:
    """One domain, which may not exist, and the results of `domain_queries` about it."""

    id: ResourceId
    results: QueryResults
    now: datetime

    def _all(self, *queries: Query) -> tuple[Live, ...]:
        """The objects that these queries found, each once."""
        return tuple({live.id: live for query in queries for live in self.results.of(query).objects}.values())

    @cached_property
    def _local(self) -> NamespaceQueries:
        return namespace_queries(self.id.namespace)

    @property
    def driver_words(self) -> str:
        """The driver, with its namespace if that is known, for messages."""
        return in_namespace("DRA driver", self.driver_namespace)

    @property
    def controller_words(self) -> str:
        """The driver's controller, with its namespace if that is known, for messages."""
        return in_namespace("controller of the DRA driver", self.driver_namespace)

    @cached_property
    def domains(self) -> tuple[Live, ...]:
        """All domains of the cluster."""
        return self._all(self._local.domains, DOMAINS)

    @cached_property
    def domain(self) -> Live | None:
        """The domain, if it exists."""
        return next((live for live in self.domains if live.id == self.id), None)

    @property
    def uid(self) -> str:
        """The uid of the domain; empty if it does not exist."""
        return self.domain.uid if self.domain is not None else ""

    @property
    def is_terminating(self) -> bool:
        """Whether the domain is being deleted."""
        return self.domain is not None and self.domain.deleting_since is not None

    @property
    def finalizers(self) -> list[str]:
        """The finalizers of the domain."""
        return finalizers_of(self.domain) if self.domain is not None else []

    @cached_property
    def template_name(self) -> str:
        """The name of the ResourceClaimTemplate that pods of the domain claim."""
        return template_name(self.domain, self.id.name)

    @cached_property
    def template(self) -> Live | None:
        """The ResourceClaimTemplate with the name `template_name`, if it exists."""
        id = kinds.RESOURCE_CLAIM_TEMPLATE.id(self.id.namespace, self.template_name)
        return next((live for live in self._all(self._local.templates) if live.id == id), None)

    @cached_property
    def pods(self) -> tuple[Live, ...]:
        """The pods that claim the domain, or an earlier one of its name, and have not ended, by name."""
        pods = (live for live in self.local_pods if uses_template(live, self.template_name) or self._claims_earlier_domain(live))
        return tuple(sorted(pods, key=lambda live: live.id))

    @cached_property
    def local_pods(self) -> tuple[Live, ...]:
        """All pods in the namespace of the domain."""
        return self._all(self._local.pods)

    def is_cut_off(self, pod: Live) -> bool:
        """Whether the domain that a pod of this domain claims is being deleted or does not exist any more."""
        uids = self._domains_by_pod.get(pod.uid, frozenset())
        return (self.is_terminating and (not uids or self.uid in uids)) or self.has_lost_domain(pod)

    def has_lost_domain(self, pod: Live) -> bool:
        """Whether a claim of a pod refers to a domain that does not exist. A claim is bound to the uid of its domain."""
        uids = self._domains_by_pod.get(pod.uid, frozenset())
        return self.results.of(self._local.domains).known and not uids <= self._existing_uids

    @cached_property
    def _existing_uids(self) -> frozenset[str]:
        """The uids of all domains of the cluster."""
        return frozenset(live.uid for live in self.domains)

    def _claims_earlier_domain(self, pod: Live) -> bool:
        """Whether a pod has lost its domain and its annotation names this one. Its template may have had another name."""
        name = str(annotations_of(pod.body).get(NAMED) or "")
        index = str(pod.labels.get(labels.REPLICA_INDEX, ""))
        name = name.replace(INDEX, index).replace(GROUP_INDEX, str(pod.labels.get(labels.GROUP_REPLICA_INDEX, "")))
        return name == self.id.name and not has_ended(pod) and self.has_lost_domain(pod)

    @cached_property
    def _domains_by_pod(self) -> Mapping[str, frozenset[str]]:
        """Uid of a pod -> the uids of the domains that its claims refer to."""
        domains: dict[str, set[str]] = {}
        for claim in self._claims_by_name.values():
            if uid := domain_facts.domain_uid(claim):
                for user in users_of_claim(claim):
                    domains.setdefault(user, set()).add(uid)
        return {user: frozenset(uids) for user, uids in domains.items()}

    @cached_property
    def claims(self) -> tuple[Live, ...]:
        """All resource claims of the cluster."""
        return self._all(self._local.claims, CLAIMS)

    @cached_property
    def _templates(self) -> Mapping[str, Live]:
        """The ResourceClaimTemplates in the namespace of the domain, by name."""
        templates = (live for live in self._all(self._local.templates) if live.id.namespace == self.id.namespace)
        return {live.id.name: live for live in templates}

    @cached_property
    def _domain_templates(self) -> frozenset[str]:
        """The names of the ResourceClaimTemplates of all domains in the namespace, whether they exist or not."""
        domains = (live for live in self.domains if live.id.namespace == self.id.namespace)
        return frozenset({self.template_name, *(template_name(live, live.id.name) for live in domains)})

    @cached_property
    def _claims_by_name(self) -> Mapping[str, Live]:
        """The resource claims in the namespace of the domain, by name."""
        return {live.id.name: live for live in self.claims if live.id.namespace == self.id.namespace}

    def channel_claims(self, pod: Live) -> Mapping[str, int]:
        """The claims of a pod that take channels: name in the pod spec -> how many. A ResourceClaim that it lists twice counts once."""
        by_source: dict[str, tuple[str, int]] = {}
        for entry in mappings(get(pod.body, ("spec", "resourceClaims"), ())):
            name, existing = str(entry.get("name")), entry.get("resourceClaimName")
            source = f"claim {existing}" if existing else f"entry {name}"
            by_source.setdefault(source, (name, self._channels_of(entry)))
        return {name: count for name, count in by_source.values() if count}

    def _channels_of(self, entry: Body) -> int:
        """The number of channels that a claim of a pod spec takes."""
        live = self._claims_by_name.get(str(entry.get("resourceClaimName")))
        if live is not None:
            return domain_facts.claimed_channels(mapping(live.body.get("spec")))
        name = str(entry.get("resourceClaimTemplateName"))
        live = self._templates.get(name)
        count = domain_facts.claimed_channels(mapping(get(live.body, ("spec", "spec"), {}))) if live is not None else 0
        return max(count, int(name in self._domain_templates))

    @cached_property
    def domain_claims(self) -> tuple[Live, ...]:
        """The resource claims that refer to the domain."""
        return tuple(claim for claim in self.claims if self.uid and domain_facts.domain_uid(claim) == self.uid)

    @cached_property
    def warnings(self) -> Mapping[tuple[str, str], tuple[tuple[str, str], ...]]:
        """Name and uid of a pod -> reason and message of its warning events."""
        events: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for live in self._all(self._local.warnings):
            about = mapping(live.body.get("involvedObject"))
            if about.get("kind") == kinds.POD.name:
                event = str(live.body.get("reason") or ""), str(live.body.get("message") or "")
                events.setdefault((str(about.get("name")), str(about.get("uid") or "")), []).append(event)
        return {pod: tuple(listed) for pod, listed in events.items()}

    def _warnings_of(self, pod: Live, reason: str) -> Iterator[str]:
        """The messages of the warning events with this reason about a pod. An event without a uid is matched by the pod's name."""
        for key in dict.fromkeys(((pod.id.name, pod.uid), (pod.id.name, ""))):
            yield from (message for event_reason, message in self.warnings.get(key, ()) if event_reason == reason)

    def lacks_claim(self, pod: Live) -> bool:
        """Whether no claim could be created for a pod."""
        return any(True for _ in self._warnings_of(pod, CLAIM_FAILED))

    def prepare_failures(self, pod: Live) -> frozenset[PrepareFailure]:
        """Why the kubelet could not prepare the claims of a pod; empty if it said nothing of that."""
        return prepare_failures(self._warnings_of(pod, PREPARE_FAILED))

    def scheduling_failures(self, pod: Live) -> frozenset[SchedulingFailure]:
        """Why a pod has no node, as far as the scheduler said it and that is known."""
        return scheduling_failures(self._unscheduled(pod))

    def _unscheduled(self, pod: Live) -> Iterator[str]:
        """The scheduler's messages about why a pod has no node."""
        condition = conditions.find(mappings(get(pod.body, ("status", "conditions"), ())), "PodScheduled")
        if condition is not None and condition.get("status") != "True":
            yield str(condition.get("message") or "")
        yield from self._warnings_of(pod, SCHEDULING_FAILED)

    @cached_property
    def node_labels(self) -> Mapping[str, str]:
        """Node -> the uid of the domain that it is labelled for."""
        return {live.id.name: live.labels.get(DOMAIN_LABEL, "") for live in self._all(NODES) if DOMAIN_LABEL in live.labels}

    @cached_property
    def nvlink_cliques(self) -> Mapping[str, str]:
        """Node -> the NVLink clique that its label names."""
        return {live.id.name: live.labels[NVLINK_CLIQUE_LABEL] for live in self._all(NVLINK_NODES) if live.labels.get(NVLINK_CLIQUE_LABEL)}

    @cached_property
    def daemons(self) -> Mapping[str, Live]:
        """Node -> the domain's daemon pod on it."""
        daemons = (live for live in self._all(DAEMONS) if live.labels.get(DOMAIN_LABEL) == self.uid)
        return {str(get(live.body, ("spec", "nodeName"), "")): live for live in daemons}

    @cached_property
    def driver_objects(self) -> tuple[Live, ...]:
        """The ResourceClaimTemplates and DaemonSets that the driver created for the domain, in every namespace."""
        objects = self._all(LABELLED_TEMPLATES, self._local.templates, DAEMON_SETS)
        return tuple(live for live in objects if self.uid and live.labels.get(DOMAIN_LABEL) == self.uid)

    @cached_property
    def driver_namespace(self) -> str:
        """The namespace of the DRA driver, found by its controller, its plugin or a daemon; empty if none of these was found."""
        daemons = (live.id.namespace for live in self._all(DAEMON_SETS, DAEMONS) if DOMAIN_LABEL in live.labels)
        return self.driver.namespace or next(daemons, "")

    @property
    def driver(self) -> Installed:
        """Where the driver is installed, according to its controller or its kubelet plugin."""
        return installed((*self._controllers, *plugins(self._all(PLUGINS))))

    @cached_property
    def _controllers(self) -> list[Live]:
        return controllers(self._all(*CONTROLLERS))

    @cached_property
    def is_host_managed(self) -> bool:
        """Whether the hosts run IMEX instead of the driver, as its controller says.

        Where that cannot be read: the domain is Ready and not being deleted, pods run in it, and it has neither nodes nor a DaemonSet.
        """
        if (mode := imex_mode(self._controllers)) is not None:
            return mode is ImexMode.HOST
        runs = any(phase_of(pod) == "Running" and not self.has_lost_domain(pod) for pod in self.pods)
        return (
            self.domain is not None
            and not self.is_terminating
            and runs
            and is_ready_without_nodes(self.domain)
            and self.results.of(DAEMON_SETS).known
            and not any(live.id.kind == kinds.DAEMON_SET.name for live in self.driver_objects)
        )

    @cached_property
    def predates_cliques(self) -> bool:
        """Whether nodes of an NVLink clique joined the domain before the driver tracked them in ComputeDomainCliques."""
        cliques = self.results.of(CLIQUES)
        return (
            cliques.known
            and cliques.served
            and bool(self._controllers)
            and tracks_cliques(self._controllers)
            and self.domain is not None
            and any(node.island for node in joined_nodes(self.domain))
            and not any(live.labels.get(DOMAIN_LABEL) == self.uid for live in cliques.objects)
        )

    @cached_property
    def eligible_nodes(self) -> frozenset[str]:
        """The nodes that have a channel."""
        return domain_facts.eligible_nodes(self._all(SLICES))

    @cached_property
    def allocations(self) -> Mapping[str, Live]:
        """Node -> the claim that uses its channel."""
        return dict(domain_facts.allocations(self.claims))

    def domain_named(self, uid: str) -> str:
        """The domain with this uid in words, for messages."""
        live = next((live for live in self.domains if live.uid == uid), None)
        return f"ComputeDomain {live.id.namespace}/{live.id.name}" if live else f"a ComputeDomain that does not exist (uid {uid})"


def finalizers_of(live: Live) -> list[str]:
    """The finalizers of an object."""
    return [str(name) for name in mapping(live.body.get("metadata")).get("finalizers") or ()]


def node_of(pod: Live) -> str:
    """The node that a pod is bound to; empty if it has none."""
    return str(get(pod.body, ("spec", "nodeName"), "") or "")


def phase_of(pod: Live) -> str:
    """The phase of a pod: Pending, Running, …"""
    return str(get(pod.body, ("status", "phase"), "") or "")


def container_problem(pod: Live) -> str:
    """Why a container of a pod waits, e.g. CrashLoopBackOff; empty if none does."""
    statuses = mappings(get(pod.body, ("status", "containerStatuses"), ()))
    reasons = (str(mapping(mapping(status.get("state")).get("waiting")).get("reason") or "") for status in statuses)
    return next(filter(None, reasons), "")


def is_ready(pod: Live) -> bool:
    """Whether a pod is ready."""
    return conditions.is_true(mappings(get(pod.body, ("status", "conditions"), ())), "Ready")


def pods_of(claim: Live) -> tuple[ResourceId, ...]:
    """The pods that a claim is reserved for, else the pod that owns it; each once."""
    reserved = [
        str(user.get("name")) for user in mappings(get(claim.body, ("status", "reservedFor"), ())) if user.get("resource") == "pods"
    ]
    names = reserved or [owner.name for owner in claim.owners if owner.kind == kinds.POD.name]
    return tuple(kinds.POD.id(claim.id.namespace, name) for name in dict.fromkeys(names))


def user_of(claim: Live) -> str:
    """The pods that a claim is reserved for or owned by, in words for messages; without such a pod, the claim itself."""
    pods = [f"{pod.namespace}/{pod.name}" for pod in pods_of(claim)]
    return f"pod{'s' if len(pods) > 1 else ''} {some(pods)}" if pods else f"claim {claim.id.namespace}/{claim.id.name}"


def required_in_clique(pod: Live) -> bool:
    """Whether a pod must be in the NVLink clique of the pods that its affinity selects."""
    terms = mappings(get(pod.body, ("spec", "affinity", "podAffinity", REQUIRED_TERMS), ()))
    return any(term.get("topologyKey") == NVLINK_CLIQUE_LABEL for term in terms)
