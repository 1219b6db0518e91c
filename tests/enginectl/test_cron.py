"""The crontab of the user guide, as cron runs it: a shell without the environment of a user."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine, program
from tests.enginectl.test_approval import manifest
from tests.waiting import PATIENCE

SECTION = (ROOT / "docs" / "user-guide.md").read_text().partition("## From cron")[2].partition("\n## ")[0]
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
BLOCKS = [block for language, block in FENCED if not language]


@pytest.fixture
def home(full_box: Box, tmp_path: Path) -> Path:
    """The home of a user for whom cron runs jobs on a cluster without a scheduler, with the engine where the crontab says."""
    (kube := tmp_path / "home" / ".kube").mkdir(parents=True)
    (kube / "config").write_bytes(full_box.kubeconfig.read_bytes())
    (tools := tmp_path / "bin").mkdir()
    (tools / "engine").symlink_to(program())
    return kube.parent


def jobs(home: Path) -> list[str]:
    """The commands of the crontab, with a time that a test has."""
    variables, *lines = BLOCKS[0].splitlines()
    assert variables == "PATH=/opt/engine/bin:/usr/bin:/bin" and "%" not in BLOCKS[0]
    return [re.split(r"\s+", line, maxsplit=5)[5].replace("--timeout 4m", "--timeout 5s") for line in lines]


def run(home: Path, job: str) -> subprocess.CompletedProcess[str]:
    """What cron does with a job."""
    variables = {"PATH": f"{home.parent / 'bin'}:/usr/bin:/bin", "HOME": str(home), "LOGNAME": "user", "SHELL": "/bin/sh"}
    return subprocess.run(["/bin/sh", "-c", job], env=variables, capture_output=True, text=True, timeout=PATIENCE, cwd=home)


def test_the_jobs_work_without_the_environment_of_a_user_and_report_a_set_without_room(
    full_box: Box, engine: Engine, home: Path, tmp_path: Path
) -> None:
    assert "create PodCliqueSet/default/web" in engine("sync", "-f", manifest(tmp_path), "-q", "--no-wait").out
    sync, report = jobs(home)

    first, reported = run(home, sync), run(home, report)

    assert "not settled in time" in first.stderr
    assert (reported.returncode, reported.stderr) == (0, "") and "exit 8: not settled" in reported.stdout
    assert re.search(r"^default +web +pending ", reported.stdout, re.MULTILINE)


def test_the_script_reports_only_what_a_user_must_look_at(full_box: Box, engine: Engine, home: Path, tmp_path: Path) -> None:
    engine("sync", "-f", manifest(tmp_path), "-q", "--no-wait")
    script = BLOCKS[1].replace("--timeout 4m", "--timeout 5s")
    waiting = run(home, script)
    (home / ".kube" / "config").unlink()
    failing = run(home, script)

    assert (waiting.returncode, waiting.stderr) == (0, "")
    assert failing.returncode != 0 and "no cluster" in failing.stderr
