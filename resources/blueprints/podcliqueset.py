"""PodCliqueSet: identical replicas of cliques and scaling groups of cliques, gang by gang."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from engine.blueprint import Desired
from engine.canonical import canonical
from engine.errors import GraphError
from engine.graph import Part, graph, part
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.operation import Held, Trouble
from engine.paths import overlay
from engine.resource import Body, Policy, Resource, Stance
from engine.verdict import earliest
from resources import identity, kinds, labels, names, resource_claim
from resources.admission.defaults import defaulted
from resources.admission.soundness import faults
from resources.policies.rollout import Leave, leaves
from resources.policies.startup import is_filled
from resources.policies.teardown import FINALIZERS, depart
from resources.replica import Replica, Seen, look, replica
from resources.setup import Setup
from resources.status import errors
from resources.status import podcliqueset as status
from resources.surroundings import Surroundings, surroundings
from resources.template import Template, read, references
from resources.view import MOST_REPLICAS

ROOT, SET = "root", "set"
"""The keys of the parts that are no replica: the set itself, and what it has once."""

KNOWN = Policy(partial=(("metadata", "labels"), ("metadata", "annotations")), finalizers=(labels.SET_FINALIZER,))
PROPOSED = Policy(exact=(("spec",),), finalizers=(labels.SET_FINALIZER,))


class PodCliqueSetBlueprint:
    """What a PodCliqueSet means."""

    kind: Kind = kinds.PODCLIQUESET
    children: tuple[Kind, ...] = (
        kinds.SERVICE_ACCOUNT,
        kinds.ROLE,
        kinds.ROLE_BINDING,
        kinds.SECRET,
        kinds.SERVICE,
        kinds.AUTOSCALER,
        kinds.SCALING_GROUP,
        kinds.PODCLIQUE,
        kinds.PODGANG,
        kinds.RESOURCE_CLAIM,
        kinds.POD,
    )
    selector: str = labels.SELECTOR
    reads: Mapping[str, frozenset[str]] = {
        "PodCliqueSet": frozenset({"Pod", "PodClique", "PodCliqueScalingGroup", "PodGang", "ClusterTopologyBinding"}),
        "PodCliqueScalingGroup": frozenset({"Pod", "PodClique"}),
        "PodClique": frozenset({"Pod", "PodCliqueScalingGroup"}),
        "PodGang": frozenset({"Pod", "PodClique", "PodCliqueScalingGroup", "ClusterTopologyBinding"}),
        "Pod": frozenset({"PodClique", "PodCliqueScalingGroup", "PodGang"}),
        "ResourceClaim": frozenset({"Pod", "PodClique", "PodCliqueScalingGroup"}),
        "HorizontalPodAutoscaler": frozenset({"PodClique", "PodCliqueScalingGroup"}),
    }

    def neighbours(self, settings: Setup) -> tuple[Kind, ...]:
        """Templates of resource claims and, where they are acted on, the bindings that topology constraints name."""
        return (kinds.RESOURCE_CLAIM_TEMPLATE, kinds.TOPOLOGY_BINDING) if settings.topology else (kinds.RESOURCE_CLAIM_TEMPLATE,)

    finalizers: Mapping[str, tuple[str, ...]] = FINALIZERS

    def root_of(self, child: Live) -> ResourceId | None:
        """The set that the child's labels name."""
        name = child.labels.get(labels.PART_OF)
        return self.kind.id(child.id.namespace, name) if name else None

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """The replica that the child's name tells, or what the set has once."""
        return _part_of(root, child)

    def desire(self, observed: Observed, now: datetime, settings: Setup, memo: Memo) -> Desired:
        """Everything that the set should have now."""
        root = observed.root
        if root.deleting_since is not None:
            return _teardown(observed, memo)
        asked, gist = memo.recall("asked", (root, observed.proposal), lambda: _asked(observed))
        problems = memo.recall("faults", (gist, settings), lambda: faults(asked.get("spec") or {}, settings))
        if problems:
            return Desired(graph(()), problems=problems)
        wanted = memo.recall("references", (gist, settings), lambda: references(root.id, asked["spec"], settings))
        around = surroundings(observed, wanted, SET, memo)
        template = memo.recall("template", (gist, root.uid, settings, around), lambda: _template(root, asked, around, settings))
        try:
            return _desired(observed, asked, template, settings, now, memo)
        except GraphError as error:
            return Desired(graph(()), problems=(str(error),))


