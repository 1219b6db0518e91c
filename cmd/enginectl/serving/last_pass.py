"""LastPass: what the loop has planned and done last, for pages that show it in another thread."""

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.operation import Result, WriteStatus
from engine.plan import Plan
from engine.runtime.clock import Clock
from engine.runtime.passes import Pass
from engine.verb import Verb
from resources.ports.configuration import Configuration

KEPT: Final = 200
"""How many operations are remembered."""


class DoneOperation(Struct, frozen=True):
    """An operation that was tried, and how it ended. Statuses are none: they only report."""

    at: datetime
    verb: Verb
    id: ResourceId
    root: ResourceId | None
    """The root whose plan it was in; None if that is not known."""
    why: str
    outcome: str
    error: str
    """Why it failed; empty if it did not."""


class LoopState(Struct, frozen=True, eq=False):
    """What was known of the loop at one moment. It is never changed, so it can be read in any thread."""

    leads: bool = False
    current: Pass[Configuration] | None = None
    """The last pass; None before the first one, and while this process does not lead."""
    is_executing: bool = False
    """Whether the operations of the pass are being executed."""
    done: tuple[DoneOperation, ...] = ()
    """The last operations, the newest first."""
    error: str = ""
    """Why the last pass failed; empty if it did not."""


class LastPass:
    """A `LoopObserver` that keeps the last pass and the last operations. `state` may be read in any thread."""

    def __init__(self, clock: Clock) -> None:
        self.state = LoopState()
        self._clock = clock
        self._done: deque[DoneOperation] = deque(maxlen=KEPT)
        self._root_of: Mapping[str, ResourceId] = {}
        """Key of an operation of the pass -> the root whose plan it is in."""

    def leading(self, leads: bool) -> None:
        """Forget the plan when another process plans."""
        self.state = LoopState(leads, done=self.state.done)

    def planned(self, current: Pass[Configuration], chosen: Sequence[Plan]) -> None:
        """Keep the pass."""
        self._root_of = {operation.key: plan.root for plan in chosen for operation in plan.operations}
        self.state = replace(self.state, current=current, is_executing=bool(chosen), error="")

    def passed(self, current: Pass[Configuration], results: Sequence[Result]) -> None:
        """Keep the last results."""
        now = self._clock.now()
        shown = islice((result for result in reversed(results) if not isinstance(result.operation, WriteStatus)), KEPT)
        recent = [self._done_operation(result, now) for result in shown]
        if recent:
            self._done.extendleft(reversed(recent))
        self.state = replace(self.state, current=current, is_executing=False, done=tuple(self._done) if recent else self.state.done)

    def _done_operation(self, result: Result, now: datetime) -> DoneOperation:
        operation = result.operation
        error, root = str(result.error) if result.error else "", self._root_of.get(operation.key)
        return DoneOperation(now, operation.verb, operation.id, root, operation.why, str(result.outcome), error)

    def failed(self, error: Exception) -> None:
        """Keep the reason: the plan that is shown may be an old one."""
        self.state = replace(self.state, is_executing=False, error=str(error) or type(error).__name__)
