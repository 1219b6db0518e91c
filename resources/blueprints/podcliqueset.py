"""PodCliqueSet: identical replicas of cliques and scaling groups of cliques, gang by gang."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from engine.blueprint import Desired
from engine.errors import GraphError
from engine.failure import FailedCall
from engine.graph import Part, graph, part
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.plan import Alarm
from engine.resource import Body, Policy, Resource
from engine.verdict import earliest
from resources.admission.admitted_set import AdmittedSet, admitted_set
from resources.base import kinds, labels, names
from resources.blueprints.replica import Replica, ReplicaState, look, replica
from resources.children import identity, resource_claim
from resources.domains import replica_domains
from resources.domains.release import DomainRelease, leaving, owned
from resources.domains.replica_domains import Fabrics
from resources.model.domain import Domain, policy_of
from resources.model.template import Template, read, references
from resources.model.template_references import TemplateReferences, template_references
from resources.model.view import MAX_REPLICAS
from resources.policies.rollout import UpdateAllowance, leaves
from resources.policies.startup import is_filled
from resources.ports.configuration import Configuration
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

    def children(self, configuration: Configuration) -> tuple[Kind, ...]:
        """Everything of which a set is made, and the domains of fabrics."""
        return (*CHILDREN, *(fabric.kind for fabric in configuration.fabrics))

    def references(self, configuration: Configuration) -> tuple[Kind, ...]:
        """What resource claims are made from and, where topology constraints are acted on, the bindings that they name.

        Of domains it matters who else has any, and of claims which domain they lead into.
        """
        domains = (*(fabric.kind for fabric in configuration.fabrics), kinds.RESOURCE_CLAIM) if configuration.fabrics else ()
        bindings = (kinds.TOPOLOGY_BINDING,) if configuration.topology else ()
        return (kinds.RESOURCE_CLAIM_TEMPLATE, *domains, *bindings)

    def reads(self, configuration: Configuration) -> Mapping[str, frozenset[str]]:
        """Which kinds must be seen for which to be judged."""
        used = frozenset({"Pod", "PodClique", "ResourceClaim"})
        bound = {kind: READS[kind] | {kinds.TOPOLOGY_BINDING.name} for kind in BOUND} if configuration.topology else {}
        return READS | bound | {fabric.kind.name: used for fabric in configuration.fabrics}

    def policies(self, configuration: Configuration) -> Mapping[str, Policy]:
        """The finalizers of cliques, groups and domains."""
        return POLICIES | {fabric.kind.name: policy_of(fabric) for fabric in configuration.fabrics}

    def root_of(self, child: Live) -> ResourceId | None:
        """The set that the child's labels name."""
        name = child.labels.get(labels.PART_OF)
        return self.kind.id(child.id.namespace, name) if name else None

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """The replica that the child's name tells, or what the set has once."""
        return _part_of(root, child)

    def desire(self, observed: Observed, now: datetime, configuration: Configuration, memo: Memo) -> Desired:
        """Everything that the set should have now."""
        root = observed.root
        if root.deleting_since is not None:
            return teardown(observed, KNOWN, configuration, now, memo)
        admitted = admitted_set(observed, configuration, tuple(kind.name for kind in self.references(configuration)), memo)
        if admitted.problems:
            return Desired(graph(()), problems=admitted.problems)
        wanted = memo.recall(
            "references", (admitted.gist, configuration), lambda: references(root.id, admitted.body["spec"], configuration)
        )
        around = template_references(observed, wanted, SET, memo)
        template = memo.recall(
            "template", (admitted.gist, root.uid, configuration, around), lambda: _template(root, admitted.body, around, configuration)
        )
        try:
            return _desired(observed, admitted, template, configuration, now, memo)
        except GraphError as error:
            return Desired(graph(()), problems=(str(error),))


