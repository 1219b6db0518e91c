"""Resource claims: devices that pods use together, claimed for a set, a group or a clique: once for all its replicas or for each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.ids import Owner, ResourceId
from engine.resource import Body, Policy, Resource, Stance
from resources.base import kinds, labels, names
from resources.base.manifest import manifest
from resources.model.sharing import Share
from resources.model.template import Template
from resources.model.view import CliqueView, GroupView, View

POLICY = Policy(seeded=(("spec",),))
"""What a claim asks for is said once: the server allows no second word."""


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Whose claims they are: what owns them and gives them their names and labels, and the label that tells for which of its replicas."""

    owner: Owner
    labels: Mapping[str, str]
    index_label: str
    shares: Sequence[Share]

    def id(self, share: Share, index: int) -> ResourceId:
        """The claim that the replica of that index uses."""
        name = names.claim(self.owner.id.name, index if share.per_replica else None, share.name)
        return kinds.RESOURCE_CLAIM.id(self.owner.id.namespace, name)


def of_set(template: Template) -> Level:
    """The claims of a set."""
    owner = Owner(template.id, kinds.PODCLIQUESET.api_version)
    return Level(owner, labels.child(template.id.name, "resource-claim"), labels.REPLICA_INDEX, template.sharing.of_set)


def of_group(view: View, group: GroupView) -> Level:
    """The claims of a scaling group."""
    mine = {**labels.child(view.root, "resource-claim"), labels.SCALING_GROUP: group.name}
    shares = view.template.sharing.of_groups[group.group.name]
    return Level(Owner(group.id, kinds.SCALING_GROUP.api_version), mine, labels.GROUP_REPLICA_INDEX, shares)


def of_clique(view: View, clique: CliqueView) -> Level:
    """The claims of a clique."""
    mine = {**labels.child(view.root, "resource-claim"), labels.PODCLIQUE: clique.name}
    shares = view.template.sharing.of_cliques[clique.clique.name]
    return Level(Owner(clique.id, kinds.PODCLIQUE.api_version), mine, labels.POD_INDEX, shares)


def shared(template: Template) -> Iterator[Resource]:
    """What a set claims once, for all its replicas."""
    level = of_set(template)
    for share in level.shares:
        if not share.per_replica:
            yield _claim(level, share, 0, made=False)


def render(view: View) -> Iterator[Resource]:
    """What is claimed within a replica, whoever of its pods uses it."""
    if view.template.sharing.is_empty:
        return
    for share in view.template.sharing.of_set:
        if share.per_replica:
            yield _of_replica(view, of_set(view.template), share, view.index)
    for group in view.groups:
        if not group.going:
            yield from _for_each(view, of_group(view, group), range(group.replicas))
    for clique in view.cliques:
        if view.stays(clique):
            yield from _of_clique(view, clique)


def _of_clique(view: View, clique: CliqueView) -> Iterator[Resource]:
    """One claim for each seat that is taken. Whoever leaves a seat that nobody takes keeps its claim until it is gone."""
    level = of_clique(view, clique)
    seats = {pod.seat for pod in clique.assignment.kept} | {seat.index for seat in clique.assignment.fresh}
    yield from _for_each(view, level, sorted(seat for seat in seats if seat is not None))
    vacated = {pod.seat: pod for pod in clique.pods if pod.seat is not None and pod.seat not in seats}
    for share in level.shares:
        for seat, pod in sorted(vacated.items()) if share.per_replica else ():
            yield Resource(level.id(share, seat), {}, f"waits for {pod.name} to be gone", stance=Stance.HOLD)


def _for_each(view: View, level: Level, indices: Sequence[int]) -> Iterator[Resource]:
    for share in level.shares:
        for index in indices if share.per_replica else (0,):
            yield _of_replica(view, level, share, index)


def _of_replica(view: View, level: Level, share: Share, index: int) -> Resource:
    return _claim(level, share, index, made=level.id(share, index) in view.lives.objects)


def _claim(level: Level, share: Share, index: int, *, made: bool) -> Resource:
    """A claim; held where it is not there, and what it is to be made from is not either."""
    id = level.id(share, index)
    if share.trouble and not made:
        return Resource(id, {}, share.trouble, (level.owner,), stance=Stance.HOLD)
    told = {**level.labels, level.index_label: str(index)} if share.per_replica else level.labels
    body = manifest(kinds.RESOURCE_CLAIM, id.namespace, id.name, told, spec=share.spec)
    users = f"replica {index}" if share.per_replica else "all replicas"
    return Resource(id, body, f"{share.name}, for {users} of {level.owner.id.name}", (level.owner,), policy=POLICY)


@dataclass(frozen=True, slots=True)
class Use:
    """A claim that a pod uses, and why it must do without for now."""

    id: ResourceId
    trouble: str


def uses(view: View, clique: CliqueView, seat: int) -> tuple[Use, ...]:
    """The claims that the pod of a seat uses, in the order in which it names them."""
    if view.template.sharing.is_empty:
        return ()
    of_group = clique.group.group.name if clique.group else ""
    return tuple(
        _use(view, level, share, index)
        for level, index in _levels(view, clique, seat)
        for share in sorted(level.shares, key=lambda share: share.per_replica)
        if share.is_used_by(clique.clique.name, of_group)
    )


def _levels(view: View, clique: CliqueView, seat: int) -> Iterator[tuple[Level, int]]:
    """The levels from above, each with the index of the replica that the pod is part of."""
    yield of_set(view.template), view.index
    if clique.group:
        yield of_group(view, clique.group), clique.group_replica
    yield of_clique(view, clique), seat


def _use(view: View, level: Level, share: Share, index: int) -> Use:
    id = level.id(share, index)
    if id in view.lives.objects:
        return Use(id, "")
    return Use(id, "a claim of that name belongs to somebody else" if id.name in view.template.sharing.foreign else share.trouble)


def using(spec: Body, used: Sequence[Use]) -> dict[str, Any]:
    """The pod spec with these claims, after the user's own, for every container and init container."""
    if not used:
        return dict(spec)
    named = [{"name": use.id.name, "resourceClaimName": use.id.name} for use in used]
    dressed = {**spec, "resourceClaims": [*(spec.get("resourceClaims") or ()), *named]}
    for field in ("containers", "initContainers"):
        if spec.get(field):
            dressed[field] = [_with(container, used) for container in spec[field]]
    return dressed


def _with(container: Mapping[str, Any], used: Sequence[Use]) -> dict[str, Any]:
    resources = container.get("resources") or {}
    claims = [*(resources.get("claims") or ()), *({"name": use.id.name} for use in used)]
    return {**container, "resources": {**resources, "claims": claims}}
