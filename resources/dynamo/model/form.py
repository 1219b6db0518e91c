"""PodForm: what the engine adds to the pods of a graph. It is recorded once, so that an upgrade changes no pod that runs."""

from collections.abc import Mapping
from enum import StrEnum

from resources.base.labels import POD_FORM

PROVIDER = "nvidia.com/workload-provider"
"""The annotation of a graph that records what runs it. It is Dynamo's own."""


class PodForm(StrEnum):
    """The forms that there are; the values of the annotation `POD_FORM`."""

    FIRST = "1"
    """That of graphs without a record: only services of the types `worker`, `prefill` and `decode` are changed for several nodes."""
    CURRENT = "2"
    """That of graphs made from now on. Every service on several nodes whose framework is known is changed, its pods are on different
    nodes, and mpirun passes on what `envFrom` brings."""


def form_of(annotations: Mapping[str, str]) -> PodForm:
    """The recorded form; the first one without a record, or with a value that means nothing."""
    return PodForm.CURRENT if annotations.get(POD_FORM) == PodForm.CURRENT else PodForm.FIRST


def with_form(annotations: Mapping[str, str], form: PodForm) -> Mapping[str, str]:
    """The annotations with this form, unless they name one, and without the record of what runs the graph, which steers nothing else: a
    graph with its records is the same as without them."""
    own = {key: value for key, value in annotations.items() if key != PROVIDER}
    return own if own.get(POD_FORM) else {**own, POD_FORM: str(form)}
