"""Sample: a few replicas of a set in place of many that are alike. What they do in a forecast is extended to the others."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.intent import Intent
from engine.observed import Live, Observed, World, live, slice_of
from engine.operation import is_shared
from engine.paths import overlay
from engine.plan import Plan
from engine.resource import Body
from resources.base import kinds, names
from resources.base.fields import mapping
from resources.cluster_model.likeness import shapes
from resources.cluster_model.renaming import Renaming
from resources.model.view import MAX_REPLICAS
from resources.status.podcliqueset import last_updated_replica

FIRST, REPEATED, LAST = 2, 8, 2
"""The numbers of replicas at the beginning, of those that have to behave alike before they are extended, and of those at the end."""
KEPT: Final = FIRST + REPEATED + LAST
WORTHWHILE: Final = 16
"""The least number of replicas that are alike and represented by a sample."""


class Run(Struct, frozen=True):
    """Replicas that follow one another and are alike."""

    kept: tuple[int, ...]
    """The indices, in the sample, of those that are part of it."""
    left_out: tuple[int, ...]
    """The indices, in the set, of the others: they come before the last `LAST` of the kept ones."""

    @property
    def repeated(self) -> tuple[int, ...]:
        """Those kept ones that have to behave alike."""
        return self.kept[FIRST : FIRST + REPEATED]


class SampledSet(Struct, frozen=True, eq=False):
    """A set of which some replicas are left out."""

    observed: Observed
    """The whole set."""
    indices: tuple[int, ...]
    """The index in the set of each replica of the sample."""
    runs: tuple[Run, ...]
    """The runs of which replicas are left out."""

    @property
    def root(self) -> ResourceId:
        """The set."""
        return self.observed.root.id

    @property
    def to_sample(self) -> Renaming:
        """From the set to the sample."""
        return Renaming(self.root, {index: number for number, index in enumerate(self.indices)})

    @property
    def from_sample(self) -> Renaming:
        """From the sample to the set."""
        return Renaming(self.root, dict(enumerate(self.indices)))

    @property
    def left_out(self) -> frozenset[int]:
        """The indices of the replicas that are left out."""
        return frozenset(index for run in self.runs for index in run.left_out)


class Sample(Struct, frozen=True, eq=False):
    """A world in which replicas are left out, and the intent for it."""

    world: World
    intent: Intent
    sets: Mapping[ResourceId, SampledSet]

    def count(self) -> int:
        """The number of objects of its roots."""
        return sum(observed.count() for observed in self.world.roots)


def sample_of(world: World, intent: Intent, plans: Sequence[Plan]) -> Sample | None:
    """The sample of a world with this intent, whose first plans these are; None if no set has many replicas that are alike."""
    manifests = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in intent.manifests}
    by_root = {plan.root: plan for plan in plans}
    sampled: dict[ResourceId, SampledSet] = {}
    for observed in world.roots:
        id, plan = observed.root.id, by_root.get(observed.root.id)
        if plan is not None and is_independent(observed, world, plan):
            runs = _sampled(observed, plan, manifests.get((id.kind, id.namespace, id.name)))
            sampled.update({id: runs} if runs is not None else {})
    if not sampled:
        return None
    roots = tuple(_without_left_out(each, sampled[each.root.id]) if each.root.id in sampled else each for each in world.roots)
    references = slice_of(_references(world, sampled))
    shared = tuple(replace(each, references=references) for each in roots)
    bodies = tuple(_scaled(each, sampled.get(_root_id(each))) for each in intent.manifests)
    return Sample(replace(world, roots=shared, references=references), replace(intent, manifests=bodies), sampled)


def is_independent(observed: Observed, world: World, plan: Plan) -> bool:
    """Whether a set shares no objects, is no part of another root, and has no objects of unclear ownership.

    Neither may it have a text of its user that looks like the name of one of its objects.
    """
    root = observed.root
    given = [root.body, *([observed.proposal] if observed.proposal is not None else [])]
    if root.id.kind != kinds.PODCLIQUESET.name or plan.objections or plan.problems or plan.error or plan.wake_at:
        return False
    if observed.proposer is not None or root.controller is not None or observed.foreign or observed.mislabelled:
        return False
    if any(is_shared(operation) for operation in plan.operations):
        return False
    if any(Renaming(root.id, {}).is_found_in([body.get("spec"), body["metadata"].get("annotations")]) for body in given):
        return False
    if root.uid and any(
        each.controller is None and root.uid in {owner.uid for owner in each.owners} for each in world.references.objects.values()
    ):
        return False
    resembling = re.compile(rf"{re.escape(root.id.name)}-\d")
    return not any(resembling.match(other.root.id.name) for other in world.roots if other.root.id.namespace == root.id.namespace)


def _sampled(observed: Observed, plan: Plan, manifest: Body | None) -> SampledSet | None:
    """The sample of one set; None if it has too few replicas that are alike."""
    root = observed.root
    existing = _replicas(root.body)
    wanted = _replicas(manifest) if manifest is not None and _replicas(manifest) is not None else existing
    listed = [int(key) for key in observed.slices if key.isdecimal()]
    if existing is None or wanted is None or max((existing, wanted, *listed)) > MAX_REPLICAS:
        return None
    count = max((existing, wanted, *(index + 1 for index in listed)))
    if count < WORTHWHILE:
        return None
    last = last_updated_replica(root)
    classes = [
        (shape, index < existing, index < wanted, index == last)
        for index, shape in enumerate(shapes(root.id, observed.slices, plan, count))
    ]
    indices: list[int] = []
    runs: list[Run] = []
    for _, group in groupby(range(count), key=lambda index: classes[index]):
        members = list(group)
        if len(members) >= WORTHWHILE:
            begin = len(indices)
            runs.append(Run(tuple(range(begin, begin + KEPT)), tuple(members[FIRST + REPEATED : -LAST])))
            members = members[: FIRST + REPEATED] + members[-LAST:]
        indices.extend(members)
    return SampledSet(observed, tuple(indices), tuple(runs)) if runs else None


def _replicas(body: Body) -> int | None:
    replicas = mapping(body.get("spec")).get("replicas")
    return replicas if isinstance(replicas, int) and not isinstance(replicas, bool) and replicas >= 0 else None


def _without_left_out(observed: Observed, sampled: SampledSet) -> Observed:
    """The observation of the set as if it had the replicas of the sample only."""
    renaming, left_out = sampled.to_sample, sampled.left_out
    slices = {}
    for key, part in observed.slices.items():
        if not key.isdecimal():
            slices[key] = part
        elif int(key) not in left_out:
            number = renaming.indices[int(key)]
            slices[str(number)] = part if number == int(key) else slice_of(map(renaming.live, part.objects.values()))
    body = overlay(_scaled(observed.root.body, sampled), _last_updated(observed.root, renaming))
    proposal = _scaled(observed.proposal, sampled) if observed.proposal is not None else None
    return replace(observed, root=live(body), slices=dict(sorted(slices.items())), proposal=proposal)


def _last_updated(root: Live, renaming: Renaming) -> dict[str, Any]:
    """The change of a set's status that names the replica that is updated by its index in the sample."""
    if last_updated_replica(root) is None:
        return {}
    progress = root.body["status"]["updateProgress"]
    entries = [{**entry, "replicaIndex": renaming.index(entry["replicaIndex"])} for entry in progress["currentlyUpdating"]]
    return {"status": {**root.body["status"], "updateProgress": {**progress, "currentlyUpdating": entries}}}


def _scaled(body: Body, sampled: SampledSet | None) -> Body:
    """The manifest of a set, or the set, with so many replicas as remain of those it asks for."""
    replicas = _replicas(body)
    if sampled is None or replicas is None:
        return body
    return {**body, "spec": {**body["spec"], "replicas": sum(index < replicas for index in sampled.indices)}}


def _root_id(manifest: Body) -> ResourceId:
    metadata = manifest["metadata"]
    return ResourceId(manifest["apiVersion"].rpartition("/")[0], manifest["kind"], metadata.get("namespace", ""), metadata["name"])


def _references(world: World, sampled: Mapping[ResourceId, SampledSet]) -> Iterator[Live]:
    """The references, renamed like the objects that they belong to; without those of replicas that are left out."""
    renamings = [(each.root, each.to_sample, each.left_out) for each in sampled.values()]
    for reference in world.references.objects.values():
        for root, renaming, left_out in renamings:
            index = names.replica_of(root, reference.id) if reference.id.namespace == root.namespace else None
            if index is None:
                continue
            if index not in left_out:
                yield reference if renaming.indices.get(index, index) == index else renaming.live(reference)
            break
        else:
            yield reference
