"""The schedulers are given or built with Go; without either, the script says what to do."""

import os
import subprocess
from pathlib import Path

BUILD = Path(__file__).parent / "build"
TOOLS = ("bash", "cksum", "cut", "dirname", "env")
ASSETS = ("bin/lws-manager", "bin/kai-scheduler", "bin/kai-binder", "crds/lws", "crds/kai", "crds/volcano", "webhooks/lws.yaml")


def build(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUILD], env=environment, capture_output=True, text=True, timeout=60)


def folder_with(root: Path, *names: str) -> str:
    """The folder, with empty files of these names."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return str(root)


def path_without_go(root: Path) -> str:
    """A PATH with the tools of the script and without Go."""
    root.mkdir()
    for name in TOOLS:
        (root / name).symlink_to(next(file for part in os.environ["PATH"].split(":") if (file := Path(part, name)).exists()))
    return str(root)


def test_schedulers_that_somebody_brings_are_taken_as_they_are(tmp_path: Path) -> None:
    given = folder_with(tmp_path / "assets", *ASSETS)

    built = build(SCHEDULERS_ASSETS=given, PATH=os.environ["PATH"])

    assert (built.returncode, built.stdout) == (0, f"{given}\n")


def test_a_folder_without_one_of_them_is_refused(tmp_path: Path) -> None:
    given = folder_with(tmp_path / "assets", *(name for name in ASSETS if name != "crds/volcano"))

    built = build(SCHEDULERS_ASSETS=given, PATH=os.environ["PATH"])

    assert (built.returncode, built.stdout) == (1, "")
    assert built.stderr == f"SCHEDULERS_ASSETS: there is no crds/volcano in {given}\n"


def test_without_schedulers_and_without_go_it_says_how_to_get_either(tmp_path: Path) -> None:
    built = build(PATH=path_without_go(tmp_path / "bin"), HOME=str(tmp_path))

    assert built.returncode == 69
    assert "SCHEDULERS_ASSETS" in built.stderr and "Go 1.26" in built.stderr
    assert not list(tmp_path.glob(".cache/**/*"))
