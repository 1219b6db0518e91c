"""Progress of a sync: a live tree on a terminal, plain lines elsewhere."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, field

from engine.approval.ledger import Excess
from engine.ids import ResourceId
from engine.operation import Outcome, Result, WriteStatus
from engine.plan import Plan, Wait
from engine.report.alike import spread, waits_alike
from engine.report.printable import Line, clipped, counted, printable
from engine.report.text import MARKS, group_name
from engine.runtime.clock import Clock
from engine.runtime.lease_holder import LeaseHolder
from engine.runtime.progress import LoggedProgress, NoProgress, Progress
from enginectl.base import terminal
from enginectl.output.approval import deviation_lines
from enginectl.wiring.configuration import Wiring

FRAME = 0.1
"""Seconds between two drawings of the tree."""
SILENCE = 60.0
"""Seconds after which a line says what is still waited for, where nothing else was written."""
NOTABLE = 5.0
"""Seconds from which on the tree says how long it takes."""
MAX_ROOTS = 12
"""Roots shown at a time, those that are not finished first."""
MAX_PENDING = 12
"""Groups of pending objects shown at a time."""
MAX_TEXT = 120
"""Characters of an error or a reason that a line shows: the result at the end has all of it."""


@contextmanager
def show_progress(wiring: Wiring, *, quiet: bool = False) -> Iterator[Progress]:
    """A `Progress`: log lines if `--log-format` is given, a tree on a terminal (removed at the end), else lines on stderr.

    `quiet`: nothing is shown.
    """
    if quiet:
        yield NoProgress()
        return
    if wiring.options.log_format:
        yield LoggedProgress(wiring.log)
        return
    if not terminal.has_colour(sys.stderr) or wiring.options.verbose:
        yield Lines(wiring.clock, verbose=wiring.options.verbose)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield Tree(live, wiring.clock)


class Lines(Progress):
    """A `Progress` that writes a line for every operation but statuses, and one for what an object waits for, whenever that is new.

    What it still waits for is written after each `SILENCE` without a line.
    """

    def __init__(self, clock: Clock, *, verbose: bool = False) -> None:
        self._clock, self._verbose = clock, verbose
        self._began_at = self._written_at = clock.monotonic()
        self._pending: dict[ResourceId, frozenset[str]] = {}
        """Object -> what was written that it waits for, since it began to wait."""
        self._unapproved: frozenset[str] = frozenset()
        self._failures: dict[str, str] = {}
        """Key of an operation -> how it failed when it was last tried."""

    def waiting_for_lease(self, holder: LeaseHolder) -> None:
        """Name the holder of the lease."""
        self._write(lease_text(holder))

    def _write(self, line: Line | str) -> None:
        self._written_at = self._clock.monotonic()
        terminal.notice(line)

    def unapproved(self, excess: Sequence[Excess]) -> None:
        """Each operation that is not done, and was not named before."""
        for line in deviation_lines([each.deviation for each in excess if str(each.deviation) not in self._unapproved]):
            self._write(line)
        self._unapproved |= {str(each.deviation) for each in excess}

    def applied(self, result: Result) -> None:
        """The operation, and its error if it failed: once for each distinct error. Statuses only if they fail, or with `verbose`."""
        operation = result.operation
        error = "" if result.outcome is Outcome.DONE else f": {result.outcome}, {clipped(str(result.error), MAX_TEXT)}"
        if self._is_left_out(result, error):
            return
        tone = "bad" if result.outcome is Outcome.FAILED else operation.verb
        self._write(Line(f"{MARKS[operation.verb]} {operation.verb:<8} {printable(str(operation.id))}{error}", tone))

    def _is_left_out(self, result: Result, error: str) -> bool:
        """Whether it is not written: it says what the last try said, or is a status that was written."""
        operation = result.operation
        is_quiet = isinstance(operation, WriteStatus) and not self._verbose and not error
        if error and self._failures.get(operation.key) == error:
            return True
        self._failures[operation.key] = error
        return is_quiet

    def idle(self, plans: Sequence[Plan], seconds: float) -> None:
        """What is pending, as far as it was not written since its object began to wait; after a silence, all of it in one line."""
        waits = pending_waits(plans)
        for text in wait_texts([wait for wait in waits if wait.why not in self._pending.get(wait.id, ())]):
            self._write(Line(f"· pending  {text}", "faint"))
        if waits and self._clock.monotonic() - self._written_at >= SILENCE:
            first, *others = wait_texts(waits)
            more = f" and {len(others)} more" if others else ""
            self._write(Line(f"· waiting  for {elapsed_text(self._clock.monotonic() - self._began_at)}: {first}{more}", "faint"))
        reasons: dict[ResourceId, set[str]] = {}
        for wait in waits:
            reasons.setdefault(wait.id, set()).add(wait.why)
        self._pending = {id: self._pending.get(id, frozenset()) | texts for id, texts in reasons.items()}


def elapsed_text(seconds: float) -> str:
    """A duration in minutes and seconds, e.g. `3m5s`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def lease_text(holder: LeaseHolder) -> str:
    """Who holds the lease that we wait for."""
    return f"waiting for the lease, held by {holder}"


