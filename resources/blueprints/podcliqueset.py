"""PodCliqueSet: the blueprint of the root kind: replicas that consist of cliques and scaling groups of cliques."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from engine.blueprint import Asked, Blueprint, Desired, ScaledOut
from engine.errors import GraphError
from engine.graph import graph, part
from engine.health import INVALID, Readiness, obstacle_of
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, World
from engine.paths import get
from engine.resource import Policy
from resources.admission.admitted_set import AdmittedSet, admitted_set
from resources.base import kinds, labels
from resources.base.fields import mapping, mappings
from resources.blueprints.deletion import teardown
from resources.blueprints.desired_set import SetInput, desired_set
from resources.blueprints.root import KNOWN, invalid_root
from resources.children.child_kind import ChildTable
from resources.children.table import CHILDREN
from resources.domains.release import used_orphans
from resources.model.domain import policy_of
from resources.model.epochs import epoch_objection, left_alone
from resources.model.gang_scheduling import on_cluster
from resources.model.template import Template, read, referenced_ids, with_hashes
from resources.model.view import ROOT, SET, part_key
from resources.ports.configuration import Configuration
from resources.ports.references import template_references
from resources.status import errors
from resources.status import podcliqueset as status

BINDINGS = frozenset({kinds.TOPOLOGY_BINDING.key})
"""What is read only if topology constraints are enabled."""
READS = BINDINGS.union(kind.key for kind in (kinds.POD, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG))
"""The kinds of live objects from which the set itself is computed, above all its status."""


class PodCliqueSetBlueprint(Blueprint[Configuration]):
    """The blueprint of PodCliqueSets."""

    kind: Kind = kinds.PODCLIQUESET
    selector: str = labels.SELECTOR
    light_kinds = frozenset({kinds.POD.name})

    def __init__(self, table: ChildTable = CHILDREN) -> None:
        """`table`: the kinds of objects that a set owns."""
        self._table = table

    def children(self, configuration: Configuration) -> Mapping[Kind, tuple[str, ...]]:
        """The kinds of objects that a set owns, including the domains of fabrics and the schedulers' objects for gangs."""
        return self._table.writes(configuration)

    def references(self, configuration: Configuration) -> tuple[Kind, ...]:
        """The kinds of objects that a set refers to.

        These are ResourceClaimTemplates; with fabrics, domains and claims of other sets; with topology constraints, topology bindings;
        with scheduler back ends, what their admission rules read, e.g. queues.
        """
        domains = (*(fabric.kind for fabric in configuration.fabrics), kinds.RESOURCE_CLAIM) if configuration.fabrics else ()
        bindings = (kinds.TOPOLOGY_BINDING,) if configuration.topology else ()
        return (kinds.RESOURCE_CLAIM_TEMPLATE, *domains, *bindings, *_scheduler_references(configuration))

    def reads(self, configuration: Configuration) -> Mapping[str, frozenset[str]]:
        """Kind -> the kinds that must be listed completely before objects of that kind are changed."""
        reads = {self.kind.key: READS, **self._table.reads(configuration)}
        return reads if configuration.topology else {kind: needed - BINDINGS for kind, needed in reads.items()}

    def policies(self, configuration: Configuration) -> Mapping[str, Policy]:
        """Kind -> policy, for the kinds that carry a finalizer of ours: cliques, scaling groups and domains."""
        return {**self._table.policies, **{fabric.kind.name: policy_of(fabric) for fabric in configuration.fabrics}}

    def root_of(self, child: Live) -> ResourceId | None:
        """The set that the labels of the child name; None if they name none."""
        name = child.labels.get(labels.PART_OF) if child.labels.get(labels.MANAGED_BY) != labels.GRAPH_MANAGER else None
        return self.kind.id(child.id.namespace, name) if name else None

    def in_use(self, orphans: Sequence[Live], world: World, configuration: Configuration) -> frozenset[str]:
        """The uids of the domains among these objects that pods without a root, or resource claims, use."""
        return used_orphans(world, orphans, configuration)

    def mentioned(self, observed: Observed, configuration: Configuration) -> Iterator[ResourceId]:
        """The pods that the PodGangs of the set list. The name of a pod depends on the pod that it replaced, which may be gone."""
        for slice in observed.slices.values():
            for gang in slice.of(kinds.PODGANG.name):
                for group in mappings(mapping(gang.body.get("spec")).get("podgroups")):
                    for pod in mappings(group.get("podReferences")):
                        if isinstance(name := pod.get("name"), str) and pod.get("namespace") == observed.root.id.namespace:
                            yield kinds.POD.id(observed.root.id.namespace, name)

    def asked(self, observed: Observed, configuration: Configuration) -> Asked:
        """The pods, cliques, groups, gangs, Services, autoscalers and domains that the specification names."""
        from resources.blueprints.asked import asked  # Only in a process that keeps running.

        return asked(observed, configuration)

    def lost(self, observed: Observed) -> Mapping[ResourceId, int]:
        """PodClique -> how many of its pods have existed and are gone."""
        from resources.blueprints.scaled_parts import lost

        return lost(observed)

    def scaled(self, observed: Observed, configuration: Configuration) -> ScaledOut:
        """The pods, cliques and gangs of cliques and scaling groups with more replicas than the specification names."""
        from resources.blueprints.scaled_parts import scaled  # Only in a process that keeps running.

        return scaled(observed, configuration.limits.of_set)

    def lists_failures(self, lives: Iterable[Live]) -> bool:
        """Whether a set, a clique or a scaling group lists failed calls in its status."""
        return any(live.id.kind in self._table.parents and errors.are_listed(live) for live in lives)

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """The part of the set that the name of the child belongs to, e.g. `"0"` for replica 0."""
        return part_key(root, child)

    def desire(self, observed: Observed, now: datetime, configuration: Configuration, memo: Memo) -> Desired:
        """The desired objects of the set, or the problems because of which nothing can be computed."""
        root = observed.root
        if root.deleting_since is not None:
            return teardown(observed, KNOWN, self._table, configuration, now, memo)
        if (objection := epoch_objection(observed, configuration)) is not None:
            return left_alone(objection)
        facts = (configuration, observed.unserved)
        configuration = memo.recall("configuration on the cluster", facts, lambda: on_cluster(*facts))
        admitted = admitted_set(observed, configuration, self._listed(observed, configuration), memo)
        if admitted.problems:
            return _invalid(observed, admitted.problems)
        template = _template(observed, admitted, configuration, memo)
        try:
            return desired_set(SetInput(observed, admitted, template, self._table, configuration, now, memo))
        except GraphError as error:
            return _invalid(observed, (str(error),))

    def _listed(self, observed: Observed, configuration: Configuration) -> tuple[str, ...]:
        """The kinds that the observation lists. Those that only back ends read are unknown where they are not served."""
        unserved = observed.unserved.intersection(kind.key for kind in _scheduler_references(configuration))
        return tuple(kind.key for kind in self.references(configuration) if kind.key not in unserved)


