"""The progress of a sync: lines without a terminal, a tree on one."""

import io
from datetime import datetime

import pytest
from msgspec.structs import replace
from rich.console import Console

from engine.approval.approval import ObjectKey
from engine.approval.ledger import Excess
from engine.errors import Forbidden
from engine.ids import ResourceId
from engine.operation import Cause, Create, Outcome, Result, WriteStatus
from engine.plan import Plan, Wait
from engine.runtime.lease_holder import LeaseHolder
from enginectl.output.progress import MAX_ROOTS, Lines, Tree

ROOT = ResourceId("grove.io", "PodCliqueSet", "a", "x")
POD = ResourceId("", "Pod", "a", "x-0-\x1b[2Jw")
CREATE = Create(POD, "why", Cause.INTENT, manifest={})
PENDING = [Plan(ROOT, (CREATE,), pending=(Wait(POD, "not ready"),))]


class Screen:
    """Keeps every picture that is drawn on it."""

    def __init__(self) -> None:
        self.pictures: list[str] = []

    def update(self, picture: object, *, refresh: bool) -> None:
        """Keep it as text."""
        console = Console(file=io.StringIO(), width=80, force_terminal=False)
        console.print(picture)
        file = console.file
        assert isinstance(file, io.StringIO) and refresh
        self.pictures.append(file.getvalue())


class ManualClock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        """The time that was set."""
        return self.at

    def now(self) -> datetime:
        """Not asked for."""
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        """Not asked for."""
        raise NotImplementedError


def test_without_a_terminal_every_operation_is_a_line_and_what_is_pending_is_written_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(ManualClock())

    lines.applied(Result(CREATE, Outcome.DONE))
    lines.applied(Result(CREATE, Outcome.FAILED, error=Forbidden("no\nway")))
    lines.idle(PENDING, 1.0)
    lines.idle(PENDING, 1.0)
    lines.waiting_for_lease(LeaseHolder("some\x1bbody", purpose="sync\n"))

    assert capsys.readouterr().err.splitlines() == [
        "+ create   Pod/a/x-0-\\x1b[2Jw",
        "+ create   Pod/a/x-0-\\x1b[2Jw: failed, no\\x0away",
        "· pending  Pod/a/x-0-\\x1b[2Jw: not ready",
        "waiting for the lease, held by some\\x1bbody, for: sync\\x0a",
    ]


def test_a_refusal_is_written_once_until_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(ManualClock())

    for error in (Forbidden("no"), Forbidden("no"), Forbidden("still no"), Forbidden("no")):
        lines.applied(Result(CREATE, Outcome.FAILED, error=error))
    lines.applied(Result(CREATE, Outcome.DONE))
    lines.applied(Result(CREATE, Outcome.FAILED, error=Forbidden("no")))

    words = [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert words == ["failed, no", "failed, still no", "failed, no", "+ create   Pod/a/x-0-\\x1b[2Jw", "failed, no"]


@pytest.mark.parametrize(("verbose", "lines"), [(False, 0), (True, 1)])
def test_statuses_are_written_on_demand(capsys: pytest.CaptureFixture[str], verbose: bool, lines: int) -> None:
    status = WriteStatus(ROOT, "1 of 1 replicas updated", Cause.STATUS, patch={})

    Lines(ManualClock(), verbose=verbose).applied(Result(status, Outcome.DONE))

    assert len(capsys.readouterr().err.splitlines()) == lines


def test_the_tree_shows_the_progress_of_each_workload_and_what_is_pending() -> None:
    screen, clock = Screen(), ManualClock()
    tree = Tree(screen, clock)

    tree.planned(PENDING, 1)
    clock.at = 1.0
    tree.applied(Result(CREATE, Outcome.DONE))
    tree.idle(PENDING, 1.0)

    assert screen.pictures[0].splitlines() == ["1 workload, 1 operation to apply", "└── PodCliqueSet/a/x  0 of 1 applied"]
    assert [line.rstrip() for line in screen.pictures[-1].splitlines()] == [
        "1 workload, 1 operation to apply",
        "└── PodCliqueSet/a/x  1 of 1 applied",
        "    ├── + create Pod/a/x-0-\\x1b[2Jw",
        "    └── · pending: Pod/x-0-\\x1b[2Jw: not ready",
    ]


def test_the_tree_says_where_there_is_nothing_to_apply() -> None:
    screen = Screen()

    Tree(screen, ManualClock()).planned([replace(PENDING[0], operations=(), pending=())], 0)

    assert screen.pictures[-1].splitlines()[-1].rstrip() == "└── PodCliqueSet/a/x  nothing to apply"


def test_the_tree_is_not_drawn_more_than_once_per_frame() -> None:
    screen, clock = Screen(), ManualClock()
    tree = Tree(screen, clock)
    tree.planned(PENDING, 1)

    for _ in range(100):
        clock.at += 0.01
        tree.applied(Result(CREATE, Outcome.DONE))

    assert len(screen.pictures) <= 12


def test_of_many_workloads_the_unfinished_ones_are_shown() -> None:
    screen, clock = Screen(), ManualClock()
    tree = Tree(screen, clock)
    quiet = [Plan(ROOT._replace(name=f"a-{number}")) for number in range(40)]

    tree.planned([*quiet, Plan(ROOT._replace(name="z"), (CREATE,))], 1)

    shown = screen.pictures[-1].splitlines()
    assert "PodCliqueSet/a/z" in shown[1]
    assert len(shown) == MAX_ROOTS + 2 and shown[-1] == f"└── … and {41 - MAX_ROOTS} more"


def waiting(*waits: tuple[str, str]) -> list[Plan]:
    """A plan in which these pods wait, each with a reason."""
    return [Plan(ROOT, pending=tuple(Wait(POD._replace(name=name), why) for name, why in waits))]


def pending_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.removeprefix("· pending  Pod/a/") for line in capsys.readouterr().err.splitlines()]


