"""ResourceClaims: devices that pods share, claimed by a set, a scaling group or a clique, once for all its replicas or once for each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import Owner, ResourceId
from engine.observed import Live, Observed
from engine.plan import Alarm
from engine.reason import Because, Reason
from engine.resource import Body, Hold, Policy, Resource, Want
from resources.base import kinds, labels, names
from resources.base.fields import manifest, omitted_fields
from resources.children import absence, podclique
from resources.children.child_kind import DeletionGroup, unexpected
from resources.model.pod_facts import claims_of, pod_spec_of, reserved_for
from resources.model.sharing import Share
from resources.model.template import Template
from resources.model.view import SET, CliqueView, GroupView, View, group_replica
from resources.status.podcliqueset import DEPENDENCY_MISSING, NOT_SHARED

POLICY = Policy(seeded=(("spec",),), omitted=omitted_fields(kinds.RESOURCE_CLAIM))
"""The spec of a claim is sent on creation only: it is immutable."""
MAX_USERS: Final = 5
"""How many of the pods that keep a claim are named at most."""


class ClaimLevel(Struct, frozen=True, eq=False):
    """The set, group or clique that owns claims: it determines their names and labels."""

    owner: Owner
    labels: Mapping[str, str]
    index_label: str
    """The label with the index of the replica that a claim belongs to."""
    shares: Sequence[Share]

    def id(self, share: Share, index: int) -> ResourceId:
        """The claim that the replica with that index uses."""
        name = names.claim(self.owner.id.name, index if share.per_replica else None, share.name)
        return kinds.RESOURCE_CLAIM.id(self.owner.id.namespace, name)


def _level_of_set(template: Template) -> ClaimLevel:
    owner = Owner(template.id, kinds.PODCLIQUESET.api_version)
    return ClaimLevel(owner, labels.child(template.id.name, "resource-claim"), labels.REPLICA_INDEX, template.sharing.of_set)


def _level_of_group(view: View, group: GroupView) -> ClaimLevel:
    claim_labels = {**labels.child(view.root, "resource-claim"), labels.SCALING_GROUP: group.name}
    shares = view.template.sharing.of_groups[group.group.name]
    return ClaimLevel(Owner(group.id, kinds.SCALING_GROUP.api_version), claim_labels, labels.GROUP_REPLICA_INDEX, shares)


def _level_of_clique(view: View, clique: CliqueView) -> ClaimLevel:
    claim_labels = {**labels.child(view.root, "resource-claim"), labels.PODCLIQUE: clique.name}
    shares = view.template.sharing.of_cliques[clique.clique.name]
    return ClaimLevel(Owner(clique.id, kinds.PODCLIQUE.api_version), claim_labels, labels.POD_INDEX, shares)


def shared_claims(template: Template, lives: Mapping[ResourceId, Live]) -> Iterator[Want | Hold]:
    """The claims that all replicas of a set share. `lives`: the objects that the set has once for all its replicas."""
    level = _level_of_set(template)
    for share in level.shares:
        if not share.per_replica:
            yield _claim(level, share, 0, lives, exists=False)


def former_shared_claims(observed: Observed, template: Template) -> Iterator[Want | Hold]:
    """The claims of all replicas of a set that pods still use although the template has them no longer."""
    level = _level_of_set(template)
    for live in observed.slice(SET).of(kinds.RESOURCE_CLAIM.name):
        if not _is_requested(level, live):
            pods = (pod for part in observed.slices.values() for pod in part.of(kinds.POD.name))
            yield from _while_in_use(level, live, pods)


def render(view: View) -> Iterator[Want | Hold]:
    """The claims of one replica: its own, and those of its scaling groups and cliques; and those that pods still use although the template
    has them no longer."""
    requested = () if view.template.sharing.is_empty else tuple(_requested(view))
    yield from requested
    ids = {each.id for each in requested}
    for live in view.lives.of(kinds.RESOURCE_CLAIM.name):
        level = _level_in_view(view, live) if live.id not in ids else None
        if level is not None and not _is_requested(level, live):
            yield from _while_in_use(level, live, view.lives.of(kinds.POD.name))


def _requested(view: View) -> Iterator[Want | Hold]:
    for share in view.template.sharing.of_set:
        if share.per_replica:
            yield _claim_in_view(view, _level_of_set(view.template), share, view.index)
    for group in view.groups:
        if not group.terminating:
            level = _level_of_group(view, group)
            yield from _claims_of_level(view, level, range(group.replicas), partial(absence.of_group_replica, view, group))
    for clique in view.cliques:
        if view.keeps(clique):
            yield from _of_clique(view, clique)


def _of_clique(view: View, clique: CliqueView) -> Iterator[Want | Hold]:
    """One claim for each pod index in use. The claim of an index that is no longer used stays until its last pod is gone."""
    level = _level_of_clique(view, clique)
    used = {pod.index for pod in clique.assignment.kept} | {pod.index for pod in clique.assignment.new}
    indices = sorted(index for index in used if index is not None)
    yield from _claims_of_level(view, level, indices, partial(absence.of_pod, view, clique))
    unused = {pod.index: pod for pod in clique.pods if pod.index is not None and pod.index not in used}
    for share in level.shares:
        for index, pod in sorted(unused.items()) if share.per_replica else ():
            yield Hold(level.id(share, index), f"waits for {pod.name} to be gone")


def _claims_of_level(
    view: View, level: ClaimLevel, indices: Sequence[int], why_absent: Callable[[int], Reason | None]
) -> Iterator[Want | Hold]:
    """One claim for each of these replicas, or a single one for all, for each share of the level.

    `why_absent`: the index of a replica -> why it has no objects yet.
    """
    for share in level.shares:
        for index in indices if share.per_replica else (0,):
            claim = _claim_in_view(view, level, share, index)
            is_new = share.per_replica and claim.id not in view.lives.objects and isinstance(claim, Want)
            yield replace(claim, reason=why_absent(index)) if is_new else claim


def _claim_in_view(view: View, level: ClaimLevel, share: Share, index: int) -> Want | Hold:
    return _claim(level, share, index, view.lives.objects, exists=level.id(share, index) in view.lives.objects)


def _claim(level: ClaimLevel, share: Share, index: int, lives: Mapping[ResourceId, Live], *, exists: bool) -> Want | Hold:
    """A claim; deferred if it does not exist and its template is missing, or while it is being deleted and pods use it."""
    id = level.id(share, index)
    live = lives.get(id)
    if live is not None and live.deleting_since is not None and (pods := _running_users(live, lives)):
        return Hold(id, _why_kept(pods), (level.owner,), blocked=True, reason=Reason.IN_USE)
    if share.blocker and not exists:
        return Hold(id, share.blocker, (level.owner,), reason=share.reason, blocked=True)
    claim_labels = {**level.labels, level.index_label: str(index)} if share.per_replica else level.labels
    body = manifest(kinds.RESOURCE_CLAIM, id.namespace, id.name, claim_labels, spec=share.spec)
    users = f"replica {index}" if share.per_replica else "all replicas"
    return Want(id, f"claim {share.name} for {users} of {level.owner.id.name}", (level.owner,), body=body, policy=POLICY)


def _level_in_view(view: View, live: Live) -> ClaimLevel | None:
    """The level that owns a live claim; None if its clique or group, or that replica of the group, is removed."""
    if live.controller is None or live.controller.kind == kinds.PODCLIQUESET.name:
        return _level_of_set(view.template)
    for clique in view.cliques:
        if clique.live is not None and clique.live.uid == live.controller.uid:
            return _level_of_clique(view, clique) if view.keeps(clique) else None
    group, index = view.group_of(live), group_replica(live)
    if group is None or group.terminating or (index is not None and index >= group.replicas):
        return None
    return _level_of_group(view, group)


def _is_requested(level: ClaimLevel, live: Live) -> bool:
    """Whether an entry of the level asks for a live claim, or for one of its name and another index."""
    index = names.index_in(live.labels.get(level.index_label, "0")) or 0
    return any(level.id(share, index) == live.id for share in level.shares)


def _while_in_use(level: ClaimLevel, live: Live, pods: Iterable[Live]) -> Iterator[Want | Hold]:
    """A claim that the template has no longer, as it is, while any of these pods uses it: they keep their devices. Nothing if none does."""
    users = sorted(pod.id.name for pod in pods if _uses(pod, live.id))
    if not users:
        return
    if live.deleting_since is not None:
        yield Hold(live.id, _why_kept(users), (level.owner,), blocked=True, reason=Reason.IN_USE)
        return
    body = manifest(kinds.RESOURCE_CLAIM, live.id.namespace, live.id.name, live.labels, spec=live.body["spec"])
    yield Want(live.id, f"claim {live.id.name}, which pods of {level.owner.id.name} still use", (level.owner,), body=body, policy=POLICY)


def _uses(pod: Live, claim: ResourceId) -> bool:
    """Whether a pod that is not being deleted uses a claim."""
    return pod.deleting_since is None and claim in claims_of(pod.id.namespace, pod_spec_of(pod.body))


def template_alarms(resources: Iterable[Resource], template: Template) -> Iterator[Alarm]:
    """An alarm for each template that claims among these resources may not be made from, or that does not exist."""
    if template.sharing.is_empty:
        return
    missing = template.sharing.missing
    held = [resource for resource in resources if isinstance(resource, Hold)]
    for why in dict.fromkeys(resource.why for resource in held if resource.reason is Reason.NOT_SHARED):
        yield Alarm(NOT_SHARED, why, blocking=True, may_pass=True)
    for why in dict.fromkeys(resource.why for resource in held if resource.why in missing):
        yield Alarm(DEPENDENCY_MISSING, why, blocking=True, may_pass=True)


def _running_users(claim: Live, lives: Mapping[ResourceId, Live]) -> list[str]:
    """The names of the pods that a claim is reserved for, without those that are known to be terminating."""
    pods = [kinds.POD.id(claim.id.namespace, name) for name in sorted(reserved_for(claim).values())]
    return [id.name for id in pods if (pod := lives.get(id)) is None or pod.deleting_since is None]


def _why_kept(users: Sequence[str]) -> str:
    """Who keeps a claim that is being deleted, and what a user can do."""
    others = len(users) - MAX_USERS
    pods = ", ".join(users[:MAX_USERS]) + (f" and {others} more" if others > 0 else "")
    if len(users) == 1:
        return f"is being deleted, and is kept while pod {pods} uses it; do: delete the pod, it is created again"
    return f"is being deleted, and is kept while pods {pods} use it; do: delete the pods, they are created again"


class ClaimUse(Struct, frozen=True):
    """A claim that a pod uses."""

    id: ResourceId
    blocker: str
    """Why the claim cannot be created; empty if it exists or can be created."""


def uses_of_pod(view: View, clique: CliqueView, index: int) -> tuple[ClaimUse, ...]:
    """The claims that the pod with that index uses, in the order in which its spec lists them."""
    if view.template.sharing.is_empty:
        return ()
    group = clique.group.group.name if clique.group else ""
    return tuple(
        _use(view, level, share, replica)
        for level, replica in _levels(view, clique, index)
        for share in sorted(level.shares, key=lambda share: share.per_replica)
        if share.is_used_by(clique.clique.name, group)
    )


def _levels(view: View, clique: CliqueView, index: int) -> Iterator[tuple[ClaimLevel, int]]:
    """The levels from set to clique, each with the index of the replica that contains the pod."""
    yield _level_of_set(view.template), view.index
    if clique.group:
        yield _level_of_group(view, clique.group), clique.group_replica
    yield _level_of_clique(view, clique), index


def _use(view: View, level: ClaimLevel, share: Share, index: int) -> ClaimUse:
    id = level.id(share, index)
    if id in view.lives.objects:
        return ClaimUse(id, "")
    return ClaimUse(id, "a foreign ResourceClaim has that name" if id.name in view.template.sharing.foreign else share.blocker)


def with_claims(spec: Body, claims: Sequence[ClaimUse]) -> dict[str, Any]:
    """The pod spec with these claims, after the user's own, in every container and init container."""
    if not claims:
        return dict(spec)
    entries = [{"name": names.claim_in_pod(claim.id.name), "resourceClaimName": claim.id.name} for claim in claims]
    extended = {**spec, "resourceClaims": [*(spec.get("resourceClaims") or ()), *entries]}
    for field in ("containers", "initContainers"):
        if spec.get(field):
            extended[field] = [_container_with_claims(container, claims) for container in spec[field]]
    return extended


def _container_with_claims(container: Mapping[str, Any], claims: Sequence[ClaimUse]) -> dict[str, Any]:
    resources = container.get("resources") or {}
    entries = [*(resources.get("claims") or ()), *({"name": names.claim_in_pod(claim.id.name)} for claim in claims)]
    return {**container, "resources": {**resources, "claims": entries}}


def obsolete(view: View, live: Live) -> DeletionGroup:
    """A claim is deleted with its clique or scaling group, with a removed replica of that group, or when no pod has its index any more."""
    level = _level_in_view(view, live)
    if level is not None and not _is_requested(level, live):
        return unexpected(f"the template has no claim {live.id.name}")
    clique = podclique.clique_of(view, live)
    if clique is not None:
        no_index = DeletionGroup(Because(Reason.SCALED_IN, "no pod has its index any more"))
        return podclique.obsolete(view, clique) if podclique.is_removed(view, clique) else no_index
    group = view.group_of(live)
    if group is not None and group.live is not None and group.terminating:
        return podclique.deleted_by_user(group.live)
    if group is not None and (index := group_replica(live)) is not None and index >= group.replicas:
        return podclique.scaled_in(view, group, index)
    return unexpected(f"the template has no claim {live.id.name}")
