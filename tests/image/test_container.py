"""The images of deploy/Dockerfile, built by buildah on a base that `debootstrap` has made. No registry is needed.

debootstrap --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates bookworm FOLDER
IMAGE_BASE=FOLDER python -m pytest tests/image/test_container.py
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.enginectl.calling import ROOT
from tests.image.test_image import pip_settings

BASE = os.environ.get("IMAGE_BASE", "")
CERTIFICATES = "/etc/ssl/certs"

pytestmark = pytest.mark.skipif(
    not (BASE and shutil.which("buildah")), reason="needs buildah, and in IMAGE_BASE a folder made by debootstrap"
)


class Buildah:
    """buildah with a storage of its own."""

    def __init__(self, folder: Path) -> None:
        self._options = ("--root", folder / "root", "--runroot", folder / "run")
        self._environment = {**os.environ, **pip_settings(), "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}

    def __call__(self, *words: str | Path) -> str:
        """Run a command of buildah. Returns what it prints, both streams."""
        command = ["buildah", *map(str, (*self._options, *words))]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._environment, timeout=600)
        assert result.returncode == 0, result.stdout[-3000:]
        return result.stdout

    def build(self, name: str, *options: str | Path) -> None:
        """Build an image of deploy/Dockerfile."""
        mounts = ("--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro", "--volume", "/etc/resolv.conf:/etc/resolv.conf:ro")
        base = ("--pull-never", "--build-arg", "BASE=localhost/base:1", "--network", "host")
        self("bud", "--quiet", *base, *mounts, "--tag", name, "--file", ROOT / "deploy" / "Dockerfile", *options, ROOT)

    def run(self, name: str, script: str) -> str:
        """What a shell script prints in a new container of an image."""
        container = self("from", "--pull-never", name).split()[-1]
        return self("run", "--isolation", "chroot", container, "--", "sh", "-c", f"{script}; true")


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """buildah with the base."""
    folder = tmp_path_factory.mktemp("buildah")
    builder = Buildah(folder)
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
    builder("bud", "--quiet", "--tag", "localhost/base:1", "--file", folder / "Dockerfile", BASE)
    yield builder
    builder("rm", "--all")
    builder("rmi", "--all", "--force")


def test_the_engine_runs_without_privileges_and_can_install_nothing(buildah: Buildah) -> None:
    buildah.build("localhost/engine:1")

    printed = buildah.run("localhost/engine:1", "id -u; engine --help; grove-initc --help; touch /opt/engine/x; python3 -m pip --version")
    assert printed.startswith("65532\n") and "Usage: engine" in printed and "usage: grove-initc" in printed
    assert "cannot touch '/opt/engine/x'" in printed and "No module named pip" in printed


def test_the_init_container_has_nothing_but_python(buildah: Buildah) -> None:
    buildah.build("localhost/initc:1", "--target", "initc")

    printed = buildah.run("localhost/initc:1", "id -u; python3 -m initc --help; ls /opt")
    assert printed.startswith("65532\n") and "usage: grove-initc" in printed and printed.endswith("initc\n")
