"""Where what we install and run comes from: wheels by their hashes, images by digest, actions by commit, nothing of ours by name."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.enginectl.calling import ROOT

LOCKS: Final = tuple(ROOT / "deploy" / "image" / name for name in ("requirements.lock", "build.lock"))
ENTRY: Final = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ]+)(?P<hashes>( \\\n    --hash=sha256:[0-9a-f]{64})+)\n")
OURS: Final = re.compile(r"pip3? (install|download|wheel)\b[^\n`]*?[\s'\"](grove[-_](engine|sandbox|initc))(?![\w./-]*\.whl)\b")


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
