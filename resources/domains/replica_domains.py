"""Fabric domains: within them accelerators of several nodes reach one another; made before the pods that are in them, gone after them.

What has an order here is the same for all vendors: the domain is made with our finalizer on it; the vendor's driver answers with a
ResourceClaimTemplate; then the pods are made that claim it. On the way out the pods and their claims go first, then the domain is
deleted, then the driver takes down what it has built, and our finalizer falls last.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from engine.ids import Owner, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.plan import Alarm, Wait
from engine.resource import Body, Resource, Stance
from resources.base import kinds, labels
from resources.base.manifest import manifest
from resources.domains import drain
from resources.domains.drain import User
from resources.domains.release import DomainRelease, leaving
from resources.domains.users import lost, users_of
from resources.model.domain import Domain, is_made_here, policy_of
from resources.model.template import Template
from resources.model.view import CliqueView, View
from resources.ports.configuration import Configuration
from resources.ports.fabric import INDEX, DomainRequest, Fabric

LONGEST_LABEL = 63


def render(view: View) -> Iterator[Resource]:
    """The domains that are a replica's own."""
    return (domain.resource for domain in view.domains if domain.resource is not None and not domain.request.shared)


def waiting(domains: Iterable[Domain]) -> Iterator[Wait]:
    """What the cluster owes them."""
    return (Wait(domain.id, domain.pending) for domain in domains if domain.pending)


def domains_of(view: View, clique: CliqueView) -> Iterator[Domain]:
    """The domains that the pods of a clique are to be in."""
    return (domain for domain in view.domains if clique.clique.name in domain.request.cliques)


def dressed(view: View, clique: CliqueView, spec: Body) -> dict[str, Any]:
    """The pod spec of a clique with its claims on the domains that it is to be in."""
    for domain in domains_of(view, clique):
        spec = domain.fabric.decorate_pod(spec, domain.template)
    return dict(spec)


def _domain_requests(template: Template, index: int) -> Iterator[tuple[Fabric, DomainRequest]]:
    """What a replica asks for: each domain once, also where a plain name and one with an index come to the same."""
    found: dict[tuple[ResourceId, bool], tuple[Fabric, DomainRequest]] = {}
    for fabric, request in template.domain_requests:
        name = request.name.replace(INDEX, str(index))
        key = fabric.kind.id(template.id.namespace, name), request.shared
        _, before = found.get(key, (fabric, request))
        found[key] = fabric, replace(request, name=name, cliques=before.cliques | request.cliques)
    yield from found.values()


def _domain(
    observed: Observed, template: Template, fabric: Fabric, request: DomainRequest, index: int, configuration: Configuration, memo: Memo
) -> Domain:
    name = request.name
    own = observed.slice(str(index))
    id = fabric.kind.id(template.id.namespace, name)
    live = own.objects.get(id) or observed.references.objects.get(id)
    source = observed.references.objects.get(
        kinds.RESOURCE_CLAIM_TEMPLATE.id(template.id.namespace, fabric.template(live, name)) if live else id
    )
    slices = tuple(observed.slices.values()) if request.shared else (own,)
    users = users_of(observed, fabric, live, slices) if live and live.deleting_since else ()
    stranded = lost(observed, fabric, live, slices) if live and not live.deleting_since else ()
    gaps = observed.incomplete, observed.unserved
    facts = (template, live, source, *(user.live for user in users), *stranded, *(" ".join(sorted(gap)) for gap in gaps), configuration)

    def make() -> Domain:
        looking = _Looking(observed, template, fabric, request, id, index)
        found = looking.domain(live, source, users)
        return replace(found, alarm=found.alarm or _replaced(id)) if stranded else found

    return memo.recall(("domain", fabric.name, request), facts, make)


def _replaced(id: ResourceId) -> Alarm:
    told = f"{id.kind} {id.name} was made again while pods used the one before it: they are in none until they are replaced"
    return Alarm(f"{id.kind}Replaced", told)


