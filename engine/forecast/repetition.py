"""Repetition: whether a forecast has come back to objects that it had before, and so would go on for ever."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from engine.canonical import digest
from engine.forecast.store import SYNTHETIC
from engine.ids import ResourceId
from engine.observed import Live

FROM: Final = 64
"""The number of passes after which repetitions are looked for. Most forecasts end before."""
COUNTERS: Final = frozenset({"resourceVersion", "generation", "observedGeneration", "managedFields"})
"""The fields that grow with every change."""
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT")

Change = tuple[Live | None, Live | None]
"""An object before and after a pass; None where it does not exist."""


class Repetition:
    """Compares the objects after each pass with those after an earlier one, but for times, revisions, and uids and names made from them.

    The earlier pass is the last whose number is a power of two, so that a repetition of any length is found.
    """

    def __init__(self) -> None:
        self._passes = 0
        self._difference: Counter[str] = Counter()
        """Digest of an object -> how many more such objects there are than after the earlier pass; without zeros."""
        self._acting: dict[ResourceId, None] = {}
        self._names: dict[str, str] = {}
        """Name of an object whose name ends at random -> what stands for it."""
        self.roots: frozenset[ResourceId] = frozenset()
        """The roots with operations that repeat; empty if nothing does."""

    def is_found(self, changes: Iterable[Change], acting: Iterable[ResourceId]) -> bool:
        """Whether the objects are the same as after the earlier pass, and operations have been executed since.

        `changes`: what the pass has changed. `acting`: the roots with operations other than statuses in it.
        """
        self._passes += 1
        if self._passes > FROM:
            self._acting.update(dict.fromkeys(acting))
            counted = [(live, step) for change in changes for live, step in zip(change, (-1, 1), strict=True) if live is not None]
            self._names.update(name for live, _ in counted for name in _random_name(live))
            for live, step in counted:
                self._count(live, step)
            if self._acting and not self._difference:
                self.roots = frozenset(self._acting)
                return True
        if self._passes >= FROM and self._passes.bit_count() == 1:
            self._difference, self._acting = Counter(), {}
        return False

    def _count(self, live: Live, step: int) -> None:
        key = self._digest(live)
        self._difference[key] += step
        if not self._difference[key]:
            del self._difference[key]

    def _digest(self, live: Live) -> str:
        """A digest of what makes two objects the same."""
        return digest(self._stable({**live.body, "kind": [live.id.group, live.id.kind]}))

    def _stable(self, value: Any) -> Any:
        if isinstance(value, str):
            if value.startswith(SYNTHETIC):
                return SYNTHETIC
            return "" if TIME.match(value) else self._names.get(value, value)
        if isinstance(value, Mapping):
            return {key: self._stable(each) for key, each in value.items() if key not in COUNTERS}
        if isinstance(value, list | tuple):
            return [self._stable(each) for each in value]
        return value


def _random_name(live: Live) -> Iterator[tuple[str, str]]:
    """The name of an object, if it ends at random, and what stands for it."""
    if prefix := live.body["metadata"].get("generateName"):
        yield live.id.name, f"{prefix}*"
