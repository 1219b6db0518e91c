"""`engine sandbox up` as a user meets it: it says where it is, answers, and leaves without a trace."""

import base64
import json
import signal
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from grove_sandbox.registry import ACTORS
from resources.base.kinds import DEPLOYMENT
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine, finished, started
from tests.enginectl.conftest import cluster
from tests.resources.manifests import clique, pcs
from tests.waiting import PATIENCE


@contextmanager
def up(*words: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The sandbox in a process of its own, once it has said that it answers; and the kubeconfig that it names."""
    with started("sandbox", "up", "--nodes", "1", *words) as process:
        try:
            assert process.stdout is not None
            word, _, path = process.stdout.readline().strip().partition("export KUBECONFIG=")
            assert word == "" and path
            yield process, Path(path)
        finally:
            process.kill()


@contextmanager
def asked(kubeconfig: Path, path: str, body: Any = None) -> Iterator[HTTPResponse]:
    """The answer to a GET, or to a POST of the body, with the credentials that the file holds."""
    config = yaml.load(kubeconfig.read_text(), yaml.CSafeLoader)
    cluster, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(cluster["server"] + path, data, headers)
    with urllib.request.urlopen(request, context=context, timeout=PATIENCE) as answer:
        yield answer


def test_once_it_names_its_kubeconfig_it_answers(tmp_path: Path) -> None:
    with up("--dir", str(tmp_path / "box")) as (_, kubeconfig):
        assert tmp_path / "box" / "kubeconfig" == kubeconfig
        assert 0o600 == kubeconfig.stat().st_mode & 0o777
        with asked(kubeconfig, "/version") as answer:
            assert 200 == answer.status


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)])
def test_a_signal_ends_it_in_one_line_and_takes_its_folder_along(number: signal.Signals, code: Exit) -> None:
    with up() as (process, kubeconfig):
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)

    assert code == process.returncode
    assert "Traceback" not in said
    assert not kubeconfig.parent.exists()


def test_a_folder_of_the_user_is_left_where_it_is(tmp_path: Path) -> None:
    with up("--dir", str(tmp_path)) as (process, kubeconfig):
        process.terminate()
        process.wait(timeout=PATIENCE)

    assert kubeconfig.exists()


def test_a_folder_in_which_another_sandbox_runs_is_refused(engine: Engine, tmp_path: Path) -> None:
    with up("--dir", str(tmp_path)) as (_, kubeconfig):
        before = kubeconfig.read_bytes()
        said = engine("sandbox", "up", "--dir", str(tmp_path))

    assert (said.code, kubeconfig.read_bytes()) == (Exit.USAGE, before)
    assert f"engine: --dir {tmp_path}: another sandbox is running there; end it with `engine sandbox down --dir {tmp_path}`, or" in said.err


def test_it_answers_on_the_port_that_was_asked_for(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with up("--dir", str(tmp_path), "--port", str(port)) as (_, kubeconfig):
        assert f"https://127.0.0.1:{port}" == yaml.load(kubeconfig.read_text(), yaml.CSafeLoader)["clusters"][0]["cluster"]["server"]


SETS = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"


def a_set(**spec: Any) -> dict[str, Any]:
    """A set of pods with accelerators."""
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {**pcs(clique("a", podSpec={"containers": [container]}, **spec)), "metadata": {"name": "d"}}


def test_it_has_the_webhooks_of_a_real_cluster_as_they_are_configured(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\nnetwork: {autoMNNVLEnabled: true}\n")

    with up("--dir", str(tmp_path), "--config", str(config)) as (_, kubeconfig):
        with pytest.raises(HTTPError) as refused, asked(kubeconfig, SETS, a_set(minAvailable=2)):
            pass
        with asked(kubeconfig, SETS, a_set()) as made:
            stored = json.load(made)
        with asked(kubeconfig, "/api/v1/namespaces/kube-public/configmaps/grove-engine") as answer:
            published = json.load(answer)["data"]

    assert "autoMNNVLEnabled: true" in published["config.yaml"]
    assert refused.value.code == 422
    assert 'admission webhook "pcs.validating.webhooks.grove.io" denied the request' in json.load(refused.value)["message"]
    assert stored["metadata"]["annotations"] == {"grove.io/auto-mnnvl": "enabled"}


def test_it_does_without_webhooks_where_that_is_asked_for(tmp_path: Path) -> None:
    with up("--dir", str(tmp_path), "--no-admission") as (_, kubeconfig):
        with asked(kubeconfig, SETS, a_set(minAvailable=2)) as made:
            stored = json.load(made)

    assert "terminationDelay" not in stored["spec"]["template"]


def test_it_has_the_addons_that_are_asked_for(tmp_path: Path) -> None:
    with up("--dir", str(tmp_path), "--with", "volcano,lws") as (_, kubeconfig), asked(kubeconfig, "/apis") as answer:
        groups = {group["name"] for group in json.load(answer)["groups"]}

    assert {"leaderworkerset.x-k8s.io", "scheduling.volcano.sh", "grove.io"} <= groups
    assert "scheduling.run.ai" not in groups


def test_actors_play_on_the_cluster_that_the_kubeconfig_names(tmp_path: Path) -> None:
    with up("--dir", str(tmp_path), "--without", "kubelet") as (_, kubeconfig):
        with started("sandbox", "actors", "--with", "kubelet", "--nodes", "2", "--kubeconfig", kubeconfig) as actors:
            with asked(kubeconfig, "/api/v1/nodes?watch=true") as events:
                met = {json.loads(events.readline())["object"]["metadata"]["name"] for _ in range(2)}
            actors.send_signal(signal.SIGINT)
            _, said = actors.communicate(timeout=PATIENCE)

    assert met <= {"node-0000", "node-0001"}
    assert Exit.INTERRUPTED == actors.returncode
    assert "running kubelet; Ctrl-C ends it" in said


def test_a_port_that_is_in_use_is_an_error_in_one_line(engine: Engine, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = engine("sandbox", "up", "--dir", str(tmp_path), "--port", str(port))

    assert Exit.FAILED == said.code
    assert f"engine: the sandbox cannot start on port {port} with its files in {tmp_path}: Address already in use" in said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("up", "--without", "scheduler,driver,plumber"), "--without plumber: there is no such actor; there are scheduler, kubelet"),
        (("up", "--with", "lws,slurm"), "--with slurm: there is no such add-on; there are lws, volcano, kai"),
        (("actors", "--with", "plumber"), "--with plumber: there is no such actor"),
        (("actors", "--with", " , "), "--with names no actor"),
        (("actors",), "engine sandbox actors needs --with"),
    ],
)
def test_an_actor_that_there_is_not_is_a_usage_error(engine: Engine, words: tuple[str, ...], message: str) -> None:
    said = engine("sandbox", *words)

    assert Exit.USAGE == said.code
    assert message in said.err


def test_actors_without_a_cluster_say_what_to_do(engine: Engine) -> None:
    said = engine("sandbox", "actors", "--with", "scheduler")

    assert Exit.FAILED == said.code
    assert "engine sandbox up" in said.err


CONTROLLER = "Deployment dra-driver-nvidia-gpu/compute-domain-controller"


def controller(engine: Engine) -> tuple[str, str]:
    """What the preflight says of the driver's controller."""
    found = {one["check"]: one for one in engine("preflight", "-o", "json").document["checks"]}["controller of the DRA driver"]
    return found["result"], found["found"]


def test_the_controller_of_the_driver_is_up_while_the_driver_is_played(box: Box, engine: Engine) -> None:
    box.wait_for(DEPLOYMENT, lambda body: body["status"].get("readyReplicas") == 1, "compute-domain-controller")

    assert controller(engine) == ("ok", f"{CONTROLLER}: 1 of 1 ready")


def test_where_the_driver_is_left_out_its_controller_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    with cluster(tmp_path, [actor for actor in ACTORS if actor != "driver"]) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))

        assert controller(engine) == ("bad", f"{CONTROLLER}: 0 of 1 ready")


