"""The width of a terminal: long lines are broken between words there, and nowhere else; screens say what is below them."""

import os
import pty
import re
import subprocess
import sys
import termios
from typing import Final

import pytest

from enginectl.base.terminal import wrapped
from enginectl.output.status import HEADERS
from enginectl.output.tables import table
from tests.enginectl.calling import ROOT, command, environment
from tests.waiting import PATIENCE

EXAMPLE: Final = ROOT / "examples" / "03-scaling-group"
WIDTH: Final = 72


def in_terminal(words: list[str], rows: int = 40, width: int = WIDTH) -> str:
    """What a command writes to a terminal of that size."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (rows, width))
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(NO_COLOR="1", TERM="xterm")) as process:
        os.close(theirs)
        text = bytearray()
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:
            pass  # The terminal ends with the last process that has it open.
        process.wait(PATIENCE)
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


def test_a_terminal_gets_no_line_that_is_wider_and_a_pipe_the_lines_as_they_are() -> None:
    words = command("diff", "--against", "empty", "-f", EXAMPLE)
    shown = in_terminal(words)
    piped = subprocess.run(words, capture_output=True, text=True, env=environment(), check=True, timeout=PATIENCE)

    assert max(map(len, shown.splitlines())) <= WIDTH < max(map(len, piped.stdout.splitlines()))
    assert sorted(shown.split()) == sorted((piped.stdout + piped.stderr).split())
    now = next(line for line in shown.splitlines() if line.startswith("  now "))
    following = shown.splitlines()[shown.splitlines().index(now) + 1]
    assert re.match(r" +", following)[0] == " " * now.index("+")  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("short", "short"),
        ("engine: " + "word " * 9 + "end", "engine: word word word word word word word word\n    word end"),
        ("  ! blocked  " + "word " * 8 + "end", "  ! blocked  word word word word word word word\n      word end"),
        ("info   ok   " + "driver" + " " * 40 + "is there", "info   ok   driver   is there"),
        ("do: first `kubectl label node one two three=four five`", "do: first\n    `kubectl label node one two three=four five`"),
        ("do: engine manifests rbac | kubectl apply -f - | cat", "do: engine manifests rbac | kubectl apply -f - | cat"),
        ("the engine manages no object that others have made here", "the engine manages no object that others have made\n    here"),
        ("no-break" * 8, "no-break" * 8),
    ],
)
def test_lines_are_broken_between_words_and_commands_stay_whole(text: str, expected: str) -> None:
    assert wrapped(text, 50) == expected


def test_further_lines_begin_below_the_last_column_that_leaves_room() -> None:
    assert wrapped("  ! blocked  " + "word " * 12 + "end", 60).splitlines()[1:] == [f"{'':<13}word word word end"]


def test_the_lines_of_a_table_break_at_the_same_column() -> None:
    rows = [
        ("a", "mine", "settled", "1", "1", "1", "1/1", "3/3", "25m"),
        ("default", "serving", "later", "20", "0", "1", "0/2", "9/10", "5s"),
    ]

    assert "\n".join(wrapped(line, 60) for line in table(HEADERS, rows)).splitlines() == [
        "NAMESPACE   NAME      STATE     REPLICAS   AVAILABLE",
        "            UPDATED   GANGS   PODS READY   AGE",
        "a           mine      settled   1          1",
        "            1         1/1     3/3          25m",
        "default     serving   later     20         0",
        "            1         0/2     9/10         5s",
    ]


def test_a_character_of_two_columns_counts_twice() -> None:
    text = "note: 模型服务器 " + "模型 " * 10 + "end"

    assert wrapped(text, 50) == "note: 模型服务器 模型 模型 模型 模型 模型 模型\n    模型 模型 模型 模型 end"
    assert wrapped(text, len(text) + 26) == wrapped(text, 0) == text
    assert wrapped("→ " * 25, 50) == "→ " * 25


def test_a_screen_that_is_too_low_says_how_many_lines_are_below_it() -> None:
    watching = (
        "from engine.report.printable import Line; from enginectl.output import watching\n"
        "with watching.display() as show: show([Line(f'line {number} ' + 'word ' * NUMBER) for number in range(4)])"
    )
    low, fits = (in_terminal([sys.executable, "-c", watching.replace("NUMBER", words)], rows=5, width=30) for words in ("7", "1"))

    assert "line 1" in low and "line 2" not in low and "… 4 more lines below" in low
    assert "line 3" in fits and "below" not in fits
