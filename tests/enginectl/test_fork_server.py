"""Commands in forks of a process that has imported the engine: for a test they are those of a process that starts anew."""

import subprocess
from pathlib import Path

import pytest

from tests.enginectl.calling import ROOT, command, environment, started
from tests.waiting import PATIENCE

EXAMPLE = ROOT / "examples" / "01-first-gang" / "gang.yaml"


@pytest.mark.parametrize("words", [("render", "-f", "-"), ("diff", "-f", "gang.yaml", "--against", "empty"), ("diff", "--nonsense")])
def test_it_reads_writes_and_ends_as_a_fresh_one(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "gang.yaml").symlink_to(EXAMPLE)
    fresh, forked = (
        subprocess.run(
            command(*words, fresh=is_fresh),
            input=EXAMPLE.read_bytes(),
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            timeout=PATIENCE,
        )
        for is_fresh in (True, False)
    )

    assert (fresh.returncode, fresh.stdout, fresh.stderr) == (forked.returncode, forked.stdout, forked.stderr)
    assert fresh.stdout or fresh.returncode


def test_it_ends_when_its_program_is_killed(tmp_path: Path) -> None:
    with started("sandbox", "up", "--nodes", "1", "--dir", tmp_path) as process:
        assert process.stdout and process.stdout.readline()
        process.kill()
        process.communicate(timeout=PATIENCE)  # The command has closed its streams.
