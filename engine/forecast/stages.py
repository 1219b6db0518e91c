"""Stages: the passes of one root, with those that repeat told once."""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.operation import Operation
from engine.verb import Verb

TOLD: Final = frozenset({Verb.CREATE, Verb.REPLACE, Verb.RELEASE, Verb.DELETE})
"""The verbs that distinguish passes. A pass without any of them joins the one before it."""
LONGEST_PERIOD: Final = 4
"""The most passes that a repeated period consists of."""

Signature = tuple[tuple[tuple[str, str], int], ...]
"""How many operations of each verb and kind a pass has."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A period of passes, and how often it repeats."""

    after: timedelta
    """The simulated time from the first pass to the beginning of the stage."""
    passes: tuple[tuple[Operation, ...], ...]
    """The passes of all repetitions, in order; only operations of the verbs in `TOLD`."""
    period: int
    """How many of the passes one repetition has."""

    @property
    def times(self) -> int:
        """How often the period happens."""
        return len(self.passes) // self.period


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    after: timedelta
    operations: tuple[Operation, ...]

    @property
    def signature(self) -> Signature:
        counts = Counter((str(operation.verb), operation.id.kind) for operation in self.operations)
        return tuple(sorted(counts.items()))


def stages_of(forecast: Forecast, root: ResourceId, listed: Set[str] = frozenset()) -> tuple[Stage, ...]:
    """The stages of one root that follow what is `listed` already: the keys of the operations of its first plan.

    Of a root that does not exist yet, that plan has everything, and only the root itself is created in the first pass.
    """
    remaining = set(listed)
    told: list[_Told] = []
    for each in forecast.passes:
        operations = each.operations.get(root, ())
        news = tuple(operation for operation in operations if operation.verb in TOLD and operation.key not in remaining)
        remaining.difference_update(operation.key for operation in operations)
        if news:
            told.append(_Told(each.after, news))
    signatures = [each.signature for each in told]
    stages: list[Stage] = []
    at = 0
    while at < len(told):
        period, times = _repetition(signatures, at)
        covered = told[at : at + period * times]
        stages.append(Stage(covered[0].after, tuple(each.operations for each in covered), period))
        at += period * times
    return tuple(stages)


def _repetition(signatures: Sequence[Signature], at: int) -> tuple[int, int]:
    """The period from a position on that covers the most passes, the shortest of those, and how often it happens."""
    best = (1, 1)
    for period in range(1, LONGEST_PERIOD + 1):
        pattern = signatures[at : at + period]
        times = 1
        while len(pattern) == period and signatures[at + period * times : at + period * (times + 1)] == pattern:
            times += 1
        if times > 1 and period * times > best[0] * best[1]:
            best = (period, times)
    return best
