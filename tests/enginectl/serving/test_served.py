"""What an HTTP client of a running `engine run` sees: probes, metrics, and a log that nobody needs for anything else to work."""

import gzip
import http.client
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from prometheus_client.parser import text_string_to_metric_families

from enginectl.base.exit_codes import Exit
from grove_sandbox.http.faults import InjectedFault
from resources.base.kinds import DEPLOYMENT, DYNAMO_GRAPH, INGRESS, LEADER_WORKER_SET, PVC, SCALING_ADAPTER, SECRET
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, command, environment
from tests.ports import free_port
from tests.providers.http.talking import HOST
from tests.resources.admission.graphs import graph, worker
from tests.waiting import PATIENCE, until

FIRST = ROOT / "examples" / "01-first-gang"
CONFIGURATION = """
leaderElection: {{leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 500ms}}
server:
  webhooks: {{bindAddress: {host}, port: {webhooks}}}
  healthProbes: {{bindAddress: {host}, port: {probes}}}
  metrics: {{bindAddress: {host}, port: {metrics}}}
"""


@dataclass(frozen=True)
class Served:
    """A process of ours, and its ports."""

    process: subprocess.Popen[str]
    probes: int
    metrics: int

    def get(self, path: str, port: int = 0, **headers: str) -> tuple[int, bytes]:
        """Status and body of a response."""
        connection = http.client.HTTPConnection(HOST, port or self.probes, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def values(self, name: str, label: str = "") -> dict[str, float]:
        """The series of a metric that are not zero: value of the label -> sum."""
        sums: dict[str, float] = {}
        for family in text_string_to_metric_families(self.get("/metrics", self.metrics)[1].decode()):
            for sample in family.samples:
                if sample.name == name and sample.value:
                    sums[sample.labels.get(label, "")] = sums.get(sample.labels.get(label, ""), 0) + sample.value
        return sums

    def labelled(self, label: str) -> set[str]:
        """The values that a label has in the series of all metrics."""
        families = text_string_to_metric_families(self.get("/metrics", self.metrics)[1].decode())
        return {sample.labels[label] for family in families for sample in family.samples if label in sample.labels}

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        """Ask until it is so, while the process runs."""

        def is_answered() -> bool:
            try:
                return is_so()
            except OSError:
                assert self.process.poll() is None, "it has ended"
                return False

        until(is_answered)


@contextmanager
def serving(
    box: Box, folder: Path, stderr: IO[str] | int | None = subprocess.DEVNULL, webhooks: int = 0, more: str = ""
) -> Iterator[Served]:
    """An `engine run` that serves probes and metrics, until the block ends; it must end in order. `more` of its configuration."""
    probes, metrics = free_port(), free_port()
    config = folder / "served.yaml"
    config.write_text(CONFIGURATION.format(host=HOST, webhooks=webhooks, probes=probes, metrics=metrics) + more)
    words = command("run", "--interval", "1s", "--config", config, "--log-format", "json")
    variables = environment(KUBECONFIG=str(box.kubeconfig))
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, text=True, env=variables) as process:
        served = Served(process, probes, metrics)
        try:
            served.wait_for(lambda: served.get("/healthz")[0] == 200)
            yield served
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == Exit.TERMINATED
        finally:
            process.kill()


def test_a_process_that_leads_is_ready_and_counts_what_it_does(box: Box, tmp_path: Path) -> None:
    with serving(box, tmp_path) as served:
        box.apply(FIRST)
        served.wait_for(lambda: served.values("engine_gangs", "phase") == {"Running": 1})

        assert served.values("engine_roots", "state") == {"settled": 1}
        assert served.values("engine_pods", "state") == {"ready": 3}
        assert served.values("leader_election_master_status", "name") == {"grove-operator-leader-election": 1}
        assert served.values("rest_client_requests_total", "code")["201"] >= 6
        assert served.values("process_resident_memory_bytes")
        assert served.get("/readyz") == (200, b"ok")
        lines = served.get("/readyz?verbose")[1].decode().splitlines()
        assert "[+]leader-election ok: leads" in lines
        assert all(line.startswith("[+]") for line in lines[:-1])
        assert set(served.values("engine_check_healthy", "check")) >= {"ping", "main-loop", "caches", "leader-election"}


OF_GRAPHS = (DYNAMO_GRAPH, SCALING_ADAPTER, DEPLOYMENT, INGRESS, PVC, LEADER_WORKER_SET)
"""What only graphs need."""


def test_without_graphs_nothing_of_them_is_asked_for_or_counted_so_that_no_alert_can_be_about_them(box: Box, tmp_path: Path) -> None:
    broken = graph({"decode": worker(extraPodSpec={"schedulerName": "nowhere"})}, name="broken")
    box.create(DYNAMO_GRAPH, {**broken, "metadata": {"name": "broken"}})
    with serving(box, tmp_path) as served:
        served.wait_for(lambda: served.values("engine_roots", "kind") != {})
        assert {"DynamoGraphDeployment", "Deployment"} <= served.labelled("kind"), "with graphs there are such series"
    for kind in OF_GRAPHS:
        box.deny(resource=kind.plural)

    with serving(box, tmp_path, more="dynamo: {enabled: false}\n") as served:
        box.apply(FIRST)
        served.wait_for(lambda: served.values("engine_roots", "state") == {"settled": 1})

        assert served.get("/readyz") == (200, b"ok")
        assert served.labelled("kind") & {kind.name for kind in OF_GRAPHS} == set()
        assert [served.values(name) for name in ("engine_cache_failing", "engine_objections")] == [{}, {}]
        assert "403" not in served.values("rest_client_requests_total", "code"), "nothing is asked for that is not permitted"


