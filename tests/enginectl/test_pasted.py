"""The commands of the first page, the guide, the tutorial and the examples, pasted into a shell, with a sandbox where they need one."""

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


SECONDS = 2 * PATIENCE + 60
"""The longest that the commands of a page take."""
PAGES = {
    "the first page": blocks(ROOT / "README.md", "Try it", "Write your own"),
    "the user guide": blocks(ROOT / "docs" / "user-guide.md", "First steps"),
}


def pasted(commands: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """What bash says to these commands, in a folder with the examples and with a sandbox there; it is ended afterwards."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tools := tmp_path / "bin").mkdir()
    (tools / "engine").write_text(f'#!/bin/sh\nexec {sys.executable} -m enginectl "$@"\n')
    (tools / "engine").chmod(0o755)
    variables = {**environment(), "PATH": f"{tools}:/usr/bin:/bin", "HOME": str(tmp_path)}
    sandbox = tmp_path / "sandbox"
    script = f"set -e\n{REPLACED}{commands.replace('/tmp/sandbox', str(sandbox))}"
    try:
        return subprocess.run(["bash", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=SECONDS)
    finally:
        subprocess.run([tools / "engine", "sandbox", "down", "--dir", sandbox], env=variables, capture_output=True, timeout=PATIENCE)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_when_they_are_pasted(page: str, tmp_path: Path) -> None:
    said = pasted(PAGES[page], tmp_path)

    assert said.returncode == 0, said.stdout + said.stderr
    assert " settled " in said.stdout and "engine sandbox up --detach" in PAGES[page]


TUTORIAL = re.findall(r"^```(text)?\n(.*?)^```$", (ROOT / "docs" / "tutorial.md").read_text(), re.MULTILINE | re.DOTALL)
"""Its blocks in their order: whether it is text that is said, and what is in it."""
MARK = "end of block"


def test_the_tutorial_says_what_its_commands_say(tmp_path: Path) -> None:
    commands = [block for is_said, block in TUTORIAL if not is_said]
    said = pasted("exec 2>&1\n" + "".join(f"{block}echo '{MARK}'\n" for block in commands), tmp_path)

    assert said.returncode == 0, said.stdout
    answers = iter(said.stdout.split(f"{MARK}\n"))
    latest, missing = "", []
    for is_said, block in TUTORIAL:
        if not is_said:
            latest = next(answers)
            continue
        for line in block.splitlines():
            pattern = ".*?".join(map(re.escape, line.split("…")))
            found = re.search(f"^{pattern}$", latest, re.MULTILINE)
            missing += [] if found else [line]
            latest = latest[found.end() :] if found else latest
    assert missing == [], "\n".join([*missing, said.stdout])


BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def offline(commands: str) -> str:
    """Those of these commands that ask no cluster."""
    return "".join(line for line in commands.splitlines(True) if re.match(r"engine (render|diff .*--against empty)", line))


PREVIEWS = {
    f"{page.parent.name}, block {number}": (commands, found[2] if found[2] and commands == found[1] else "")
    for page in sorted((ROOT / "examples").glob("*/README.md"))
    for number, found in enumerate(BLOCK.finditer(page.read_text()), 1)
    if (commands := offline(found[1])) and page.parent.name != "10-your-own-fabric"
}
"""Commands, and what the page shows of their output. The fabric of one's own has its own test, with and without its package."""


@pytest.mark.parametrize("preview", PREVIEWS)
def test_the_previews_of_an_example_work_when_they_are_pasted(preview: str, tmp_path: Path) -> None:
    commands, shown = PREVIEWS[preview]
    script = f'set -eo pipefail\nengine() {{ {sys.executable} -m enginectl "$@"; }}\n{commands}'

    said = subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env={**environment(), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout and set(shown.splitlines()) <= set(said.stdout.splitlines()), said.stdout


def test_previews_and_an_output_are_found() -> None:
    assert len(PREVIEWS) >= 7 and any(shown for _, shown in PREVIEWS.values())
