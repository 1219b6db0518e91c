"""Installed: a package of somebody else's as `pip install -e` would leave it, without touching the environment."""

import tomllib
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "10-your-own-fabric"


def metadata_of(package: Path, folder: Path) -> Path:
    """What pip writes down about the package, under the folder; its entry points are those of its own `pyproject.toml`."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    written = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    written.mkdir()
    (written / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{name} = {what}\n" for name, what in points.items()) for group, points in groups]
    (written / "entry_points.txt").write_text("\n".join(lines))
    return folder


def install(package: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the package known to this process, for one test."""
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.syspath_prepend(str(metadata_of(package, folder)))