def test_with_webhooks_the_certificate_is_checked_and_its_expiry_told(box: Box, tmp_path: Path) -> None:
    with serving(box, tmp_path, webhooks=free_port()) as served:
        served.wait_for(lambda: served.get("/readyz") == (200, b"ok"))
        served.wait_for(lambda: set(served.values("engine_certificate_expiry_timestamp_seconds", "certificate")) == {"serving", "ca"})

        lines = served.get("/readyz?verbose")[1].decode().splitlines()
        assert {"[+]certificate ok", "[+]admission ok"} <= set(lines)
        assert any(line.startswith("[+]admission-caches ok") for line in lines), lines
        expiry = served.values("engine_certificate_expiry_timestamp_seconds", "certificate")
        assert time.time() < expiry["serving"] <= expiry["ca"]


def test_metrics_are_compressed_and_probes_do_not_answer_there(box: Box, tmp_path: Path) -> None:
    with serving(box, tmp_path) as served:
        status, body = served.get("/metrics", served.metrics, accept_encoding="gzip", accept="application/openmetrics-text")

        assert status == 200
        assert gzip.decompress(body).endswith(b"# EOF\n")
        assert served.get("/healthz", served.metrics)[0] == 404
        assert served.get("/metrics", served.probes)[0] == 404


def test_a_standby_is_ready_and_reports_no_fleet(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    box.apply(FIRST)
    with serving(box, tmp_path / "a") as leader:
        leader.wait_for(lambda: leader.values("leader_election_master_status", "name") != {})
        with serving(box, tmp_path / "b") as standby:
            standby.wait_for(lambda: standby.get("/readyz") == (200, b"ok"))

            assert "[+]leader-election ok: does not lead" in standby.get("/readyz?verbose")[1].decode()
            assert standby.values("leader_election_master_status", "name") == {}
            assert standby.values("engine_roots", "state") == {}


def test_watches_that_are_expired_and_refused_are_counted(box: Box, tmp_path: Path) -> None:
    box.apply(FIRST)
    with serving(box, tmp_path) as served:
        served.wait_for(lambda: served.values("engine_roots", "state") == {"settled": 1})
        lists = served.values("engine_cache_lists_total", "kind")["Pod"]
        box.inject(InjectedFault("expire", verb="watch", resource="pods"))
        box.scale("first", 2)
        served.wait_for(lambda: served.values("engine_cache_lists_total", "kind")["Pod"] > lists)

        assert served.values("engine_cache_errors_total", "error") == {"Expired": 1}
        served.wait_for(lambda: served.values("engine_pods", "state") == {"ready": 6})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_for_the_log_changes_nothing_else(box: Box, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full, serving(box, tmp_path, full) as served:
        box.apply(FIRST)
        served.wait_for(lambda: served.values("engine_roots", "state") == {"settled": 1})

        assert served.values("engine_log_lines_lost_total")[""] > 5


def test_a_reader_of_the_log_that_has_gone_changes_nothing_else(box: Box, tmp_path: Path) -> None:
    with serving(box, tmp_path, subprocess.PIPE) as served:
        assert served.process.stderr
        served.process.stderr.close()
        box.apply(FIRST)
        served.wait_for(lambda: served.values("engine_roots", "state") == {"settled": 1})

        assert served.values("engine_log_lines_lost_total")[""] > 5


def test_every_line_about_an_operation_names_its_set(box: Box, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as stream, serving(box, tmp_path, stream) as served:
        box.apply(FIRST)
        served.wait_for(lambda: served.values("engine_roots", "state") == {"settled": 1})
    applied = [line for text in log.read_text().splitlines() if text.startswith("{") and (line := json.loads(text))["event"] == "applied"]

    assert {line["root"] for line in applied} == {"PodCliqueSet/default/first"}
    assert {line["cause"] for line in applied} == {"intent"}
    parents = {line["parent"] for line in applied if line["object"].startswith("Pod/")}
    assert parents == {"PodClique/first-0-leader", "PodClique/first-0-worker"}


def test_without_webhooks_there_is_neither_an_authority_nor_a_secret(box: Box, tmp_path: Path) -> None:
    with serving(box, tmp_path) as served:
        served.wait_for(lambda: served.get("/readyz")[0] == 200)
        checks = served.get("/readyz?verbose")[1].decode()

        assert served.values("engine_certificate_expiry_timestamp_seconds", "certificate") == {}
    assert "certificate" not in checks and box.names(SECRET) == []