def pending_waits(plans: Sequence[Plan]) -> list[Wait]:
    """What is pending; several parts of a root may wait for the same."""
    return distinct([wait for plan in plans for wait in plan.pending])


def distinct(waits: Iterable[Wait]) -> list[Wait]:
    """Each object once for each reason."""
    return list({(wait.id, wait.why): wait for wait in waits}.values())


def pending_texts(plans: Sequence[Plan]) -> Iterator[str]:
    """What is pending; similar objects share a text. At most `MAX_PENDING` texts, and the number of the others."""
    return wait_texts(pending_waits(plans))


def wait_texts(waits: Sequence[Wait], limit: int = MAX_TEXT, root: ResourceId | None = None) -> Iterator[str]:
    """What these objects wait for; similar objects share a text. At most `MAX_PENDING` texts, and the number of the others.

    Where `root` is known, names are without its namespace.
    """
    groups = waits_alike(distinct(waits))
    for group in groups[:MAX_PENDING]:
        yield f"{group_name(root, [wait.id for wait in group])}: {clipped(spread(wait.why for wait in group), limit)}"
    if left_out := sum(map(len, groups[MAX_PENDING:])):
        yield f"… and {counted(left_out, 'object')} more"


class Branch(Struct):
    """One root in the tree: how many operations are applied, planned and not approved, the latest one, and what is pending.

    Statuses are not counted: they only report.
    """

    applied: int = 0
    failed: set[str] = field(default_factory=set)
    """Keys of the operations that failed when they were last tried."""
    planned: int = 0
    unapproved: int = 0
    latest: str = ""
    pending: tuple[str, ...] = ()
    began_at: float | None = None
    """When it was drawn first, on the monotonic clock."""
    ended_at: float | None = None
    """When everything was applied and nothing pending; None before."""

    @property
    def is_finished(self) -> bool:
        """Whether everything is applied and nothing pending."""
        return self.applied >= self.planned and not self.pending

    def note(self, at: float) -> None:
        """Note when it was drawn first, and when it was finished."""
        self.began_at = at if self.began_at is None else self.began_at
        self.ended_at = (self.ended_at or at) if self.is_finished else None

    def took(self, until: float) -> str:
        """How long it takes or took, e.g. `, 1m15s`; empty while that is not worth mentioning."""
        seconds = (self.ended_at or until) - self.began_at if self.began_at is not None else 0.0
        return f", {elapsed_text(seconds)}" if seconds >= NOTABLE else ""