def _part_of(root: ResourceId, child: ResourceId) -> str:
    if child == root:
        return ROOT
    index = names.replica_of(root, child)
    return SET if index is None else str(index)


def _asked(observed: Observed) -> tuple[Body, bytes]:
    """The set as it is asked for, as it is or as a manifest proposes it, with its defaults; and the gist by which an edit is told."""
    body = observed.root.body
    if observed.proposal is not None:
        metadata = overlay(body["metadata"], observed.proposal.get("metadata") or {})
        body = {**observed.proposal, "metadata": metadata}
    asked = defaulted(body)
    metadata = asked["metadata"]
    spec = asked.get("spec") or {}
    return asked, canonical([spec.get("template"), spec.get("updateStrategy"), metadata.get("labels"), metadata.get("annotations")])


def _template(root: Live, asked: Body, around: Surroundings, setup: Setup) -> Template:
    return read(root.id, root.uid or f"{root.id.namespace}/{root.id.name}", asked["metadata"], asked["spec"], around, setup)


def _desired(observed: Observed, asked: Body, template: Template, setup: Setup, now: datetime, memo: Memo) -> Desired:
    root = observed.root
    count = asked["spec"].get("replicas", 0)
    if count * template.pods > MOST_REPLICAS:
        raise GraphError(f"spec.replicas: {count} replicas of {template.pods} pods are more than {MOST_REPLICAS} pods")
    shared = memo.recall(SET, (template,), lambda: part(SET, [*identity.render(template), *resource_claim.shared(template)]))
    seen = list(_seen(observed, template, count, setup, now, memo))
    stages = [one.stage for one in seen]
    turns = leaves(stages, _turn(root))
    has_token = _has_token(observed, template, memo)
    replicas = [_replica(observed, one, turns.get(one.stage.index, Leave.NOTHING), has_token, memo) for one in seen]
    excess = list(_excess(observed, count, memo))
    complete = (
        not excess
        and all(one.standing.complete for one in replicas)
        and all(resource in observed.slice(SET).objects for resource in shared.resources)
    )
    rollout = status.Rollout(next(iter(turns), None), done=not any(one.stale or one.away for one in stages))
    standing = status.of(template, count, root, [one.standing for one in replicas], rollout) if root.uid else None
    if standing and complete and not turns:
        standing = {**standing, "observedGeneration": root.generation}
    if standing:
        standing = {**standing, **errors.of(root.id, observed.troubles, root.body.get("status") or {})}
    itself = part(ROOT, [_root(observed, asked, standing)])
    return Desired(
        graph([itself, shared, *(one.part for one in replicas), *excess]),
        waiting=tuple(held for one in replicas for held in one.waiting),
        held=(*errors.unexplained([root] if observed.troubles is None else ()), *(held for one in replicas for held in one.held)),
        notes=template.topology.notes,
        wake_at=earliest(one.verdict.until for one in seen),
    )


def _turn(root: Live) -> int | None:
    """The replica that was last said to be updated."""
    turns = (root.body.get("status") or {}).get("updateProgress", {}).get("currentlyUpdating") or ()
    return next((turn["replicaIndex"] for turn in turns), None)


def _root(observed: Observed, asked: Body, standing: Body | None) -> Resource:
    """The set itself: admitted once, by its defaults and our finalizer; written as a whole only where a manifest proposes it."""
    root = observed.root
    metadata = {"name": root.id.name, "namespace": root.id.namespace}
    frame = {"apiVersion": kinds.PODCLIQUESET.api_version, "kind": kinds.PODCLIQUESET.name, "metadata": metadata}
    if observed.proposal is not None:
        proposed = observed.proposal.get("metadata") or {}
        given = {key: proposed[key] for key in ("labels", "annotations") if proposed.get(key)}
        finalizers = {} if root.uid else {"finalizers": [labels.SET_FINALIZER]}
        body = {**frame, "metadata": {**metadata, **given, **finalizers}, "spec": asked["spec"]}
        return Resource(root.id, body, "a manifest asks for it", policy=PROPOSED, status=standing)
    if labels.SET_FINALIZER in (root.body["metadata"].get("finalizers") or ()):
        return Resource(root.id, frame, "is looked after", policy=KNOWN, status=standing)
    return Resource(root.id, {**frame, "spec": asked["spec"]}, "is new: gets its defaults and our finalizer", policy=KNOWN, status=standing)