def _part_of(root: ResourceId, child: ResourceId) -> str:
    if child == root:
        return ROOT
    index = names.replica_of(root, child)
    return SET if index is None else str(index)


def _template(root: Live, admitted: Body, around: TemplateReferences, configuration: Configuration) -> Template:
    return read(root.id, root.uid or f"{root.id.namespace}/{root.id.name}", admitted["metadata"], admitted["spec"], around, configuration)


def _desired(
    observed: Observed, admitted: AdmittedSet, template: Template, configuration: Configuration, now: datetime, memo: Memo
) -> Desired:
    root = observed.root
    count = admitted.body["spec"].get("replicas", 0)
    if count * template.pods > MAX_REPLICAS:
        raise GraphError(f"spec.replicas: {count} replicas of {template.pods} pods are more than {MAX_REPLICAS} pods")
    fabrics = [replica_domains.look(observed, template, index, configuration, now, memo) for index in range(count)]
    named = replica_domains.shared(fabrics)
    release = _parting(observed, named, configuration, now)
    shared = _shared(template, named, release, memo)
    seen = list(_seen(observed, template, count, configuration, now, memo))
    stages = [one.stage for one in seen]
    turns = leaves(stages, _turn(root))
    has_token = _has_token(observed, template, memo)
    replicas = [
        _replica(observed, one, turns.get(one.stage.index, UpdateAllowance.NOTHING), has_token, own, memo)
        for one, own in zip(seen, fabrics, strict=True)
    ]
    beyond = list(excess(observed, count, configuration, now, memo))
    leaving = [release, *(own.leaving for own in fabrics), *(one.domains for one in beyond)]
    complete = not beyond and all(one.standing.complete for one in replicas) and all(_is_there(observed, id) for id in shared.resources)
    rollout = status.Rollout(next(iter(turns), None), done=not any(one.stale or one.away for one in stages))
    standing = status.of(template, count, root, [one.standing for one in replicas], rollout) if root.uid else None
    if standing and complete and not turns:
        standing = {**standing, "observedGeneration": root.generation}
    if standing:
        standing = {**standing, **errors.of(root.id, observed.failed_calls, root.body.get("status") or {})}
    itself = part(ROOT, [_root(observed, admitted, standing)])
    return Desired(
        graph([itself, shared, *(one.part for one in replicas), *(one.part for one in beyond)]),
        pending=(
            *replica_domains.waiting(named.values()),
            *(held for one in replicas for held in one.pending),
            *(held for gone in leaving for held in gone.pending),
        ),
        deferred=(
            *errors.unexplained([root] if observed.failed_calls is None else ()),
            *(held for one in replicas for held in one.deferred),
        ),
        notes=template.topology.notes,
        alarms=tuple(dict.fromkeys(_alarms(fabrics, leaving))),
        wake_at=earliest((*(one.verdict.until for one in seen), *(gone.until for gone in leaving))),
    )


def _shared(template: Template, named: Mapping[ResourceId, Domain], release: DomainRelease, memo: Memo) -> Part:
    """What the set has once, and its part in the domains that it shares."""
    wanted = [domain.resource for domain in named.values() if domain.resource is not None]

    def make() -> Part:
        return part(SET, [*identity.render(template), *resource_claim.shared(template), *wanted, *release.resources])

    return memo.recall(SET, (template, *wanted, *release.resources), make)


def _parting(observed: Observed, named: Mapping[ResourceId, Domain], configuration: Configuration, now: datetime) -> DomainRelease:
    """The shared domains that the set has a part in, and asks for no more."""
    lives = [live for live in owned(observed, configuration, observed.slice(SET)) if live.id not in named]
    if not lives:
        return DomainRelease()
    return leaving(observed, lives, configuration, f"{observed.root.id.name} asks for it no more", now, observed.slices.values())


def _is_there(observed: Observed, id: ResourceId) -> bool:
    return id in observed.slice(SET).objects or id in observed.references.objects


