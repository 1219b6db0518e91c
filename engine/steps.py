"""Steps: counts what passes get done, so that a process that works long is told from one that hangs. It changes nothing else."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Steps:
    """How much has been done. Made by the caller of passes and read in any thread; between two readings only a difference counts."""

    __slots__ = ("count", "is_waiting")

    def __init__(self) -> None:
        self.count = 0
        """Results computed, objects compared, calls answered."""
        self.is_waiting = False
        """Whether nothing is to be done now: the process waits for changes, or for what it reads, which has its own time limits."""

    def counted(self, items: Iterable[T]) -> Iterator[T]:
        """The items, each counted when it is taken."""
        for item in items:
            self.count += 1
            yield item

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While the block runs nothing is to be done."""
        before, self.is_waiting = self.is_waiting, True
        try:
            yield
        finally:
            self.is_waiting = before
            self.count += 1
