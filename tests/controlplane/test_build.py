"""The binaries of the control plane are given or built with Go; without either, the script says what to do."""

import os
import subprocess
from pathlib import Path

from tests.waiting import PATIENCE

BUILD = Path(__file__).parent / "build"


def build(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUILD], env=environment, capture_output=True, text=True, timeout=PATIENCE)


def programs(folder: Path, *names: str) -> str:
    """A folder with programs of those names, which do nothing."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return str(folder)


def path_without_go(folder: Path) -> str:
    """A PATH with the tools of the script and without Go."""
    folder.mkdir()
    for name in ("bash", "cat", "cksum", "cut", "dirname", "env"):
        (folder / name).symlink_to(next(file for part in os.environ["PATH"].split(":") if (file := Path(part, name)).exists()))
    return str(folder)


def test_binaries_that_somebody_brings_are_taken_as_they_are(tmp_path: Path) -> None:
    given = programs(tmp_path / "assets", "etcd", "kube-apiserver")

    built = build(KUBEBUILDER_ASSETS=given, PATH=os.environ["PATH"])

    assert (built.returncode, built.stdout) == (0, f"{given}\n")


def test_a_folder_without_them_is_named(tmp_path: Path) -> None:
    given = programs(tmp_path / "assets", "etcd")

    built = build(KUBEBUILDER_ASSETS=given, PATH=os.environ["PATH"])

    assert built.returncode == 1
    assert built.stderr == f"KUBEBUILDER_ASSETS: there is no kube-apiserver in {given}\n"


def test_without_binaries_and_without_go_it_says_how_to_get_either(tmp_path: Path) -> None:
    built = build(PATH=path_without_go(tmp_path / "bin"), HOME=str(tmp_path))

    assert built.returncode == 69
    assert "KUBEBUILDER_ASSETS" in built.stderr and "Go 1.26" in built.stderr
    assert not list(tmp_path.glob(".cache/**/*"))


def test_a_release_that_is_not_built_is_named(tmp_path: Path) -> None:
    built = build(KUBERNETES="1.36", PATH=os.environ["PATH"], HOME=str(tmp_path))

    assert (built.returncode, built.stderr) == (64, "KUBERNETES: 1.30, 1.35 or 1.37, not 1.36\n")


def test_every_release_is_built_from_a_module_of_that_release() -> None:
    older = {release: BUILD.parent / release.rpartition(".")[0].removeprefix("v") / "go.mod" for release in ("v1.30.14", "v1.35.4")}
    modules = {**older, "v1.37.2": BUILD.parent / "go.mod"}

    assert {release for release in modules if f"kubernetes={release} " in BUILD.read_text()} == set(modules)
    assert {release for release, module in modules.items() if f"k8s.io/kubernetes {release}\n" in module.read_text()} == set(modules)
