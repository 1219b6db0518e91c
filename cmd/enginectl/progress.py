"""Progress: a live tree where a person is looking, plain lines where nobody is."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from engine.ids import ResourceId
from engine.plan import Plan
from engine.report.alike import held_alike, spread
from engine.report.line import Line
from engine.report.printable import clipped, printable
from engine.report.text import MARKS, group_name
from engine.result import Outcome, Result
from engine.runtime.clock import Clock
from engine.runtime.progress import Lines as Logged
from engine.runtime.progress import Progress
from enginectl import output
from enginectl.wiring import Wiring

FRAME = 0.1
"""Seconds between two pictures."""
ROOTS = 12
"""Workloads shown at a time, those with something going on first."""


@contextmanager
def showing(wired: Wiring) -> Iterator[Progress]:
    """Somebody to tell: a live tree on a terminal, which goes away when all is done, or lines on stderr; a log where one is asked for."""
    if wired.options.log_format:
        yield Logged(wired.log)
        return
    if not output.coloured(sys.stderr) or wired.options.verbose:
        yield Lines()
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield Tree(live, wired.clock)


class Lines:
    """A line for every operation, and one whenever something else is waited for."""

    def __init__(self) -> None:
        self._waits: tuple[str, ...] = ()

    def contested(self, holder: str) -> None:
        """Who leads instead of us."""
        output.tell(f"waiting for the lease, which {printable(holder)} holds")

    def planned(self, plans: Sequence[Plan], calls: int) -> None:
        """How much there is to do."""

    def done(self, result: Result) -> None:
        """What came of an operation."""
        operation = result.operation
        ended = "" if result.outcome is Outcome.DONE else f": {result.outcome}, {clipped(str(result.error), 300)}"
        tone = "bad" if result.outcome is Outcome.FAILED else operation.verb
        output.tell(Line(f"{MARKS[operation.verb]} {operation.verb:<8} {printable(str(operation.id))}{ended}", tone))

    def resting(self, plans: Sequence[Plan], seconds: float) -> None:
        """What is waited for, when that has changed."""
        waits = tuple(waits_of(plans))
        for line in waits if waits != self._waits else ():
            output.tell(Line(f"· waits    {line}", "faint"))
        self._waits = waits


def waits_of(plans: Sequence[Plan]) -> Iterator[str]:
    """What is waited for, in a few lines."""
    for group in held_alike([wait for plan in plans for wait in plan.pending])[:ROOTS]:
        yield f"{group_name(None, [wait.id for wait in group])}: {clipped(spread(wait.why for wait in group), 120)}"


def many(count: int, noun: str) -> str:
    """A number and its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


@dataclass(slots=True)
class Branch:
    """One workload, as far as it has got: operations done, failed and planned, and what it waits for."""

    done: int = 0
    failed: int = 0
    planned: int = 0
    latest: str = ""
    waits: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Tree:
    """Every workload with how far it has got, drawn anew as things happen, but not more often than an eye can follow."""

    live: Any
    clock: Clock
    branches: dict[ResourceId, Branch] = field(default_factory=dict)
    roots: dict[str, ResourceId] = field(default_factory=dict)
    """Key of an operation -> the root whose plan it is in."""
    head: str = ""
    drawn_at: float = float("-inf")

    def contested(self, holder: str) -> None:
        """Who leads instead of us."""
        self.head = f"waiting for the lease, which {printable(holder)} holds"
        self.draw(now=True)

    def planned(self, plans: Sequence[Plan], calls: int) -> None:
        """What there is to do."""
        self.head = f"{many(len(plans), 'workload')}, {many(calls, 'operation')} to do"
        for plan in plans:
            branch = self.branches.setdefault(plan.root, Branch())
            branch.planned = branch.done + branch.failed + len(plan.operations)
            self.roots.update({operation.key: plan.root for operation in plan.operations})
        self.draw(now=True)

    def done(self, result: Result) -> None:
        """What came of an operation."""
        operation = result.operation
        branch = self.branches.setdefault(self.roots.get(operation.key, operation.id), Branch())
        if result.outcome is Outcome.DONE:
            branch.done += 1
        else:
            branch.failed += result.outcome is Outcome.FAILED
        branch.latest = f"{MARKS[operation.verb]} {operation.verb} {printable(str(operation.id))}"
        self.draw()

    def resting(self, plans: Sequence[Plan], seconds: float) -> None:
        """What is waited for."""
        for plan in plans:
            self.branches.setdefault(plan.root, Branch()).waits = tuple(waits_of([plan]))
        self.draw(now=True)

    def draw(self, *, now: bool = False) -> None:
        """Show how things are, unless that was shown a moment ago."""
        at = self.clock.monotonic()
        if now or at - self.drawn_at >= FRAME:
            self.drawn_at = at
            self.live.update(self.picture(), refresh=True)

    def picture(self) -> Any:
        """The tree. Texts, never markup: names are other people's."""
        from rich.text import Text
        from rich.tree import Tree as Drawing

        drawing = Drawing(Text(self.head, "bold"))
        busy = sorted(self.branches.items(), key=lambda item: (item[1].done >= item[1].planned and not item[1].waits, item[0]))
        for root, branch in busy[:ROOTS]:
            failed = f", {branch.failed} failed" if branch.failed else ""
            node = drawing.add(Text(f"{printable(str(root))}  {branch.done} of {branch.planned} done{failed}"))
            for line in (branch.latest, *(f"· waits for {wait}" for wait in branch.waits)):
                if line:
                    node.add(Text(line, "dim", overflow="ellipsis", no_wrap=True))
        if len(busy) > ROOTS:
            drawing.add(Text(f"… and {len(busy) - ROOTS} more", "dim"))
        return drawing
