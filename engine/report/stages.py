"""Stages: the passes of one root, with those that repeat shown once."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.operation import Operation
from engine.report.alike import TOKEN
from engine.verb import Verb

DISTINCTIVE: Final = frozenset({Verb.CREATE, Verb.REPLACE, Verb.RELEASE, Verb.DELETE})
"""The verbs that distinguish passes. A pass without any of them joins the one before it."""
LONGEST_PERIOD: Final = 4
"""The most passes that a repeated period consists of."""

Signature = tuple[tuple[tuple[str, str], int], ...]
"""How many operations of each verb and kind a pass has."""


class Stage(Struct, frozen=True, eq=False):
    """A period of passes, and how often it repeats."""

    after: timedelta
    """The simulated time from the first pass to the beginning of the stage."""
    passes: tuple[tuple[Operation, ...], ...]
    """The passes of all repetitions, in order; only operations of the verbs in `DISTINCTIVE`."""
    period: int
    """How many of the passes one repetition has."""

    @property
    def times(self) -> int:
        """How often the period happens."""
        return len(self.passes) // self.period


class _FollowingPass(Struct, frozen=True, eq=False):
    after: timedelta
    operations: tuple[Operation, ...]

    @property
    def signature(self) -> Signature:
        counts = Counter((str(operation.verb), operation.id.kind) for operation in self.operations)
        return tuple(sorted(counts.items()))


def stages_of(forecast: Forecast, root: ResourceId, listed: Iterable[Operation] = (), *, every_pass: bool = False) -> tuple[Stage, ...]:
    """The stages of one root that follow what is `listed` already: the operations of its first plan.

    Of a root that does not exist yet, that plan has everything, and only the root itself is created in the first pass.
    With `every_pass`, passes that repeat are stages of their own.
    """
    remaining = Counter(map(_pattern, listed))
    passes: list[_FollowingPass] = []
    for each in forecast.passes:
        news: list[Operation] = []
        for operation in each.operations.get(root, ()):
            if remaining[pattern := _pattern(operation)]:
                remaining[pattern] -= 1
            elif operation.verb in DISTINCTIVE:
                news.append(operation)
        if news:
            passes.append(_FollowingPass(each.after, tuple(news)))
    if every_pass:
        return tuple(Stage(each.after, (each.operations,), 1) for each in passes)
    return tuple(_folded(passes, [each.signature for each in passes]))


def _folded(passes: Sequence[_FollowingPass], signatures: Sequence[Signature]) -> Iterator[Stage]:
    """The passes as stages: the repetition that covers most passes is one, and so on with those before and after it."""
    begin, period, times = _longest_repetition(signatures)
    if times == 1:
        yield from (Stage(each.after, (each.operations,), 1) for each in passes)
        return
    end = begin + period * times
    yield from _folded(passes[:begin], signatures[:begin])
    yield Stage(passes[begin].after, tuple(each.operations for each in passes[begin:end]), period)
    yield from _folded(passes[end:], signatures[end:])


def _longest_repetition(signatures: Sequence[Signature]) -> tuple[int, int, int]:
    """Where the repetition begins that covers the most passes, the length of its period (the shortest), and how often that happens.

    Once, if nothing repeats.
    """
    best = (0, 1, 1)
    for period in range(1, LONGEST_PERIOD + 1):
        alike = 0
        for at in range(len(signatures) - period):
            alike = alike + 1 if signatures[at] == signatures[at + period] else 0
            times = alike // period + 1
            if times > 1 and alike % period == 0 and period * times > best[1] * best[2]:
                best = (at + 1 - alike, period, times)
    return best


def _pattern(operation: Operation) -> tuple[Verb, ResourceId]:
    """An operation without the end of the name: names of the pods of a new root change when it gets its uid."""
    return operation.verb, operation.id._replace(name=TOKEN.sub("-*", operation.id.name))