def test_an_object_that_several_parts_wait_for_is_written_and_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    Lines(ManualClock()).idle(waiting(*((f"x-{number}", "is being deleted") for number in (0, 1, 2, 0, 1, 2))), 1.0)
    Lines(ManualClock()).idle(waiting(("y", "not ready"), ("y", "not ready")), 1.0)

    assert pending_lines(capsys) == ["x-{0..2} ×3: is being deleted", "y: not ready"]


def test_what_an_object_waits_for_is_not_repeated_until_it_has_waited_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(ManualClock())
    for reason in ("one at a time", "the last one is not ready", "one at a time", "the last one is not ready"):
        lines.idle(waiting(("x", reason), ("y", "not ready")), 1.0)
    lines.idle([], 1.0)
    lines.idle(waiting(("x", "one at a time")), 1.0)

    assert pending_lines(capsys) == ["x: one at a time", "y: not ready", "x: the last one is not ready", "x: one at a time"]


def test_objects_of_a_group_that_go_on_waiting_are_not_written_again(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(ManualClock())
    for count in (5, 4, 3, 2, 1):
        lines.idle(waiting(*((f"x-{number}", "is being deleted") for number in range(count))), 1.0)

    assert pending_lines(capsys) == ["x-{0..4} ×5: is being deleted"]


def excess(*names: str) -> list[Excess]:
    return [Excess(ROOT, CREATE, ObjectKey("", "Pod", "a", name), "not planned") for name in names]


def test_what_is_not_approved_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(ManualClock())
    lines.unapproved(excess("x"))
    lines.unapproved(excess("x", "y"))

    assert [line.split(":")[1] for line in capsys.readouterr().err.splitlines()] == [" Pod/a/x", " Pod/a/y"]


def test_the_tree_counts_each_operation_once_and_no_status() -> None:
    screen, clock = Screen(), ManualClock()
    tree = Tree(screen, clock)
    status = WriteStatus(ROOT, "1 of 1 replicas updated", Cause.STATUS, patch={})
    plans = [Plan(ROOT, (CREATE, status))]
    for number in range(1, 4):
        tree.unapproved(excess(*"xyz"[:number]))
        tree.planned(plans, 2)
        tree.applied(Result(CREATE, Outcome.FAILED, error=Forbidden("no")))
        tree.applied(Result(status, Outcome.DONE))
    tree.idle([], 1.0)
    failed = screen.pictures[-1]
    tree.planned(plans, 2)
    tree.applied(Result(CREATE, Outcome.DONE))
    tree.idle([], 1.0)

    assert failed.splitlines()[:2] == [
        "1 workload, 1 operation to apply",
        "└── PodCliqueSet/a/x  0 of 1 applied, 1 failed, 3 not as approved",
    ]
    assert "1 of 1 applied, 3 not as approved" in screen.pictures[-1]


def test_there_is_never_a_minute_without_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    lines = Lines(clock)
    for clock.at in range(0, 301, 5):
        lines.idle(PENDING, 5.0)

    assert capsys.readouterr().err.splitlines() == [
        "· pending  Pod/a/x-0-\\x1b[2Jw: not ready",
        *(f"· waiting  for {minute}m0s: Pod/a/x-0-\\x1b[2Jw: not ready" for minute in range(1, 6)),
    ]


def test_the_tree_says_how_long_it_takes() -> None:
    screen, clock = Screen(), ManualClock()
    tree = Tree(screen, clock)
    tree.planned(PENDING, 1)
    clock.at = 75.0
    tree.idle(PENDING, 1.0)

    assert "1 workload, 1 operation to apply\n" in screen.pictures[0]
    assert "1 workload, 1 operation to apply, 1m15s" in screen.pictures[-1]


def test_the_tree_says_how_long_each_workload_takes_and_took() -> None:
    screen, clock = Screen(), ManualClock()
    tree = Tree(screen, clock)
    tree.planned(PENDING, 1)
    for clock.at in (75.0, 80.0):
        tree.idle(PENDING, 1.0)
    assert "PodCliqueSet/a/x  0 of 1 applied, 1m20s" in screen.pictures[-1]

    clock.at = 90.0
    tree.applied(Result(CREATE, Outcome.DONE))
    for clock.at in (91.0, 200.0):
        tree.idle([replace(PENDING[0], pending=())], 1.0)
    assert "PodCliqueSet/a/x  1 of 1 applied, 1m31s" in screen.pictures[-1]
