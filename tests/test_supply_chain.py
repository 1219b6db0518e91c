"""Where what we install and run comes from: wheels by their hashes, images by digest, actions by commit, nothing of ours by name."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.enginectl.calling import ROOT

LOCKS: Final = tuple(ROOT / "deploy" / "image" / name for name in ("requirements.lock", "build.lock", "sandbox.lock"))
ENTRY: Final = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ]+)(?P<hashes>( \\\n    --hash=sha256:[0-9a-f]{64})+)\n")
OURS: Final = re.compile(r"pip3? (install|download|wheel)\b[^\n`]*?[\s'\"](grove[-_](engine|sandbox|initc))(?![\w./-]*\.whl)\b")
INSTALLS: Final = re.compile(
    r"""\bpip[3x]?"?,?(\s+"?--?[\w-]+"?,?(\s+"?[^\s"-][^\s"]*"?,?)??)*\s+"?(install|download|wheel|run)\b|\beasy_install\b|\buvx?\s"""
)
"""A command that installs packages of Python."""
OF_A_PATH: Final = re.compile(r"--no-deps .*(\.whl|\"\$source\")$")
"""A wheel or a checkout, and nothing that it needs."""
WITHOUT_HASHES: Final = {
    ("Makefile", "$(bin)/python -m pip install"): "what a contributor works with is installed for editing, which pip refuses with hashes",
    ("Makefile", "$(bin)/python -m pip wheel"): "what the demo needs of a checkout, on any platform: the locks are for Linux",
    ("deploy/image/lock.py", '"pip", "--disable-pip-version-check", "install"'): "asks pip what it would install, for the locks",
}
"""File and command -> why it has no hashes."""


def tracked() -> Iterator[tuple[str, str]]:
    """Every text of the project: its path, and what it says."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        path = ROOT / name
        if path.suffix not in (".png", ".gz", ".svg") and path.is_file() and name != "tests/test_supply_chain.py":
            yield name, path.read_text(errors="replace")


def test_nothing_of_ours_is_installed_by_its_name_which_may_be_somebody_elses_in_an_index() -> None:
    assert [name for name, text in tracked() if OURS.search(text)] == []
    assert OURS.search("pip install --quiet grove-engine") and OURS.search("pip install 'grove-engine[policy]'")
    assert not OURS.search("pip install https://wheels.example.com/grove_engine-0.1.0-py3-none-any.whl")


def test_whatever_builds_tests_or_releases_installs_what_is_known_by_its_hash() -> None:
    places = [(name, text) for name, text in tracked() if name == "Makefile" or name.startswith(("deploy/", ".github/", ".ci/"))]
    found = [(name, line.strip()) for name, text in places for line in text.replace("\\\n", " ").splitlines() if is_unknown(line)]
    excepted = {(name, line): known for name, line in found for known in WITHOUT_HASHES if known[0] == name and known[1] in line}

    assert [each for each in found if each not in excepted] == []
    assert set(excepted.values()) == WITHOUT_HASHES.keys()
    assert is_unknown("run: python -m pip install hatchling==1.33.0") and is_unknown(
        '"$python" -m pip install --constraint c.txt "$folder"/*.whl'
    )
    assert is_unknown("pip install --no-deps hatchling")


def is_unknown(line: str) -> bool:
    """Whether a line installs what an index serves, whatever that is."""
    is_command = INSTALLS.search(line) and not line.lstrip().startswith("#")
    return bool(is_command) and "--require-hashes" not in line and not OF_A_PATH.search(line.rstrip())


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_has_hashes_alone_and_no_address(lock: Path) -> None:
    header, _, text = lock.read_text().partition("\n")

    assert header.startswith("# Made by `make lock`") and ENTRY.sub("", text) == "" and "://" not in text
    names = [entry["name"] for entry in ENTRY.finditer(text)]
    assert names == sorted(set(names))


def test_the_lock_of_the_image_has_the_versions_of_the_constraints_for_everything_that_the_engine_needs() -> None:
    constraints = dict(line.lower().replace("_", "-").split("==") for line in (ROOT / "constraints.txt").read_text().splitlines()[1:])
    entries = {entry["name"]: entry["version"] for entry in ENTRY.finditer(LOCKS[0].read_text())}
    project = (ROOT / "pyproject.toml").read_text()
    needed = re.findall(r'^    "([A-Za-z0-9-]+)[><=]', project.partition("dependencies = [")[2].partition("]")[0], re.MULTILINE)

    assert {name.lower() for name in needed} <= entries.keys()
    assert {name: version for name, version in entries.items() if constraints.get(name) != version} == {}


def test_the_build_backend_is_the_one_of_its_lock_and_nothing_of_ours_is_needed_by_name() -> None:
    (backend,) = (f"{entry['name']}=={entry['version']}" for entry in ENTRY.finditer(LOCKS[1].read_text()) if entry["name"] == "hatchling")

    projects = {name: tomllib.loads(text) for name, text in tracked() if Path(name).name == "pyproject.toml"}

    assert len(projects) >= 3
    assert {name: project["build-system"]["requires"] for name, project in projects.items()} == dict.fromkeys(projects, [backend])
    needed = [each for project in projects.values() for each in project["project"].get("dependencies", ())]
    assert needed and [each for each in needed if each.startswith("grove")] == []


def test_base_images_are_named_by_digest_and_actions_by_commit() -> None:
    (base,) = re.findall(r"^ARG BASE=(.*)$", (ROOT / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
    actions = [action for name, text in tracked() if name.endswith((".yaml", ".yml")) for action in re.findall(r"uses: (\S+)", text)]

    assert re.search(r"@sha256:[0-9a-f]{64}$", base)
    assert actions and [action for action in actions if not re.search(r"@[0-9a-f]{40}$", action)] == []
