"""The command: its arguments, signals and exit code."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from initc.environment import ACCOUNT, POD_INFO
from initc.main import main, required_pods
from resources.lifecycle.startup import READABLE
from tests.initc import cluster as clusters
from tests.initc.cluster import Cluster
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
CALL = "import sys, pathlib, initc.main; sys.exit(initc.main.main(sys.argv[2:], root=pathlib.Path(sys.argv[1])))"


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Signals are handled after a test as before it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


USER = 65532
"""The user of the image."""


@contextmanager
def started(
    cluster: Cluster, *words: str, python: str = sys.executable, code: Path = ROOT / "cmd", user: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, on that cluster, as that user with no other groups; None: as the user of the test."""
    environ = {"PYTHONPATH": str(code), "HTTPS_PROXY": "http://127.0.0.1:1", **cluster.environ}
    call = [python, "-c", CALL, str(cluster.root), *words]
    other: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    with subprocess.Popen(call, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environ, **other) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    """The next line of its log."""
    assert process.stderr is not None
    return process.stderr.readline()


def test_cliques_may_be_named_one_by_one_and_the_last_number_counts() -> None:
    assert required_pods(["--podcliques=a:1", "-p", "b:2", "--podcliques", "a:3"]) == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    "words",
    [
        ["--podcliques=a"],
        ["--podcliques=a:"],
        ["--podcliques=:1"],
        ["--podcliques=a:0"],
        ["--podcliques=a:-1"],
        ["--podcliques=a:1.5"],
        ["--podcliques=a:²"],
        ["--podcliques=a:1\x1b[2J\nb"],
        ["--podcliques=a:" + "9" * 5000],
        ["--podcliques"],
        ["--podclique=a:1"],
        ["a:1"],
    ],
)
def test_a_usage_error_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = main(words, {}, Path("/nonexistent"))
    captured = capsys.readouterr()

    assert (code, captured.out) == (1, "")
    assert captured.err.startswith("grove-initc: ") and captured.err.count("\n") == 1
    assert len(captured.err) < 300 and "\x1b" not in captured.err


def test_without_cliques_it_ends_at_once() -> None:
    assert main([], {}, Path("/nonexistent")) == 0


def test_outside_of_a_pod_it_says_what_is_missing(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--podcliques=a:1"]
    assert main(words, {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "x"}, cluster.root) == 1
    cluster.mount("token", " \n")
    assert main(words, cluster.environ, cluster.root) == 1
    assert main(words, cluster.environ, Path("/nonexistent")) == 1

    first, second, third = capsys.readouterr().err.splitlines()
    assert first == "grove-initc: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not name an API server"
    assert second.endswith("serviceaccount/token is empty")
    assert "pod-info/namespace cannot be read" in third


def test_it_exits_with_0_when_all_pods_are_ready(cluster: Cluster) -> None:
    with started(cluster, "--podcliques=x-0-l:1") as process:
        assert line(process) == "grove-initc: waiting for 1 of x-0-l\n"
        cluster.create("l-0", "x-0-l")

        assert process.wait(PATIENCE) == 0
        assert line(process) == "grove-initc: all pods are ready\n"


def python_of(user: int, code: Path) -> str:
    """An interpreter with which that user can run the command in that folder; empty if there is none."""
    test = "import sys; assert sys.version_info >= (3, 11); import initc.main"
    for python in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        call, environ = [python, "-c", test], {"PYTHONPATH": str(code)}
        with suppress(OSError):
            if subprocess.run(call, user=user, group=user, extra_groups=[], env=environ, capture_output=True).returncode == 0:
                return python
    return ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")
def test_the_user_of_the_image_reads_what_is_mounted_as_a_kubelet_mounts_it() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, code = Path(name), Path(name, "code")
        shutil.copytree(ROOT / "cmd" / "initc", code / "initc", ignore=shutil.ignore_patterns("__pycache__"))
        with clusters.cluster(folder) as cluster:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o755 if path.is_dir() or path.suffix == ".py" else 0o600)
            for path in (*(folder / ACCOUNT).iterdir(), *(folder / POD_INFO).iterdir()):
                path.chmod(READABLE)
            python = python_of(USER, code)
            if not python:
                pytest.skip(f"user {USER} has no interpreter")
            with started(cluster, "--podcliques=x-0-l:1", python=python, code=code, user=USER) as process:
                assert line(process) == "grove-initc: waiting for 1 of x-0-l\n"
                cluster.create("l-0", "x-0-l")

                assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_1(cluster: Cluster, number: signal.Signals) -> None:
    with started(cluster, "--podcliques=x-0-l:1") as process:
        assert line(process) == "grove-initc: waiting for 1 of x-0-l\n"
        process.send_signal(number)

        assert process.wait(PATIENCE) == 1
        assert line(process) == f"grove-initc: stopped by {number.name}\n"


def test_it_needs_nothing_but_the_standard_library() -> None:
    script = "import sys, initc.main; print(*sorted({name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names))"
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'cmd')!r}); {script}"],
        capture_output=True,
        text=True,
    )

    assert set(loaded.stdout.split()) == {"__main__", "initc"}
