"""SIGTERM ends `engine run` and `engine sync` in order, whatever they do: exit 143, and it logs neither a warning nor an error about it."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.http.faults import InjectedFault
from resources.base.kinds import POD, PODCLIQUESET
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import started
from tests.enginectl.serving.test_endpoints import Installed, Running
from tests.stories.pods import running as runs
from tests.waiting import PATIENCE

PODS = 40
LEADS = "leading"


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """An installation that serves everything."""
    folder = tmp_path / "installed"
    folder.mkdir()
    return Installed(folder)


@contextmanager
def engine(box: Box, *words: str | Path) -> Iterator[Running]:
    """A process of `engine WORDS`; killed at the end of the block if it still is."""
    with started(*words, "--log-format", "json", KUBECONFIG=str(box.kubeconfig)) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


def terminate(running: Running) -> list[dict[str, Any]]:
    """End the process with SIGTERM. Returns what it has logged since it was last looked at; it must have ended in order."""
    running.process.send_signal(signal.SIGTERM)
    _, rest = running.process.communicate(timeout=PATIENCE)
    lines = [line for line in map(json.loads, rest.splitlines()) if line["event"] != "configuration not published"]
    assert running.process.returncode == Exit.TERMINATED, lines
    assert [line for line in lines if line["level"] not in ("debug", "info")] == []
    assert lines[-1]["event"] == "exit" and lines[-1]["code"] == 143
    return lines


def is_write_of_pod(line: dict[str, Any]) -> bool:
    return line["event"] == "applied" and str(line.get("object", "")).startswith("Pod/")


def wide(replicas: int) -> dict[str, Any]:
    """A set of that many pods."""
    return podcliqueset("wide", clique("main", pod_spec=runs(0), replicas=replicas))


SITUATIONS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], bool]]] = {
    "it leads": ((), lambda line: line["event"] == LEADS),
    "in the middle of a pass": ((), is_write_of_pod),
    "with shards": (("--shards", "3"), lambda line: line["event"] == LEADS),
    "in the middle of a pass with shards": (("--shards", "3"), is_write_of_pod),
}


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("serves", [False, True], ids=["alone", "serving webhooks"])
def test_run_ends_in_order(box: Box, installed: Installed, situation: str, serves: bool) -> None:
    words, reached = SITUATIONS[situation]
    if reached is is_write_of_pod:
        box.create(PODCLIQUESET, wide(PODS))
    configuration = ("--config", installed.file) if serves else ()
    with engine(box, "run", *configuration, *words) as running:
        running.logged_as(reached)
        if serves:
            while installed.get("healthProbes", "/readyz")[0] != 200:
                continue
        terminate(running)

    assert len(box.all(POD)) in range(PODS + 1)


def test_a_process_that_waits_for_the_lease_ends_in_order(box: Box, installed: Installed) -> None:
    with engine(box, "run") as leader:
        leader.logged(LEADS)
        with engine(box, "run", "--config", installed.file) as standby:
            standby.logged("waiting for the lease")
            terminate(standby)
        terminate(leader)


def test_a_process_whose_call_is_not_answered_ends_in_order(box: Box) -> None:
    box.inject(InjectedFault("slow", verb="create", resource="pods", times=PODS, seconds=1.0))
    box.create(PODCLIQUESET, wide(PODS))
    with engine(box, "run") as running:
        running.logged_as(lambda line: line["event"] == "applied" and str(line.get("object", "")).startswith("PodClique/"))
        terminate(running)


def test_a_sync_that_waits_for_pods_ends_in_order(full_box: Box, tmp_path: Path) -> None:
    manifest = tmp_path / "wide.json"
    manifest.write_text(json.dumps(wide(2)))
    with engine(full_box, "sync", "-f", manifest, "--yes") as running:
        running.logged_as(is_write_of_pod)
        terminate(running)


def test_a_process_whose_server_fails_ends_in_order_before_it_has_begun(box: Box, tmp_path: Path) -> None:
    box.inject(InjectedFault("answer", resource="configmaps", times=1000, code=503))
    with engine(box, "run", "--config", config(tmp_path)) as running:
        running.logged("configuration not read")
        running.process.send_signal(signal.SIGTERM)
        _, rest = running.process.communicate(timeout=PATIENCE)

    assert running.process.returncode == Exit.TERMINATED
    assert json.loads(rest.splitlines()[-1])["level"] == "info"


def config(folder: Path) -> Path:
    """A configuration file that chooses nothing."""
    file = folder / "operator.yaml"
    file.write_text("logLevel: info\n")
    return file
