"""The control plane of a test starts completely, has its users, and leaves no process."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from tests.controlplane import cluster
from tests.controlplane.cluster import ControlPlane, Missing, down, has_ended, running, up
from tests.controlplane.fixtures import minor_version
from tests.ports import free_port
from tests.waiting import until


def processes(folder: Path) -> list[int]:
    """The processes that `up` has recorded for the folder."""
    return [int(line) for line in (folder / "pids").read_text().split()]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_missing_binaries_are_named_before_anything_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    with pytest.raises(Missing, match="there is no etcd in KUBEBUILDER_ASSETS="):
        up(tmp_path / "plane")

    assert not (tmp_path / "plane").exists()


def test_nothing_to_end_is_no_error(tmp_path: Path) -> None:
    down(tmp_path)


@pytest.mark.e2e
def test_a_port_that_somebody_takes_first_costs_another_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("KUBEBUILDER_ASSETS is not set")
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen()
        taken = [somebody.getsockname()[1]]
        monkeypatch.setattr(cluster, "free_port", lambda: taken.pop() if taken else free_port())

        with running(tmp_path / "plane") as plane:
            assert plane.call("/readyz")[0] == 200

    assert taken == []


@pytest.mark.e2e
def test_a_failure_inside_the_block_ends_every_process(tmp_path: Path, api_server: ControlPlane) -> None:
    started: list[int] = []

    with pytest.raises(ZeroDivisionError), running(tmp_path / "plane") as plane:
        started += processes(plane.folder)
        raise ZeroDivisionError

    assert len(started) == 2
    assert not any(alive(pid) for pid in started)


@pytest.mark.e2e
def test_a_part_that_ends_by_itself_is_started_again_on_its_ports_and_ended_with_the_others(
    tmp_path: Path, api_server: ControlPlane
) -> None:
    with running(tmp_path / "plane") as plane:
        before = cluster.pid_of(plane.folder, "etcd")
        running_before = has_ended(plane.folder, "etcd")
        os.kill(before, signal.SIGTERM)
        until(lambda: has_ended(plane.folder, "etcd"))
        recorded = processes(plane.folder)
        cluster.start_again(plane.folder, "etcd")
        cluster.wait_until_ready(plane)
        after = cluster.pid_of(plane.folder, "etcd")

    assert not running_before
    assert before not in recorded
    assert not alive(after)


@pytest.mark.e2e
def test_a_whole_cluster_has_ready_nodes_and_answers_in_its_own_version(control_plane: ControlPlane) -> None:
    code, answer = control_plane.call("/version")
    listed, nodes = control_plane.call("/api/v1/nodes")

    assert (code, listed) == (200, 200)
    assert json.loads(answer)["minor"] == str(minor_version())
    assert len(json.loads(nodes)["items"]) == 10


@pytest.mark.e2e
def test_credentials_are_readable_by_their_owner_alone(api_server: ControlPlane) -> None:
    secret = [api_server.kubeconfig(user) for user in ("admin", "operator", "guest")]

    assert [path.stat().st_mode & 0o777 for path in secret] == [0o600] * 3
