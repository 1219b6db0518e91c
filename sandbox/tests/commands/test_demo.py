"""`engine demo` as a user meets it."""

import re
import signal
from pathlib import Path

from enginectl.base.exit_codes import Exit
from grove_sandbox.commands.demo_steps import EXAMPLE
from tests.enginectl.calling import ROOT, finished, started
from tests.waiting import PATIENCE


def test_the_demo_can_be_stopped_at_any_time_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with started("demo", TMPDIR=str(tmp_path)) as process:
        assert process.stderr
        assert process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, err.splitlines()[-1]) == (Exit.INTERRUPTED, "exit 130: interrupted")
    assert list(tmp_path.iterdir()) == []


def test_the_demo_tells_the_whole_story_and_leaves_nothing_behind(tmp_path: Path) -> None:
    answer = finished("demo", TMPDIR=str(tmp_path))

    assert answer.code == Exit.DONE, answer
    assert [line[:2] for line in answer.out.splitlines() if re.match(r"\d\. ", line)] == ["1.", "2.", "3.", "4.", "5.", "6.", "7."]
    assert "Left in the cluster: nothing." in answer.out and answer.out.endswith("exit 0: done\n")
    assert list(tmp_path.iterdir()) == []


def test_the_demo_shows_the_example_whose_path_it_names() -> None:
    assert EXAMPLE.read_bytes() == (ROOT / "examples" / "01-first-gang" / "gang.yaml").read_bytes()