class Tree(Struct, eq=False):
    """A `Progress` that draws every root with its operations, at most once per `FRAME`."""

    live: Any
    clock: Clock
    branches: dict[ResourceId, Branch] = field(default_factory=dict)
    roots: dict[str, ResourceId] = field(default_factory=dict)
    """Key of an operation -> the root whose plan it is in."""
    head: str = ""
    drawn_at: float = float("-inf")
    began_at: float | None = None
    """When the first picture was drawn, on the monotonic clock."""

    def waiting_for_lease(self, holder: LeaseHolder) -> None:
        """Name the holder of the lease."""
        self.head = lease_text(holder)
        self.draw(now=True)

    def planned(self, plans: Sequence[Plan], operations: int) -> None:
        """Note how many operations each root has."""
        writes = {plan.root: [each.key for each in plan.operations if not isinstance(each, WriteStatus)] for plan in plans}
        distinct_writes = len({key for keys in writes.values() for key in keys})
        self.head = f"{counted(len(plans), 'workload')}, {counted(distinct_writes, 'operation')} to apply"
        for plan in plans:
            branch = self.branches.setdefault(plan.root, Branch())
            branch.planned = branch.applied + len(writes[plan.root])
            self.roots.update({operation.key: plan.root for operation in plan.operations})
        self.draw(now=True)

    def unapproved(self, excess: Sequence[Excess]) -> None:
        """Count, for each root, the operations that are not done."""
        counts = Counter(each.root for each in excess)
        for root in counts.keys() | self.branches.keys():
            self.branches.setdefault(root, Branch()).unapproved = counts[root]

    def applied(self, result: Result) -> None:
        """Count the operation."""
        operation = result.operation
        branch = self.branches.setdefault(self.roots.get(operation.key, operation.id), Branch())
        if result.outcome is Outcome.DONE:
            branch.applied += not isinstance(operation, WriteStatus)
            branch.failed.discard(operation.key)
        elif result.outcome is Outcome.FAILED:
            branch.failed.add(operation.key)
        branch.latest = f"{MARKS[operation.verb]} {operation.verb} {printable(str(operation.id))}"
        self.draw()

    def idle(self, plans: Sequence[Plan], seconds: float) -> None:
        """Note what is pending."""
        for plan in plans:
            self.branches.setdefault(plan.root, Branch()).pending = tuple(wait_texts(pending_waits([plan]), root=plan.root))
        self.draw(now=True)

    def draw(self, *, now: bool = False) -> None:
        """Draw the tree, unless it was drawn less than `FRAME` ago; `now` draws it in any case."""
        at = self.clock.monotonic()
        if now or at - self.drawn_at >= FRAME:
            self.drawn_at = at
            self.began_at = at if self.began_at is None else self.began_at
            for branch in self.branches.values():
                branch.note(at)
            self.live.update(self.picture(), refresh=True)

    def picture(self) -> Any:
        """The tree for rich. Only `Text`, never markup: names are chosen by users."""
        from rich.text import Text
        from rich.tree import Tree as RichTree

        elapsed = self.drawn_at - self.began_at if self.began_at is not None else 0.0
        tree = RichTree(Text(f"{self.head}, {elapsed_text(elapsed)}" if elapsed >= NOTABLE else self.head, "bold"))
        unfinished_first = sorted(self.branches.items(), key=lambda item: (item[1].is_finished, item[0]))
        for root, branch in unfinished_first[:MAX_ROOTS]:
            failed = f", {len(branch.failed)} failed" if branch.failed else ""
            unapproved = f", {branch.unapproved} not as approved" if branch.unapproved else ""
            done = f"{branch.applied} of {branch.planned} applied" if branch.planned else "nothing to apply"
            counts = f"{done}{failed}{unapproved}"
            node = tree.add(Text(f"{printable(str(root))}  {counts}{branch.took(self.drawn_at)}"))
            for line in (branch.latest, *(f"· pending: {text}" for text in branch.pending)):
                if line:
                    node.add(Text(line, "dim", overflow="ellipsis", no_wrap=True))
        if len(unfinished_first) > MAX_ROOTS:
            tree.add(Text(f"… and {len(unfinished_first) - MAX_ROOTS} more", "dim"))
        return tree
