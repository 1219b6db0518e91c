"""PodForm: what the engine adds to the pods of a graph. It is recorded once, so that an upgrade changes no pod that runs."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from engine.resource import Body
from resources.base import labels
from resources.base.labels import GRAPH_FINALIZER, POD_FORM

PROVIDER = labels.PROVIDER
"""The annotation of a graph that records what runs it. It is Dynamo's own."""


class PodForm(StrEnum):
    """The forms that there are, in their order; the values of the annotation `POD_FORM`."""

    FIRST = "1"
    """That of graphs without a record: only services of the types `worker`, `prefill` and `decode` are changed for several nodes."""
    SECOND = "2"
    """Every service on several nodes whose framework is known is changed, its pods are on different nodes, and mpirun passes on what
    `envFrom` brings. vLLM joins its nodes by Ray."""
    THIRD = "3"
    """vLLM joins its nodes by its own executor if the graph or its image says so, or by data parallelism; flags that the user wrote are
    not added again; probes follow the version of the runtime; every pod of a service on several nodes knows its rank and its leader."""
    FOURTH = "4"
    """Volcano schedules the pods of a graph on Grove that names one of its queues."""
    FIFTH = "5"
    """All containers of a pod have the configured addresses and, on several nodes with TensorRT-LLM, the SSH keys."""
    SIXTH = "6"
    """A service with a scaling adapter has one as an object, which owns its number of replicas. With Ray, no command of the leader's script
    runs unless Ray's head has started."""
    CURRENT = SIXTH
    """That of graphs made from now on."""

    def includes(self, other: "PodForm") -> bool:
        """Whether pods of this form have what that form has added."""
        return self.value >= other.value


def is_new(graph: Body) -> bool:
    """Whether nothing has been decided about a graph: it has not got its finalizer yet, which comes with its records."""
    return GRAPH_FINALIZER not in (graph["metadata"].get("finalizers") or ())


def form_of(annotations: Mapping[str, str]) -> PodForm:
    """The recorded form; the first one without a record, or with a value that means nothing."""
    value = annotations.get(POD_FORM)
    return PodForm(value) if value in _VALUES else PodForm.FIRST


def with_form(annotations: Mapping[str, str], form: PodForm) -> Mapping[str, str]:
    """The annotations with this form, unless they name one, and without the record of what runs the graph, which steers nothing else: a
    graph with its records is the same as without them."""
    own = {key: value for key, value in annotations.items() if key != PROVIDER}
    return own if own.get(POD_FORM) else {**own, POD_FORM: str(form)}


_VALUES: Final = frozenset(map(str, PodForm))
