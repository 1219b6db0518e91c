"""Asked replicas: the numbers of replicas that scaling adapters in the files of a command ask for. Their graph's manifest carries them."""

from collections.abc import Iterable, Mapping

from engine.observed import Observed
from engine.resource import Body
from resources.base.fields import annotations_of
from resources.base.labels import ADAPTER_REPLICAS

NONE_ASKED: Mapping[str, int] = {}


def asked_replicas(observed: Observed) -> Mapping[str, int]:
    """Service -> the replicas that its adapter asks for in the files of a command."""
    if observed.proposal is None or observed.proposer is not None:
        return NONE_ASKED
    text = annotations_of(observed.proposal).get(ADAPTER_REPLICAS)
    if not isinstance(text, str):
        return NONE_ASKED
    entries = (entry.partition("=") for entry in text.split(","))
    return {name: int(number) for name, _, number in entries if number.isdecimal() and number.isascii()}


def with_asked_replicas(manifest: Body, numbers: Iterable[tuple[str, int]]) -> Body:
    """The manifest of a graph with the numbers that adapters of its services ask for; the manifest itself for none."""
    text = ",".join(f"{name}={number}" for name, number in sorted(numbers))
    if not text:
        return manifest
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "annotations": {**annotations_of(manifest), ADAPTER_REPLICAS: text}}}


def written_annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """The annotations of a graph without the one that is not written."""
    return {key: value for key, value in annotations.items() if key != ADAPTER_REPLICAS}
