"""What is seen of a session while it works."""

import io

import pytest
from rich.console import Console

from engine.errors import Forbidden
from engine.ids import ResourceId
from engine.operation import Cause, Operation
from engine.plan import Plan, Wait
from engine.result import Outcome, Result
from engine.verb import Verb
from enginectl.progress import ROOTS, Lines, Tree

ROOT = ResourceId("grove.io", "PodCliqueSet", "a", "x")
POD = ResourceId("", "Pod", "a", "x-0-\x1b[2Jw")
CREATE = Operation(Verb.CREATE, POD, "why", Cause.INTENT)
WAITING = [Plan(ROOT, (CREATE,), pending=(Wait(POD, "not ready"),))]


class Still:
    """A live picture that keeps what it was shown."""

    def __init__(self) -> None:
        self.pictures: list[str] = []

    def update(self, picture: object, *, refresh: bool) -> None:
        """Keep it as text."""
        console = Console(file=io.StringIO(), width=80, force_terminal=False)
        console.print(picture)
        file = console.file
        assert isinstance(file, io.StringIO) and refresh
        self.pictures.append(file.getvalue())


class Stopped:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        """The time it was turned to."""
        return self.at


def test_without_a_terminal_every_operation_is_a_line_and_a_wait_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()

    lines.done(Result(CREATE, Outcome.DONE))
    lines.done(Result(CREATE, Outcome.FAILED, error=Forbidden("no\nway")))
    lines.resting(WAITING, 1.0)
    lines.resting(WAITING, 1.0)
    lines.contested("some\x1bbody")

    assert capsys.readouterr().err.splitlines() == [
        "+ create   Pod/a/x-0-\\x1b[2Jw",
        "+ create   Pod/a/x-0-\\x1b[2Jw: failed, no\\x0away",
        "· waits    Pod/a/x-0-\\x1b[2Jw: not ready",
        "waiting for the lease, which some\\x1bbody holds",
    ]


def test_the_tree_shows_how_far_each_workload_has_got_and_what_it_waits_for() -> None:
    still, clock = Still(), Stopped()
    tree = Tree(still, clock)  # type: ignore[arg-type]  # It asks the clock for nothing but the time.

    tree.planned(WAITING, 1)
    clock.at = 1.0
    tree.done(Result(CREATE, Outcome.DONE))
    tree.resting(WAITING, 1.0)

    assert still.pictures[0].splitlines() == ["1 workload, 1 operation to do", "└── PodCliqueSet/a/x  0 of 1 done"]
    assert [line.rstrip() for line in still.pictures[-1].splitlines()] == [
        "1 workload, 1 operation to do",
        "└── PodCliqueSet/a/x  1 of 1 done",
        "    ├── + create Pod/a/x-0-\\x1b[2Jw",
        "    └── · waits for Pod/a/x-0-\\x1b[2Jw: not ready",
    ]


def test_it_is_not_drawn_more_often_than_an_eye_can_follow() -> None:
    still, clock = Still(), Stopped()
    tree = Tree(still, clock)  # type: ignore[arg-type]  # It asks the clock for nothing but the time.
    tree.planned(WAITING, 1)

    for _ in range(100):
        clock.at += 0.01
        tree.done(Result(CREATE, Outcome.DONE))

    assert len(still.pictures) <= 12


def test_of_many_workloads_those_with_something_going_on_are_shown() -> None:
    still, clock = Still(), Stopped()
    tree = Tree(still, clock)  # type: ignore[arg-type]  # It asks the clock for nothing but the time.
    quiet = [Plan(ROOT._replace(name=f"a-{number}")) for number in range(40)]

    tree.planned([*quiet, Plan(ROOT._replace(name="z"), (CREATE,))], 1)

    shown = still.pictures[-1].splitlines()
    assert "PodCliqueSet/a/z" in shown[1]
    assert len(shown) == ROOTS + 2 and shown[-1] == f"└── … and {41 - ROOTS} more"
