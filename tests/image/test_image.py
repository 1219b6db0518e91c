"""What the images are made of: installed as deploy/Dockerfile does it, run from a read-only folder, with licences that are allowed."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from tests.enginectl.calling import ROOT

ALLOWED = {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"}
"""Licences of what we ship. All allow distribution with software under Apache-2.0; MPL-2.0 asks for the source of its own files only."""
BILL = ROOT / "deploy" / "image" / "bill_of_materials.py"
NOT_REACHED = ("NewConnectionError", "Failed to establish a new connection", "Temporary failure in name resolution", "ConnectTimeoutError")
"""What pip says when there is no package index."""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What deploy/image/install has installed, read-only. Skips the tests where no package index is reached."""
    folder = tmp_path_factory.mktemp("image") / "engine"
    result = run(ROOT / "deploy" / "image" / "install", ROOT, folder, PATH=os.environ["PATH"], PYTHON=sys.executable, **pip_settings())
    if any(text in result.stderr for text in NOT_REACHED):
        pytest.skip("no package index can be reached to install the dependencies from")
    assert result.returncode == 0, result.stderr
    set_modes(folder, 0o555, 0o444)
    yield folder
    set_modes(folder, 0o755, 0o644)


def pip_settings() -> dict[str, str]:
    """How pip reaches the package index on this machine."""
    return {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "HTTP", "http", "SSL_"))}


def set_modes(folder: Path, folders: int, files: int) -> None:
    """Set the permissions of everything in a folder; programs stay executable."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink():
                path.chmod(files | (path.stat().st_mode & 0o111))
        Path(place).chmod(folders)


def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with nothing but this environment."""
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, env={"HOME": "/nonexistent", **environment}, timeout=600
    )


def test_everything_that_is_shipped_has_a_licence_that_is_allowed() -> None:
    shipped = {each["name"]: each["licenses"][0]["expression"] for each in bill()["components"]}

    unusual = {name: text for name, text in shipped.items() if set(re.findall(r"[^\s()]+", text)) - ALLOWED - {"AND", "OR"}}
    assert unusual == {} and {"cryptography", "kr8s", "pydantic"} <= set(shipped)


def test_the_bill_of_materials_has_no_tools_of_developers_and_is_the_same_each_time() -> None:
    names = {each["name"] for each in bill()["components"]}

    assert names.isdisjoint({"pytest", "mypy", "ruff", "hypothesis", "uvicorn", "starlette", "pip"})
    assert bill() == bill()


def bill() -> dict[str, Any]:
    """The bill of materials of this environment."""
    document: dict[str, Any] = json.loads(run(sys.executable, BILL).stdout)
    return document


def test_the_installation_previews_from_a_read_only_folder(prefix: Path) -> None:
    before = listing(prefix)
    result = run(prefix / "bin" / "engine", "diff", "-f", ROOT / "examples" / "01-first-gang", "--against", "empty")

    assert result.returncode == Exit.DONE, result.stderr
    assert "PodCliqueSet" in result.stdout and listing(prefix) == before


def test_the_installation_serves_pods_too(prefix: Path) -> None:
    assert run(prefix / "bin" / "grove-initc", "--help").returncode == 0


def test_the_init_container_needs_the_standard_library_only() -> None:
    result = run(sys.executable, "-S", "-m", "initc", "--help", PYTHONPATH=str(ROOT / "cmd"))

    assert result.returncode == 0, result.stderr


def test_the_installation_contains_bytecode_its_bill_and_no_installer(prefix: Path) -> None:
    names = listing(prefix)

    assert any(name.endswith("engine/__pycache__/tick.cpython-{}{}.pyc".format(*sys.version_info[:2])) for name in names)
    assert not any("/site-packages/pip/" in name for name in names)
    assert json.loads((prefix / "sbom.cdx.json").read_text())["components"] == bill()["components"]


def listing(folder: Path) -> set[str]:
    """Every file in a folder."""
    return {str(Path(place, name).relative_to(folder)) for place, _, names in os.walk(folder) for name in names}