def _invalid(observed: Observed, problems: tuple[str, ...]) -> Desired:
    """Nothing for a set that is proposed; the status of a stored one says what is wrong, and everything else stays as it is."""
    root = observed.root
    if observed.proposal is not None or not root.uid:
        return Desired(graph(()), problems=problems)
    parts = (part(ROOT, [invalid_root(root, status.of_invalid(root))]),)
    return Desired(graph(parts), problems=problems, readiness=Readiness(False, INVALID, "", obstacle=obstacle_of((), (), problems)))


def template_of(observed: Observed, configuration: Configuration, memo: Memo) -> Template | None:
    """The template of a set that is only proposed; None if it is not valid."""
    admitted = admitted_set(observed, configuration, (), memo)
    return None if admitted.problems else _template(observed, admitted, configuration, memo)


def _scheduler_references(configuration: Configuration) -> tuple[Kind, ...]:
    """The kinds that the admission rules of the enabled back ends read, each once."""
    schedulers = (scheduler for _, scheduler in sorted(configuration.schedulers.items()))
    return tuple(dict.fromkeys(kind for scheduler in schedulers for kind in scheduler.referenced_kinds))


def _template(observed: Observed, admitted: AdmittedSet, configuration: Configuration, memo: Memo) -> Template:
    root, body, fingerprint = observed.root, admitted.effective, admitted.fingerprint
    ids = memo.recall("references", (fingerprint, configuration), lambda: referenced_ids(root.id, body["spec"], configuration))
    references = template_references(observed, ids, SET, memo)

    hashes = admitted.version.pods.hashes

    def make() -> Template:
        identity = root.uid or f"{root.id.namespace}/{root.id.name}"
        return read(root.id, identity, body["metadata"], body["spec"], references, configuration, hashes, is_edited=is_edited)

    is_edited = bool(admitted.faults)
    template = memo.recall("template", (fingerprint, root.uid, configuration, references, is_edited), make)
    if get(root.body, ("status", "currentGenerationHash"), template.hash) == template.hash:
        return template
    from resources.blueprints.hashes_in_use import hashes_in_use  # Few previews are of sets whose template has changed.

    default = configuration.default_scheduler
    in_use = hashes_in_use(observed, body["spec"], template, default, hashes)
    return memo.recall("template in use", (template, in_use), lambda: with_hashes(template, dict(in_use))) if in_use else template
