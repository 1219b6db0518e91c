"""PodCliqueSet: the blueprint of the root kind: replicas that consist of cliques and scaling groups of cliques."""

from collections.abc import Mapping
from datetime import datetime

from engine.blueprint import Desired
from engine.errors import GraphError
from engine.graph import graph
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.resource import Policy
from resources.admission.admitted_set import AdmittedSet, admitted_set
from resources.base import kinds, labels
from resources.blueprints.desired_set import SetInput, desired_set
from resources.blueprints.root import KNOWN
from resources.model.domain import policy_of
from resources.model.part_keys import SET, part_key
from resources.model.template import Template, read, referenced_ids
from resources.model.template_references import template_references
from resources.ports.configuration import Configuration
from resources.removal.order import POLICIES
from resources.removal.teardown import teardown

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
"""The kinds of objects that every set can own; fabrics add those of their domains."""

READS = {
    "PodCliqueSet": frozenset({"Pod", "PodClique", "PodCliqueScalingGroup", "PodGang"}),
    "PodCliqueScalingGroup": frozenset({"Pod", "PodClique"}),
    "PodClique": frozenset({"Pod", "PodCliqueScalingGroup"}),
    "PodGang": frozenset({"Pod", "PodClique", "PodCliqueScalingGroup"}),
    "Pod": frozenset({"PodClique", "PodCliqueScalingGroup", "PodGang"}),
    "ResourceClaim": frozenset({"Pod", "PodClique", "PodCliqueScalingGroup"}),
    "HorizontalPodAutoscaler": frozenset({"PodClique", "PodCliqueScalingGroup"}),
}
"""Kind -> the kinds of live objects from which objects of that kind are computed."""
CONSTRAINED = ("PodCliqueSet", "PodGang")
"""The kinds that are also computed from a ClusterTopologyBinding, if topology constraints are enabled."""


class PodCliqueSetBlueprint:
    """The blueprint of PodCliqueSets (see `engine.blueprint.Blueprint`)."""

    kind: Kind = kinds.PODCLIQUESET
    selector: str = labels.SELECTOR

    def children(self, configuration: Configuration) -> tuple[Kind, ...]:
        """The kinds of objects that a set owns, including the domains of fabrics."""
        return (*CHILDREN, *(fabric.kind for fabric in configuration.fabrics))

    def references(self, configuration: Configuration) -> tuple[Kind, ...]:
        """The kinds of objects that a set refers to.

        These are ResourceClaimTemplates; with fabrics, domains and claims of other sets; with topology constraints, topology bindings.
        """
        domains = (*(fabric.kind for fabric in configuration.fabrics), kinds.RESOURCE_CLAIM) if configuration.fabrics else ()
        bindings = (kinds.TOPOLOGY_BINDING,) if configuration.topology else ()
        return (kinds.RESOURCE_CLAIM_TEMPLATE, *domains, *bindings)

    def reads(self, configuration: Configuration) -> Mapping[str, frozenset[str]]:
        """Kind -> the kinds that must be listed completely before objects of that kind are changed."""
        users = frozenset({"Pod", "PodClique", "ResourceClaim"})
        constrained = {kind: READS[kind] | {kinds.TOPOLOGY_BINDING.name} for kind in CONSTRAINED} if configuration.topology else {}
        return READS | constrained | {fabric.kind.name: users for fabric in configuration.fabrics}

    def policies(self, configuration: Configuration) -> Mapping[str, Policy]:
        """Kind -> policy, for the kinds that carry a finalizer of ours: cliques, scaling groups and domains."""
        return POLICIES | {fabric.kind.name: policy_of(fabric) for fabric in configuration.fabrics}

    def root_of(self, child: Live) -> ResourceId | None:
        """The set that the labels of the child name; None if they name none."""
        name = child.labels.get(labels.PART_OF)
        return self.kind.id(child.id.namespace, name) if name else None

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """The part of the set that the name of the child belongs to, e.g. `"0"` for replica 0."""
        return part_key(root, child)

    def desire(self, observed: Observed, now: datetime, configuration: Configuration, memo: Memo) -> Desired:
        """The desired objects of the set, or the problems because of which nothing can be computed."""
        root = observed.root
        if root.deleting_since is not None:
            return teardown(observed, KNOWN, configuration, now, memo)
        admitted = admitted_set(observed, configuration, tuple(kind.name for kind in self.references(configuration)), memo)
        if admitted.problems:
            return Desired(graph(()), problems=admitted.problems)
        template = _template(observed, admitted, configuration, memo)
        try:
            return desired_set(SetInput(observed, admitted, template, configuration, now, memo))
        except GraphError as error:
            return Desired(graph(()), problems=(str(error),))


def _template(observed: Observed, admitted: AdmittedSet, configuration: Configuration, memo: Memo) -> Template:
    root, body, fingerprint = observed.root, admitted.body, admitted.fingerprint
    ids = memo.recall("references", (fingerprint, configuration), lambda: referenced_ids(root.id, body["spec"], configuration))
    references = template_references(observed, ids, SET, memo)

    def make() -> Template:
        identity = root.uid or f"{root.id.namespace}/{root.id.name}"
        return read(root.id, identity, body["metadata"], body["spec"], references, configuration)

    return memo.recall("template", (fingerprint, root.uid, configuration, references), make)
