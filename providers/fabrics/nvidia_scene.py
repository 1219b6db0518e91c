"""Scene: what can be seen of one ComputeDomain and all that has to do with it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from engine import conditions
from engine.ids import ResourceId
from engine.observed import Live
from engine.paths import get
from providers.fabrics import nvidia_channels
from providers.fabrics.nvidia_words import COMPUTE_DOMAIN, DOMAIN_LABEL, DRIVER
from resources.admission.annotations import mapping, mappings
from resources.base import kinds
from resources.domains import drain
from resources.ports.inspection import JoinedNode
from resources.ports.queries import Query, QueryResults

CLAIM_FAILED: Final = "FailedResourceClaimCreation"
SCHEDULING_FAILED: Final = "FailedScheduling"
PREPARE_FAILED: Final = "FailedPrepareDynamicResources"

DOMAINS: Final = Query(COMPUTE_DOMAIN)
LABELLED_TEMPLATES: Final = Query(kinds.RESOURCE_CLAIM_TEMPLATE, labels=DOMAIN_LABEL, versions=kinds.OLDER_DEVICES)
CLAIMS: Final = Query(kinds.RESOURCE_CLAIM, versions=kinds.OLDER_DEVICES)
DAEMONS: Final = Query(kinds.POD, labels=DOMAIN_LABEL)
DAEMON_SETS: Final = Query(kinds.DAEMON_SET, labels=DOMAIN_LABEL)
NODES: Final = Query(kinds.NODE, labels=DOMAIN_LABEL)
SLICES: Final = Query(kinds.RESOURCE_SLICE, fields=f"spec.driver={DRIVER}", versions=kinds.OLDER_DEVICES)


def within(namespace: str) -> tuple[Query, ...]:
    """What is asked about the namespace of a domain: domains, templates, claims, pods and what went wrong with them."""
    return (
        Query(COMPUTE_DOMAIN, namespace),
        Query(kinds.RESOURCE_CLAIM_TEMPLATE, namespace, versions=kinds.OLDER_DEVICES),
        Query(kinds.RESOURCE_CLAIM, namespace, versions=kinds.OLDER_DEVICES),
        Query(kinds.POD, namespace),
        Query(kinds.EVENT, namespace, fields="type=Warning"),
    )


def clues(domain: ResourceId) -> tuple[Query, ...]:
    """Everything that is looked at."""
    return (*within(domain.namespace), DOMAINS, LABELLED_TEMPLATES, CLAIMS, DAEMONS, DAEMON_SETS, NODES, SLICES)


def joined(domain: Live) -> tuple[JoinedNode, ...]:
    """The nodes that the driver says are in a domain."""
    nodes = mappings(get(domain.body, ("status", "nodes"), ()))
    return tuple(JoinedNode(str(one.get("name")), str(one.get("cliqueID") or ""), one.get("status") == "Ready") for one in nodes)


@dataclass(frozen=True)
class Scene:
    """One domain, and its template_references."""

    id: ResourceId
    answers: QueryResults
    now: datetime

    def _all(self, *questions: Query) -> tuple[Live, ...]:
        """What any of these questions has brought, each object once."""
        return tuple({live.id: live for question in questions for live in self.answers.to(question).objects}.values())

    @cached_property
    def domains(self) -> tuple[Live, ...]:
        """All domains that can be seen."""
        return self._all(self._within[0], DOMAINS)

    @cached_property
    def _within(self) -> tuple[Query, ...]:
        return within(self.id.namespace)

    @cached_property
    def domain(self) -> Live | None:
        """The domain itself, if it is there."""
        return next((live for live in self.domains if live.id == self.id), None)

    @property
    def uid(self) -> str:
        """The uid of the domain; empty if it is not there."""
        return self.domain.uid if self.domain is not None else ""

    @property
    def is_going(self) -> bool:
        """Whether it has been deleted and is still there."""
        return self.domain is not None and self.domain.deleting_since is not None

    @property
    def finalizers(self) -> list[str]:
        """Who holds it."""
        body = self.domain.body if self.domain is not None else {}
        return [str(one) for one in mapping(body.get("metadata")).get("finalizers") or ()]

    @cached_property
    def template_name(self) -> str:
        """The claim template through which pods get into it."""
        body = self.domain.body if self.domain is not None else {}
        return str(get(body, ("spec", "channel", "resourceClaimTemplate", "name"), "") or self.id.name)

    @cached_property
    def template(self) -> Live | None:
        """That template, if it is there."""
        wanted = kinds.RESOURCE_CLAIM_TEMPLATE.id(self.id.namespace, self.template_name)
        return next((live for live in self._all(self._within[1]) if live.id == wanted), None)

    @cached_property
    def pods(self) -> tuple[Live, ...]:
        """The pods that claim a place in it and have not ended, by name."""
        found = (live for live in self._all(self._within[3]) if drain.claims(live, self.template_name))
        return tuple(sorted(found, key=lambda live: live.id))

    @cached_property
    def claims(self) -> tuple[Live, ...]:
        """All claims that can be seen."""
        return self._all(self._within[2], CLAIMS)

    @cached_property
    def led(self) -> tuple[Live, ...]:
        """The claims that lead into the domain."""
        return tuple(claim for claim in self.claims if self.uid and nvidia_channels.domain_of(claim) == self.uid)

    @cached_property
    def warnings(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """Pod -> what was told of it: reasons and messages."""
        found: dict[str, list[tuple[str, str]]] = {}
        for live in self._all(self._within[4]):
            about = mapping(live.body.get("involvedObject"))
            if about.get("kind") == kinds.POD.name:
                told = str(live.body.get("reason") or ""), str(live.body.get("message") or "")
                found.setdefault(f"{about.get('name')} {about.get('uid') or ''}", []).append(told)
        return {name: tuple(told) for name, told in found.items()}

    def told(self, pod: Live, reason: str) -> Iterator[str]:
        """The messages of one reason about a pod of that uid; an event that names no uid is taken at its word."""
        for key in dict.fromkeys((f"{pod.id.name} {pod.uid}", f"{pod.id.name} ")):
            yield from (message for why, message in self.warnings.get(key, ()) if why == reason)

    def unscheduled(self, pod: Live) -> Iterator[str]:
        """Why a pod has no node, in the scheduler's words."""
        condition = conditions.find(mappings(get(pod.body, ("status", "conditions"), ())), "PodScheduled")
        if condition is not None and condition.get("status") != "True":
            yield str(condition.get("message") or "")
        yield from self.told(pod, SCHEDULING_FAILED)

    @cached_property
    def labels_of_nodes(self) -> Mapping[str, str]:
        """Node -> the uid of the domain that it is labelled for."""
        return {live.id.name: live.labels.get(DOMAIN_LABEL, "") for live in self._all(NODES)}

    @cached_property
    def daemons(self) -> Mapping[str, Live]:
        """Node -> the domain's daemon on it."""
        found = (live for live in self._all(DAEMONS) if live.labels.get(DOMAIN_LABEL) == self.uid)
        return {str(get(live.body, ("spec", "nodeName"), "")): live for live in found}

    @cached_property
    def made(self) -> tuple[Live, ...]:
        """What the driver has made for the domain: templates and DaemonSets, wherever they are."""
        found = self._all(LABELLED_TEMPLATES, self._within[1], DAEMON_SETS)
        return tuple(live for live in found if self.uid and live.labels.get(DOMAIN_LABEL) == self.uid)

    @cached_property
    def places(self) -> frozenset[str]:
        """The nodes that have a channel."""
        return nvidia_channels.places(self._all(SLICES))

    @cached_property
    def holders(self) -> Mapping[str, Live]:
        """Node -> the claim that has its channel."""
        return dict(nvidia_channels.holders(self.claims))

    def named(self, uid: str) -> str:
        """The domain of a uid, by name."""
        found = next((live for live in self.domains if live.uid == uid), None)
        return f"ComputeDomain {found.id.namespace}/{found.id.name}" if found else f"a ComputeDomain that does not exist (uid {uid})"


def node_of(pod: Live) -> str:
    """The node that a pod is bound to; empty if it has none."""
    return str(get(pod.body, ("spec", "nodeName"), "") or "")


def phase_of(pod: Live) -> str:
    """Pending, Running, …"""
    return str(get(pod.body, ("status", "phase"), "") or "")


def is_ready(pod: Live) -> bool:
    """Whether a pod is ready."""
    return conditions.is_true(mappings(get(pod.body, ("status", "conditions"), ())), "Ready")


def user_of(claim: Live) -> str:
    """The pod that a claim is reserved for, or was made for."""
    reserved: Iterable[Mapping[str, Any]] = mappings(get(claim.body, ("status", "reservedFor"), ()))
    name = next((str(one.get("name")) for one in reserved), "") or next((owner.name for owner in claim.owners), "")
    return f"{claim.id.namespace}/{name}" if name else f"claim {claim.id.namespace}/{claim.id.name}"
