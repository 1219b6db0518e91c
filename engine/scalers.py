"""Scalers: the objects that own the number of replicas of a part of a root, and what manifests beside that of the root ask of them."""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from msgspec import Struct

from engine.blueprint import Blueprint, C
from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.operation import Create, Outcome, Patch, Replace, Result
from engine.paths import get
from engine.resource import REPLICAS

Asked = Mapping[ResourceId, Mapping[str, int]]
"""Root -> part of it -> how many replicas are asked for."""


class Scaler(Struct, frozen=True):
    """What is asked of one scaler."""

    root: ResourceId
    part: str
    id: ResourceId
    asked: int
    live: int | None
    """The number that it has; None if it does not exist, or has none."""


def scalers(blueprints: Iterable[Blueprint[C]], roots: Iterable[Observed], asked: Asked) -> Iterator[Scaler]:
    """The scalers that have what is asked for; none of a root that is not among these, or whose part has none."""
    by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
    for observed in (each for each in roots if each.root.id in asked):
        root = observed.root.id
        for part, number in asked[root].items():
            if (id := by_kind[root.kind].scaler_of(root, part)) is not None:
                yield Scaler(root, part, id, number, replicas_of(observed.find(id) or observed.foreign.get(id)))


def replicas_of(live: Live | None) -> int | None:
    """The number of replicas that an object has; None if it does not exist, or has none."""
    number: Any = get(live.body, REPLICAS) if live is not None else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None


def unmet(asked: Asked, known: Iterable[Scaler], results: Iterable[Result]) -> Asked:
    """What is still to be asked for: neither had its scaler the number, nor was it written to it."""
    done = (result.operation for result in results if result.outcome is Outcome.DONE)
    written = {operation.id for operation in done if isinstance(operation, Create | Replace | Patch)}
    met = {(scaler.root, scaler.part) for scaler in known if scaler.live == scaler.asked or scaler.id in written}
    return {root: left for root, numbers in asked.items() if (left := _without(root, numbers, met))}


def _without(root: ResourceId, numbers: Mapping[str, int], met: Set[tuple[ResourceId, str]]) -> Mapping[str, int]:
    return {part: number for part, number in numbers.items() if (root, part) not in met}
