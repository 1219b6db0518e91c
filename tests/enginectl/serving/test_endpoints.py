"""`engine run` as a process: what it listens on, that it follows its configuration, and how it ends."""

import json
import signal
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from enginectl.base.exit_codes import Exit
from resources.install.webhooks import VALIDATE_SET
from tests.enginectl.box import Box
from tests.enginectl.calling import finished, started
from tests.ports import free_port
from tests.providers.http.talking import HOST
from tests.resources.admission.requests import put, small
from tests.resources.admission.test_review import review
from tests.waiting import PATIENCE

CONSTRAINED = put(small(), {"spec.template.topologyConstraint": {"topologyName": "racks", "pack": {"required": "zone"}}})


class Installed:
    """A configuration with endpoints on free ports, and a certificate in files."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        certificate = self.authority.issue_cert(HOST)
        (folder / "tls.crt").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
        (folder / "tls.key").write_bytes(certificate.private_key_pem.bytes())
        self.ports = {name: free_port() for name in ("webhooks", "healthProbes", "metrics")}
        server: dict[str, Any] = {name: {"bindAddress": HOST, "port": port} for name, port in self.ports.items()}
        server["webhooks"] |= {"certProvisionMode": "manual", "serverCertDir": str(folder)}
        self.file = folder / "operator.yaml"
        self.document: dict[str, Any] = {"server": server}
        self.configure()

    def configure(self, **sections: Any) -> None:
        """Write the file, with more sections."""
        self.file.write_text(yaml.safe_dump(self.document | sections))

    def get(self, endpoint: str, path: str) -> tuple[int, str]:
        """The status and the text of a plain endpoint."""
        return _opened(f"http://{HOST}:{self.ports[endpoint]}{path}")

    def review(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to a review of a new set."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        url = f"https://{HOST}:{self.ports['webhooks']}{VALIDATE_SET.path}"
        status, text = _opened(url, json.dumps(review(object=body)).encode(), context)
        assert status == 200
        response: dict[str, Any] = json.loads(text)["response"]
        return response


def _opened(url: str, body: bytes | None = None, context: ssl.SSLContext | None = None) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, body, timeout=PATIENCE, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """An installation that is not started."""
    folder = tmp_path / "installed"
    folder.mkdir()
    return Installed(folder)


@contextmanager
def running(box: Box, installed: Installed, *words: str) -> Iterator["Running"]:
    """`engine run` while the block runs; killed at its end if it still is."""
    with started("run", "--config", installed.file, "--log-format", "json", *words, KUBECONFIG=str(box.kubeconfig)) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


class Running:
    """The process, and its log."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []

    def logged(self, event: str) -> dict[str, Any]:
        """Wait until the process has logged that, and return it."""
        return self.logged_as(lambda line: line.get("event") == event)

    def logged_as(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        assert self.process.stderr
        while not (self.events and fits(self.events[-1])):
            line = self.process.stderr.readline()
            assert line, self.events
            self.events.append(json.loads(line))
        return self.events[-1]


def test_webhooks_probes_and_metrics_are_served_and_the_authorizer_follows_the_file(box: Box, installed: Installed) -> None:
    with running(box, installed) as engine:
        engine.logged("leading")
        refused = installed.review(CONSTRAINED)
        assert installed.get("healthProbes", "/healthz") == (200, "ok")
        ready = installed.get("healthProbes", "/readyz?verbose")
        assert ready[0] == 200 and "[+]certificate ok" in ready[1] and "[+]admission ok" in ready[1]
        status, metrics = installed.get("metrics", "/metrics")
        assert status == 200 and VALIDATE_SET.path in metrics

        installed.configure(topologyAwareScheduling={"enabled": True}, authorizer={"enabled": True})
        fields = engine.logged("configuration reloaded")["fields"]
        accepted = installed.review(CONSTRAINED)
        engine.process.send_signal(signal.SIGTERM)
        assert engine.process.wait(30) == Exit.TERMINATED

    assert "Topology Aware Scheduling is disabled" in refused["status"]["message"]
    # The new rules read bindings, which may still be listed: then nothing is refused for want of one.
    assert "Topology Aware Scheduling is disabled" not in json.dumps(accepted)
    assert fields == "authorizer.enabled, topologyAwareScheduling.enabled"


def test_a_replica_that_does_not_lead_serves_too(box: Box, installed: Installed, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    standby = Installed(other)
    with running(box, installed) as leader:
        leader.logged("leading")
        with running(box, standby):
            while True:
                try:
                    ready, _ = standby.get("healthProbes", "/readyz")
                    break
                except OSError:
                    continue
            assert standby.review(small())["allowed"]
            assert "does not lead" in standby.get("healthProbes", "/readyz?verbose")[1]

    assert ready in (200, 500)


def test_an_address_that_is_taken_ends_the_command_before_it_leads(box: Box, installed: Installed) -> None:
    with socket.create_server((HOST, installed.ports["metrics"])):
        result = finished("run", "--config", installed.file, KUBECONFIG=str(box.kubeconfig))

    assert result.code == Exit.FAILED
    assert result.err.splitlines()[-2] == f"engine: cannot serve metrics on {HOST}:{installed.ports['metrics']}: Address already in use"
    assert "leading" not in result.err


def test_outside_of_a_pod_nothing_is_served_without_a_section_and_a_port_0_disables(box: Box, installed: Installed) -> None:
    installed.document["server"]["webhooks"] = {"port": 0}
    installed.configure()
    with running(box, installed) as engine:
        engine.logged("leading")
        assert installed.get("healthProbes", "/healthz") == (200, "ok")
        with pytest.raises(OSError):
            installed.review(small())
    installed.file.write_text("logLevel: info\n")
    with running(box, installed) as engine:
        engine.logged("leading")
        with pytest.raises(OSError):
            installed.get("healthProbes", "/healthz")