@dataclass(frozen=True, slots=True, eq=False)
class _Looking:
    """What a look at one domain needs."""

    observed: Observed
    template: Template
    fabric: Fabric
    request: DomainRequest
    id: ResourceId
    index: int

    def domain(self, live: Live | None, source: Live | None, users: Sequence[User]) -> Domain:
        """The domain, given what there is of it."""
        found = Domain(self.id, self.fabric, self.request, self.fabric.template(live, self.id.name), None)
        kind = self.fabric.kind
        if live is None and kind.name in self.observed.unserved:
            return self._blocked(found, f"the cluster does not serve {kind.name} of {kind.api_version}")
        if kind.name in self.observed.incomplete:
            return replace(found, resource=self._held("", live), trouble=f"{kind.name} objects were not seen completely")
        if live is None:
            # Of a set that is not there yet, all that it will be is shown.
            trouble = f"{kind.name} {self.id.name} is not made yet" if self.observed.root.uid else ""
            return replace(found, resource=self._resource(live), trouble=trouble)
        if self._is_foreign(live) and live.deleting_since is not None:
            why = f"{kind.name} {self.id.name} is another's, and is being deleted; it is made once that is gone"
            return replace(found, resource=self._held(why), trouble=why, pending=why)
        if self._is_foreign(live):
            root, where = self.template.id, self.id.namespace
            taken = f"{kind.name} {where}/{self.id.name} already exists but is not controlled by {root.kind} {where}/{root.name}"
            return self._blocked(found, taken)
        ours = not self.request.shared or is_made_here(live, self.fabric)
        if live.deleting_since is not None:
            return self._going(found, live, users) if ours else self._going_away(found)
        return self._standing(replace(found, resource=self._resource(live) if ours else None), live, source)

    def _is_foreign(self, live: Live) -> bool:
        """Whether it is not the replica's own, though it has that name; or is another's own, though we would share it."""
        if self.request.shared:
            return live.controller is not None and is_made_here(live, self.fabric)
        return live.controller is None or live.controller.uid != self.observed.root.uid

    def _blocked(self, found: Domain, why: str) -> Domain:
        whose = self.id.name if self.request.shared else f"for replica {self.index}"
        told = f"Failed to create {self.fabric.kind.name} {whose}: {why}"
        return replace(found, resource=self._held(why), trouble=why, alarm=Alarm(f"{self.fabric.kind.name}Failed", told, blocking=True))

    def _going(self, found: Domain, live: Live, users: Sequence[User]) -> Domain:
        """Deleted by somebody: it stays as long as it is in use, and is made again once it is gone (R26, N10)."""
        verdict = drain.judge(users, None)
        trouble = f"{live.id.kind} {live.id.name} is being deleted"
        if verdict.value:
            alarm = Alarm(f"{live.id.kind}Terminating", f"{trouble}, and stays until what uses it is gone")
            return replace(found, resource=self._held(f"is being deleted; {verdict.value}", live), trouble=trouble, alarm=alarm)
        gone = replace(self._resource(live), stance=Stance.DROP, why="is being deleted; it is made again once it is gone")
        return replace(found, resource=gone, trouble=trouble, pending="is being deleted; it is made again once it is gone")

    def _going_away(self, found: Domain) -> Domain:
        """A user's, deleted by its user: who is in it is left alone, and who is to be in it waits until it is gone (N10)."""
        trouble = f"{self.id.kind} {self.id.name} is being deleted"
        return replace(found, trouble=trouble, alarm=Alarm(f"{self.id.kind}Terminating", f"{trouble}; new pods wait until it is gone"))

    def _standing(self, found: Domain, live: Live, source: Live | None) -> Domain:
        """There, and whether the driver has answered."""
        what = f"{kinds.RESOURCE_CLAIM_TEMPLATE.name} {found.template}"
        for gap, told in ((self.observed.unserved, "is not served by the cluster"), (self.observed.incomplete, "cannot be seen")):
            if source is None and kinds.RESOURCE_CLAIM_TEMPLATE.name in gap:
                return replace(found, trouble=f"{what} of {live.id.kind} {live.id.name} {told}")
        if source is None:
            why = f"{what} of {live.id.kind} {live.id.name} is not made yet by its driver"
        elif source.deleting_since is not None:
            why = f"{what} of {live.id.kind} {live.id.name} is being deleted"
        elif unready := self.fabric.unready(live, source):
            why = f"{what} does not lead into {live.id.kind} {live.id.name}: it {unready}"
        else:
            return found
        return replace(found, trouble=why, pending=why)

    def _held(self, why: str, live: Live | None = None) -> Resource:
        return replace(self._resource(live), stance=Stance.HOLD, why=why or f"{self.fabric.kind.name} objects were not seen completely")

    def _resource(self, live: Live | None) -> Resource:
        root, shared = self.template.id, self.request.shared
        owner = Owner(root, kinds.PODCLIQUESET.api_version, controller=not shared)
        policy = policy_of(self.fabric, shared=shared)
        told = labels.child(_part_of(root.name, live) if shared else root.name, self.fabric.component(self.request))
        if len(self.id.name) <= LONGEST_LABEL:
            told[labels.NAME] = self.id.name
        if not shared:
            told[labels.REPLICA_INDEX] = str(self.index)
        spec = self.fabric.spec(self.id.name)
        body = manifest(self.fabric.kind, self.id.namespace, self.id.name, told, finalizers=policy.finalizers, spec=spec)
        why = f"pods of {root.name} ask for it by name" if shared else f"the {self.fabric.name} domain of replica {self.index}"
        return Resource(self.id, body, why, (owner,), policy=policy)


def _part_of(root: str, live: Live | None) -> str:
    """The set that a shared domain is listed with: whoever made it, as long as it is in it, then another (N8)."""
    told = live.labels.get(labels.PART_OF, "") if live is not None else ""
    stays = live is not None and any(owner.name == told and owner.kind == kinds.PODCLIQUESET.name for owner in live.owners)
    return told if stays else root


@dataclass(frozen=True, slots=True, eq=False)
class Fabrics:
    """The domains of a replica: those that its pods are to be in, and those that are not asked for any more."""

    domains: tuple[Domain, ...] = ()
    leaving: DomainRelease = DomainRelease()


NONE = Fabrics()


def look(observed: Observed, template: Template, index: int, configuration: Configuration, now: datetime, memo: Memo) -> Fabrics:
    """The domains of a replica; the same as before where nothing about them has changed."""
    slice = observed.slice(str(index))
    there = [live for fabric in configuration.fabrics for live in slice.of(fabric.kind.name)]
    if not there and not template.domain_requests:
        return NONE
    domains = tuple(
        _domain(observed, template, fabric, request, index, configuration, memo) for fabric, request in _domain_requests(template, index)
    )
    wanted = {domain.id for domain in domains}
    unwanted = [live for live in there if live.id not in wanted]
    why = f"nothing asks for it in replica {index}"
    gone = leaving(observed, unwanted, configuration, why, now, (slice,)) if unwanted else DomainRelease()
    return memo.recall(("fabrics", index), (*domains, *gone.resources), lambda: Fabrics(domains, gone))


def shared(fabrics: Iterable[Fabrics]) -> Mapping[ResourceId, Domain]:
    """The domains that replicas share, each once."""
    return {domain.id: domain for found in fabrics for domain in found.domains if domain.request.shared}