@pytest.mark.parametrize("words", [("up", "--without", "driver,kublet"), ("actors", "--with", "kublet")])
def test_an_actor_that_there_is_not_is_misuse_and_those_that_there_are_are_named(engine: Engine, words: tuple[str, ...]) -> None:
    answer = engine("sandbox", *words)

    assert answer.code == Exit.USAGE
    assert f"{words[1]} kublet: there is no such actor; there are {', '.join(ACTORS)}" in answer.err


def test_detached_it_serves_when_the_command_returns_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    folder = tmp_path / "box"
    began = finished("sandbox", "up", "--detach", "--nodes", "1", "--dir", folder)
    try:
        assert (began.code, began.out) == (Exit.DONE, f"export KUBECONFIG={folder}/kubeconfig\n")
        assert f"engine sandbox down --dir {folder} ends it" in began.err
        with asked(folder / "kubeconfig", "/version") as answer:
            assert 200 == answer.status
        second = finished("sandbox", "up", "--detach", "--dir", folder)
    finally:
        ended = finished("sandbox", "down", "--dir", folder)

    assert second.code == Exit.FAILED and "another sandbox is running there" in second.err
    assert ended.code == Exit.DONE and not (folder / "pid").exists()
    assert "no sandbox runs in" in finished("sandbox", "down", "--dir", folder).err
