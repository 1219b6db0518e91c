"""Both distributions, built and installed as a user does it, serve kubectl."""

import os
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.enginectl.calling import ROOT
from tests.enginectl.test_extras import run, the_wheel


@pytest.mark.e2e
def test_an_installation_of_both_wheels_serves_kubectl(tmp_path: Path) -> None:
    wheels = [
        the_wheel(tmp_path / name, run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / name, ROOT / folder))
        for name, folder in (("product", "."), ("sandbox", "sandbox"))
    ]
    contents = set(ZipFile(wheels[1]).namelist())
    venv.create(tmp_path / "venv")
    pip = (sys.executable, "-m", "pip", "--python", tmp_path / "venv" / "bin" / "python")
    installed = run(*pip, "install", "--quiet", "--no-compile", "-c", ROOT / "constraints.txt", *wheels)
    assert installed.returncode == 0, installed.stderr

    up: list[str | Path] = [tmp_path / "venv" / "bin" / "engine", "sandbox", "up", "--nodes", "2", "--dir", tmp_path / "box"]
    with subprocess.Popen(up, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            kubeconfig = server.stdout.readline().strip().partition("=")[2]
            nodes = run(Path(os.environ["KUBEBUILDER_ASSETS"]) / "kubectl", "get", "nodes", "-o", "name", KUBECONFIG=kubeconfig)
        finally:
            server.terminate()

    assert {f"grove_sandbox/{name}" for name in ("commands/demo.yaml", "tables/columns.yaml", "types/shapes.txt")} <= contents
    assert nodes.stdout.split() == ["node/node-0000", "node/node-0001"], nodes.stderr
