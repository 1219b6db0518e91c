"""PodCliqueSet: identical replicas of cliques and scaling groups of cliques, gang by gang."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from engine.blueprint import Desired
from engine.errors import GraphError
from engine.failure import Trouble
from engine.graph import Part, graph, part
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.plan import Alarm
from engine.resource import Body, Policy, Resource
from engine.verdict import earliest
from resources.admission.admitted_set import Asked
from resources.admission.admitted_set import asked as what_is_asked
from resources.base import kinds, labels, names
from resources.blueprints.replica import Replica, Seen, look, replica
from resources.children import identity, resource_claim
from resources.domains import replica_domains
from resources.domains.release import Leaving, leaving, owned
from resources.domains.replica_domains import Fabrics
from resources.model.domain import Domain, policy_of
from resources.model.template import Template, read, references
from resources.model.template_references import Surroundings, surroundings
from resources.model.view import MOST_REPLICAS
from resources.policies.rollout import Leave, leaves
from resources.policies.startup import is_filled
from resources.ports.configuration import Setup
from resources.removal.departure import ROOT, SET, excess, teardown
from resources.removal.teardown import POLICIES
from resources.status import errors
from resources.status import podcliqueset as status
from resources.status.update import begins

KNOWN = Policy(partial=(("metadata", "labels"), ("metadata", "annotations")), finalizers=(labels.SET_FINALIZER,))
PROPOSED = Policy(exact=(("spec",),), partial=KNOWN.partial, finalizers=(labels.SET_FINALIZER,))
"""What a manifest does not say of labels and annotations stays, as admission is told: what a set was given is not taken from it."""

CHILDREN = (
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

READS = {
    "PodCliqueSet": frozenset({"Pod", "PodClique", "PodCliqueScalingGroup", "PodGang"}),
    "PodCliqueScalingGroup": frozenset({"Pod", "PodClique"}),
    "PodClique": frozenset({"Pod", "PodCliqueScalingGroup"}),
    "PodGang": frozenset({"Pod", "PodClique", "PodCliqueScalingGroup"}),
    "Pod": frozenset({"PodClique", "PodCliqueScalingGroup", "PodGang"}),
    "ResourceClaim": frozenset({"Pod", "PodClique", "PodCliqueScalingGroup"}),
    "HorizontalPodAutoscaler": frozenset({"PodClique", "PodCliqueScalingGroup"}),
}
"""Kind -> those whose live objects shape it."""
BOUND = ("PodCliqueSet", "PodGang")
"""What a ClusterTopologyBinding shapes, where topology constraints are acted on."""


class PodCliqueSetBlueprint:
    """What a PodCliqueSet means."""

    kind: Kind = kinds.PODCLIQUESET
    selector: str = labels.SELECTOR

    def children(self, settings: Setup) -> tuple[Kind, ...]:
        """Everything of which a set is made, and the domains of fabrics."""
        return (*CHILDREN, *(fabric.kind for fabric in settings.fabrics))

    def neighbours(self, settings: Setup) -> tuple[Kind, ...]:
        """What resource claims are made from and, where topology constraints are acted on, the bindings that they name.

        Of domains it matters who else has any, and of claims which domain they lead into.
        """
        domains = (*(fabric.kind for fabric in settings.fabrics), kinds.RESOURCE_CLAIM) if settings.fabrics else ()
        bindings = (kinds.TOPOLOGY_BINDING,) if settings.topology else ()
        return (kinds.RESOURCE_CLAIM_TEMPLATE, *domains, *bindings)

    def reads(self, settings: Setup) -> Mapping[str, frozenset[str]]:
        """Which kinds must be seen for which to be judged."""
        used = frozenset({"Pod", "PodClique", "ResourceClaim"})
        bound = {kind: READS[kind] | {kinds.TOPOLOGY_BINDING.name} for kind in BOUND} if settings.topology else {}
        return READS | bound | {fabric.kind.name: used for fabric in settings.fabrics}

    def policies(self, settings: Setup) -> Mapping[str, Policy]:
        """The finalizers of cliques, groups and domains."""
        return POLICIES | {fabric.kind.name: policy_of(fabric) for fabric in settings.fabrics}

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
            return teardown(observed, KNOWN, settings, now, memo)
        asked = what_is_asked(observed, settings, tuple(kind.name for kind in self.neighbours(settings)), memo)
        if asked.problems:
            return Desired(graph(()), problems=asked.problems)
        wanted = memo.recall("references", (asked.gist, settings), lambda: references(root.id, asked.body["spec"], settings))
        around = surroundings(observed, wanted, SET, memo)
        template = memo.recall("template", (asked.gist, root.uid, settings, around), lambda: _template(root, asked.body, around, settings))
        try:
            return _desired(observed, asked, template, settings, now, memo)
        except GraphError as error:
            return Desired(graph(()), problems=(str(error),))


def _part_of(root: ResourceId, child: ResourceId) -> str:
    if child == root:
        return ROOT
    index = names.replica_of(root, child)
    return SET if index is None else str(index)


def _template(root: Live, asked: Body, around: Surroundings, setup: Setup) -> Template:
    return read(root.id, root.uid or f"{root.id.namespace}/{root.id.name}", asked["metadata"], asked["spec"], around, setup)


def _desired(observed: Observed, asked: Asked, template: Template, setup: Setup, now: datetime, memo: Memo) -> Desired:
    root = observed.root
    count = asked.body["spec"].get("replicas", 0)
    if count * template.pods > MOST_REPLICAS:
        raise GraphError(f"spec.replicas: {count} replicas of {template.pods} pods are more than {MOST_REPLICAS} pods")
    fabrics = [replica_domains.look(observed, template, index, setup, now, memo) for index in range(count)]
    named = replica_domains.shared(fabrics)
    parting = _parting(observed, named, setup, now)
    shared = _shared(template, named, parting, memo)
    seen = list(_seen(observed, template, count, setup, now, memo))
    stages = [one.stage for one in seen]
    turns = leaves(stages, _turn(root))
    has_token = _has_token(observed, template, memo)
    replicas = [
        _replica(observed, one, turns.get(one.stage.index, Leave.NOTHING), has_token, own, memo)
        for one, own in zip(seen, fabrics, strict=True)
    ]
    beyond = list(excess(observed, count, setup, now, memo))
    leaving = [parting, *(own.leaving for own in fabrics), *(one.domains for one in beyond)]
    complete = not beyond and all(one.standing.complete for one in replicas) and all(_is_there(observed, id) for id in shared.resources)
    rollout = status.Rollout(next(iter(turns), None), done=not any(one.stale or one.away for one in stages))
    standing = status.of(template, count, root, [one.standing for one in replicas], rollout) if root.uid else None
    if standing and complete and not turns:
        standing = {**standing, "observedGeneration": root.generation}
    if standing:
        standing = {**standing, **errors.of(root.id, observed.troubles, root.body.get("status") or {})}
    itself = part(ROOT, [_root(observed, asked, standing)])
    return Desired(
        graph([itself, shared, *(one.part for one in replicas), *(one.part for one in beyond)]),
        waiting=(
            *replica_domains.waiting(named.values()),
            *(held for one in replicas for held in one.waiting),
            *(held for gone in leaving for held in gone.waiting),
        ),
        held=(*errors.unexplained([root] if observed.troubles is None else ()), *(held for one in replicas for held in one.held)),
        notes=template.topology.notes,
        alarms=tuple(dict.fromkeys(_alarms(fabrics, leaving))),
        wake_at=earliest((*(one.verdict.until for one in seen), *(gone.until for gone in leaving))),
    )


def _shared(template: Template, named: Mapping[ResourceId, Domain], parting: Leaving, memo: Memo) -> Part:
    """What the set has once, and its part in the domains that it shares."""
    wanted = [domain.resource for domain in named.values() if domain.resource is not None]

    def make() -> Part:
        return part(SET, [*identity.render(template), *resource_claim.shared(template), *wanted, *parting.resources])

    return memo.recall(SET, (template, *wanted, *parting.resources), make)


def _parting(observed: Observed, named: Mapping[ResourceId, Domain], setup: Setup, now: datetime) -> Leaving:
    """The shared domains that the set has a part in, and asks for no more."""
    lives = [live for live in owned(observed, setup, observed.slice(SET)) if live.id not in named]
    if not lives:
        return Leaving()
    return leaving(observed, lives, setup, f"{observed.root.id.name} asks for it no more", now, observed.slices.values())


def _is_there(observed: Observed, id: ResourceId) -> bool:
    return id in observed.slice(SET).objects or id in observed.neighbours.objects


def _alarms(fabrics: Iterable[Fabrics], leaving: Iterable[Leaving]) -> Iterator[Alarm]:
    for found in fabrics:
        yield from (domain.alarm for domain in found.domains if domain.alarm is not None)
    for gone in leaving:
        yield from gone.alarms


def _turn(root: Live) -> int | None:
    """The replica that was last said to be updated."""
    turns = (root.body.get("status") or {}).get("updateProgress", {}).get("currentlyUpdating") or ()
    return next((turn["replicaIndex"] for turn in turns), None)


def _root(observed: Observed, asked: Asked, standing: Body | None) -> Resource:
    """The set itself: admitted once, by its defaults and our finalizer; written as a whole only where a manifest proposes it."""
    root = observed.root
    metadata = {"name": root.id.name, "namespace": root.id.namespace}
    frame = {"apiVersion": kinds.PODCLIQUESET.api_version, "kind": kinds.PODCLIQUESET.name, "metadata": metadata}
    if observed.proposal is not None:
        proposed = asked.body["metadata"] if asked.is_new else observed.proposal.get("metadata") or {}
        given = {key: proposed[key] for key in ("labels", "annotations") if proposed.get(key)}
        finalizers = {} if root.uid else {"finalizers": [labels.SET_FINALIZER]}
        body = {**frame, "metadata": {**metadata, **given, **finalizers}, "spec": asked.body["spec"]}
        return Resource(root.id, body, "a manifest asks for it", policy=PROPOSED, status=standing)
    if labels.SET_FINALIZER in (root.body["metadata"].get("finalizers") or ()):
        return Resource(root.id, frame, "is looked after", policy=KNOWN, status=standing, prompt=begins(standing))
    enrolled = asked.body["metadata"].get("annotations") or {}
    body = {**frame, "metadata": {**metadata, **({"annotations": enrolled} if enrolled else {})}, "spec": asked.body["spec"]}
    return Resource(root.id, body, "is new: gets its defaults and our finalizer", policy=KNOWN, status=standing)


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


def _replica(observed: Observed, seen: Seen, leave: Leave, has_token: bool, fabrics: Fabrics, memo: Memo) -> Replica:
    troubles = _troubles(observed, str(seen.stage.index), memo)
    facts = (seen, leave.value, has_token, fabrics, troubles)
    return memo.recall(("replica", seen.stage.index), facts, lambda: replica(seen, leave, has_token, fabrics, troubles))


def _troubles(observed: Observed, key: str, memo: Memo) -> tuple[Trouble, ...] | None:
    """What failed in one part of the set."""
    known, root = observed.troubles, observed.root.id
    if known is None:
        return None
    return memo.recall("troubles", (known,), lambda: errors.in_parts(known, lambda id: _part_of(root, id))).get(key, ())
