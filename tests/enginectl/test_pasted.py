"""The commands of the first page and of the user guide, pasted into a shell with a sandbox of its own."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.enginectl.calling import ROOT, environment
from tests.waiting import PATIENCE

REPLACED = "kubectl() { :; }\nmake() { :; }\n"
"""What a machine without Kubernetes and a checkout that is installed do not need."""


def blocks(page: Path, *sections: str) -> str:
    """The commands of these sections."""
    text = page.read_text()
    found = [text.partition(f"\n## {section}\n")[2].partition("\n## ")[0] for section in sections]
    return "".join(block for section in found for block in re.findall(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL))


PAGES = {
    "the first page": blocks(ROOT / "README.md", "Try it", "Write your own"),
    "the user guide": blocks(ROOT / "docs" / "user-guide.md", "First steps"),
}


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_when_they_are_pasted(page: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tools := tmp_path / "bin").mkdir()
    (tools / "engine").write_text(f'#!/bin/sh\nexec {sys.executable} -m enginectl "$@"\n')
    (tools / "engine").chmod(0o755)
    variables = {**environment(), "PATH": f"{tools}:/usr/bin:/bin", "HOME": str(tmp_path)}
    sandbox = tmp_path / "sandbox"
    script = f"set -e\n{REPLACED}{PAGES[page].replace('/tmp/sandbox', str(sandbox))}"

    try:
        said = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=2 * PATIENCE + 60
        )
    finally:
        subprocess.run([tools / "engine", "sandbox", "down", "--dir", sandbox], env=variables, capture_output=True, timeout=PATIENCE)

    assert said.returncode == 0, said.stdout + said.stderr
    assert " settled " in said.stdout and "engine sandbox up --detach" in PAGES[page]
