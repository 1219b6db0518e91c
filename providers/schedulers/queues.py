"""Queues: the queue that a PodCliqueSet and its cliques ask for, and the helpers that back ends with queues and gangs share."""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from resources.base.fields import CLIQUES, GROUPS, TEMPLATE
from resources.ports.scheduler import LabelsAndAnnotations, SetMetadata
from resources.schema.issues import ErrorType, Issue, Path
from resources.schema.podcliqueset import CliqueTemplate, PodCliqueSet, ScalingGroupConfig, SetTemplate

Declared = Callable[[LabelsAndAnnotations], tuple[str, str]]
"""The queue that the metadata of an object declares, empty if none, and the metadata field that declares it."""


class RequestedQueues(Struct, frozen=True):
    """The queues that a set and its cliques ask for."""

    of_set: str
    """The set's own; empty if it names none."""
    of_cliques: Mapping[str, str]
    """The cliques that name a queue, in the order of the template."""

    @property
    def names(self) -> tuple[str, ...]:
        """The queues of the cliques, each once, sorted."""
        return tuple(sorted(set(self.of_cliques.values())))

    @property
    def agreed(self) -> str:
        """The set's queue, else the one that all naming cliques name; empty if there is none, or if they name different ones."""
        return self.of_set or (self.names[0] if len(self.names) == 1 else "")


def requested_queues(metadata: SetMetadata, declared: Declared) -> RequestedQueues:
    """The queues in the metadata of a set and its cliques."""
    of_cliques = {name: declared(clique)[0] for name, clique in metadata.of_cliques.items()}
    return RequestedQueues(declared(metadata.of_set)[0], {name: queue for name, queue in of_cliques.items() if queue})


def metadata_of(model: PodCliqueSet) -> SetMetadata:
    """The metadata of a PodCliqueSet in which queues are named."""
    metadata = model.metadata
    of_set = LabelsAndAnnotations(metadata.labels or {}, metadata.annotations or {})
    cliques = {clique.name: LabelsAndAnnotations(clique.labels, clique.annotations) for clique in model.spec.template.cliques}
    return SetMetadata(metadata.namespace or "", metadata.name, of_set, cliques)


def clique_paths(model: PodCliqueSet) -> Mapping[str, Path]:
    """Clique name -> its path."""
    return {clique.name: (*CLIQUES, index) for index, clique in enumerate(model.spec.template.cliques)}


class ConstraintMessages(Struct, frozen=True):
    """The messages of a back end about topology constraints that it does not support."""

    of_set: str
    of_clique: Callable[[str], str]
    """The message for the clique of that name."""
    of_group: Callable[[str], str]
    """The message for the scaling group of that name."""


def constraint_issues(model: PodCliqueSet, messages: ConstraintMessages) -> Iterator[Issue]:
    """An issue for each topology constraint of a set that has any field, for a back end that supports none."""
    template = model.spec.template
    if _is_constrained(template):
        yield Issue((*TEMPLATE, "topologyConstraint"), ErrorType.INVALID, messages.of_set)
    for index, clique in enumerate(template.cliques):
        if _is_constrained(clique):
            yield Issue((*CLIQUES, index, "topologyConstraint"), ErrorType.INVALID, messages.of_clique(clique.name))
    for index, group in enumerate(template.pod_clique_scaling_groups):
        if _is_constrained(group):
            yield Issue((*GROUPS, index, "topologyConstraint"), ErrorType.INVALID, messages.of_group(group.name))


def _is_constrained(holder: SetTemplate | CliqueTemplate | ScalingGroupConfig) -> bool:
    return holder.topology_constraint is not None and bool(holder.topology_constraint.model_fields_set)
