"""`engine run --profile`: what the process spent its time with."""

import json
import signal
from itertools import pairwise
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from providers.profiling.profiler import Activity
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine, finished, started
from tests.waiting import PATIENCE, until

SLICES = 12
"""How many lines are waited for."""


def test_every_moment_of_a_run_is_accounted_for(box: Box, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "profile.jsonl"
    assert engine("sync", "-f", ROOT / "examples" / "01-first-gang").code == Exit.DONE
    with started("run", "--profile", file, "--log-format", "json", KUBECONFIG=str(box.kubeconfig)) as process:
        assert process.stderr
        while json.loads(process.stderr.readline())["event"] != "leading":
            pass
        until(lambda: file.exists() and file.read_text().count("\n") >= SLICES)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    slices = [json.loads(line) for line in file.read_text().splitlines()]
    assert process.returncode == Exit.TERMINATED and len(slices) >= SLICES
    for each in slices:
        assert set(each["seconds"]) <= set(Activity)
        assert sum(each["seconds"].values()) == pytest.approx(each["until"] - each["since"])
    assert all(before["until"] == after["since"] for before, after in pairwise(slices))
    assert Activity.WAITING_FOR_CLUSTER in {activity for each in slices for activity in each["seconds"]}


def test_a_profile_that_cannot_be_written_is_an_error(box: Box, tmp_path: Path) -> None:
    answer = finished("run", "--profile", tmp_path / "none" / "profile", KUBECONFIG=str(box.kubeconfig))

    assert answer.code == Exit.FAILED
    assert "none/profile: no such file or directory" in answer.err