def _seen(observed: Observed, template: Template, count: int, setup: Setup, now: datetime, memo: Memo) -> Iterator[Seen]:
    taken = sorted(id.name for id in observed.context if id.kind == kinds.POD.name)
    for index in range(count):
        lives = observed.slice(str(index))
        facts = (template, lives, setup, " ".join(taken))

        def see(index: int = index, lives: Slice = lives) -> Seen:
            return look(template, index, lives, taken, setup, now)

        yield memo.recall_until(("seen", index), facts, now, see, lambda seen: seen.verdict.until)


def _has_token(observed: Observed, template: Template, memo: Memo) -> bool:
    """Whether pods that start after others can be given their token. Of a set that is not there yet, all that it will be is shown."""
    if not observed.root.uid or not template.is_ordered:
        return True
    secret = observed.slice(SET).objects.get(kinds.SECRET.id(template.id.namespace, names.token_secret(template.id.name)))
    return memo.recall("token", (secret,), lambda: is_filled(secret))


def _replica(observed: Observed, seen: Seen, leave: Leave, has_token: bool, memo: Memo) -> Replica:
    troubles = _troubles(observed, str(seen.stage.index), memo)
    facts = (seen, leave.value, has_token, troubles)
    return memo.recall(("replica", seen.stage.index), facts, lambda: replica(seen, leave, has_token, troubles))


def _troubles(observed: Observed, key: str, memo: Memo) -> tuple[Trouble, ...] | None:
    """What failed in one part of the set."""
    known, root = observed.troubles, observed.root.id
    if known is None:
        return None
    return memo.recall("troubles", (known,), lambda: errors.in_parts(known, lambda id: _part_of(root, id))).get(key, ())


def _excess(observed: Observed, count: int, memo: Memo) -> Iterator[Part]:
    """Replicas beyond the number asked for."""
    for key, lives in sorted(observed.slices.items()):
        if key not in (ROOT, SET) and int(key) >= count:
            why = f"replica {key} goes: {observed.root.id.name} is scaled to {count}"
            yield memo.recall(("excess", key), (lives, why), partial(_departing, key, lives, why))


def _departing(key: str, lives: Slice, why: str) -> Part:
    return part(key, depart(lives.objects.values(), why))


def _teardown(observed: Observed, memo: Memo) -> Desired:
    """Everything goes, the replicas first; when nothing is left, our finalizer falls."""
    root = observed.root
    why = f"{root.id.name} is being deleted"
    parts = [
        memo.recall(("teardown", key), (lives,), partial(_departing, key, lives, why))
        for key, lives in observed.slices.items()
        if key != SET and lives.objects
    ]
    shared = observed.slice(SET).objects
    if shared:
        parts.insert(0, _shared_departing(shared.values(), why, len(parts)))
    left = observed.count()
    itself = Resource(root.id, {}, why, stance=Stance.DROP, policy=KNOWN)
    if left:
        itself = Resource(root.id, {}, f"{why}; waits for {left} objects to be gone", stance=Stance.HOLD)
    going = (live for lives in observed.slices.values() for live in lives.of("Pod") if live.deleting_since)
    return Desired(graph([part(ROOT, [itself]), *parts]), waiting=tuple(Held(live.id, "is being deleted") for live in going))


def _shared_departing(lives: Any, why: str, replicas: int) -> Part:
    listed: Sequence[Live] = list(lives)
    if not replicas:
        return part(SET, depart(listed, why))
    held = f"{why}; waits for the replicas to be gone"
    return part(SET, [Resource(live.id, {}, held, stance=Stance.HOLD) for live in listed])