def _alarms(fabrics: Iterable[Fabrics], leaving: Iterable[DomainRelease]) -> Iterator[Alarm]:
    for found in fabrics:
        yield from (domain.alarm for domain in found.domains if domain.alarm is not None)
    for gone in leaving:
        yield from gone.alarms


def _turn(root: Live) -> int | None:
    """The replica that was last said to be updated."""
    turns = (root.body.get("status") or {}).get("updateProgress", {}).get("currentlyUpdating") or ()
    return next((turn["replicaIndex"] for turn in turns), None)


def _root(observed: Observed, admitted: AdmittedSet, standing: Body | None) -> Resource:
    """The set itself: admitted once, by its defaults and our finalizer; written as a whole only where a manifest proposes it."""
    root = observed.root
    metadata = {"name": root.id.name, "namespace": root.id.namespace}
    frame = {"apiVersion": kinds.PODCLIQUESET.api_version, "kind": kinds.PODCLIQUESET.name, "metadata": metadata}
    if observed.proposal is not None:
        proposed = admitted.body["metadata"] if admitted.is_new else observed.proposal.get("metadata") or {}
        given = {key: proposed[key] for key in ("labels", "annotations") if proposed.get(key)}
        finalizers = {} if root.uid else {"finalizers": [labels.SET_FINALIZER]}
        body = {**frame, "metadata": {**metadata, **given, **finalizers}, "spec": admitted.body["spec"]}
        return Resource(root.id, body, "a manifest asks for it", policy=PROPOSED, status=standing)
    if labels.SET_FINALIZER in (root.body["metadata"].get("finalizers") or ()):
        return Resource(root.id, frame, "is looked after", policy=KNOWN, status=standing, urgent=begins(standing))
    enrolled = admitted.body["metadata"].get("annotations") or {}
    body = {**frame, "metadata": {**metadata, **({"annotations": enrolled} if enrolled else {})}, "spec": admitted.body["spec"]}
    return Resource(root.id, body, "is new: gets its defaults and our finalizer", policy=KNOWN, status=standing)


def _seen(
    observed: Observed, template: Template, count: int, configuration: Configuration, now: datetime, memo: Memo
) -> Iterator[ReplicaState]:
    taken = sorted(id.name for id in observed.foreign if id.kind == kinds.POD.name)
    for index in range(count):
        lives = observed.slice(str(index))
        facts = (template, lives, configuration, " ".join(taken))

        def see(index: int = index, lives: Slice = lives) -> ReplicaState:
            return look(template, index, lives, taken, configuration, now)

        yield memo.recall_until(("seen", index), facts, now, see, lambda seen: seen.verdict.until)


def _has_token(observed: Observed, template: Template, memo: Memo) -> bool:
    """Whether pods that start after others can be given their token. Of a set that is not there yet, all that it will be is shown."""
    if not observed.root.uid or not template.is_ordered:
        return True
    secret = observed.slice(SET).objects.get(kinds.SECRET.id(template.id.namespace, names.token_secret(template.id.name)))
    return memo.recall("token", (secret,), lambda: is_filled(secret))


def _replica(observed: Observed, seen: ReplicaState, leave: UpdateAllowance, has_token: bool, fabrics: Fabrics, memo: Memo) -> Replica:
    failed_calls = _troubles(observed, str(seen.stage.index), memo)
    facts = (seen, leave.value, has_token, fabrics, failed_calls)
    return memo.recall(("replica", seen.stage.index), facts, lambda: replica(seen, leave, has_token, fabrics, failed_calls))


def _troubles(observed: Observed, key: str, memo: Memo) -> tuple[FailedCall, ...] | None:
    """What failed in one part of the set."""
    known, root = observed.failed_calls, observed.root.id
    if known is None:
        return None
    return memo.recall("failed_calls", (known,), lambda: errors.in_parts(known, lambda id: _part_of(root, id))).get(key, ())
