"""Queues: the queue that a PodCliqueSet and its cliques ask for, and the helpers that back ends with queues and gangs share."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from engine.paths import get
from engine.resource import Body
from resources.base.fields import CLIQUES, GROUPS, TEMPLATE, cliques_of, mapping, mappings
from resources.ports.scheduler import LabelsAndAnnotations, SetMetadata
from resources.schema.issues import ErrorType, Issue, Path

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


def metadata_of(body: Body) -> SetMetadata:
    """The metadata of a PodCliqueSet of any shape. Values that are no strings are left out."""
    metadata = mapping(body.get("metadata"))
    cliques = {str(clique.get("name", "")): _strings(clique) for clique in cliques_of(body)}
    return SetMetadata(_text(metadata.get("namespace")), _text(metadata.get("name")), _strings(metadata), cliques)


def clique_paths(body: Body) -> Mapping[str, Path]:
    """Clique name -> its path."""
    return {str(clique.get("name", "")): (*CLIQUES, index) for index, clique in enumerate(cliques_of(body))}


class ConstraintMessages(Struct, frozen=True):
    """The messages of a back end about topology constraints that it does not support."""

    of_set: str
    of_clique: Callable[[Any], str]
    """The message for the clique of that name."""
    of_group: Callable[[Any], str]
    """The message for the scaling group of that name."""


def constraint_issues(body: Body, messages: ConstraintMessages) -> Iterator[Issue]:
    """An issue for each topology constraint of a set, for a back end that supports none."""
    template = mapping(get(body, TEMPLATE, {}))
    if template.get("topologyConstraint"):
        yield Issue((*TEMPLATE, "topologyConstraint"), ErrorType.INVALID, messages.of_set)
    for index, clique in enumerate(cliques_of(body)):
        if clique.get("topologyConstraint"):
            yield Issue((*CLIQUES, index, "topologyConstraint"), ErrorType.INVALID, messages.of_clique(clique.get("name")))
    for index, group in enumerate(mappings(template.get(GROUPS[-1]))):
        if group.get("topologyConstraint"):
            yield Issue((*GROUPS, index, "topologyConstraint"), ErrorType.INVALID, messages.of_group(group.get("name")))


def _strings(holder: Mapping[str, Any]) -> LabelsAndAnnotations:
    labels, annotations = mapping(holder.get("labels")), mapping(holder.get("annotations"))
    return LabelsAndAnnotations(_only_strings(labels), _only_strings(annotations))


def _only_strings(keys: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in keys.items() if isinstance(value, str)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
