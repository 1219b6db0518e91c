"""Commands work with the configuration that the installation publishes, say so, and write under its Lease alone."""

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from engine.runtime.lease import LEASE
from engine.runtime.lease_holder import HELD_BY
from engine.shards import shard_of
from enginectl.base.exit_codes import Exit
from grove_sandbox.http.faults import InjectedFault
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base.kinds import CONFIG_MAP, NAMESPACE, PODCLIQUESET
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine, finished, started
from tests.enginectl.publications import LINE, NONE, publication, publish, stored
from tests.waiting import PATIENCE, until

FIRST = ROOT / "examples" / "01-first-gang"
RACKS = ROOT / "examples" / "04-auto-mnnvl" / "racks.yaml"
CALLED = "ConfigMap kube-public/grove-engine"
ELSEWHERE = {"leaderElection": {"resourceNamespace": "kube-system", "resourceName": "lock"}}
LINKED = {"network": {"autoMNNVLEnabled": True}, **ELSEWHERE}
"""An installation with multi-node NVLink, and with its Lease elsewhere."""
READERS: dict[str, tuple[str | Path, ...]] = {
    "diff": ("diff",),
    "diff -f": ("diff", "-f", FIRST),
    "status": ("status",),
    "why": ("why", "pcs/first"),
    "snapshot": ("snapshot",),
    "preflight": ("preflight",),
    "sync --dry-run": ("sync", "-f", FIRST, "--dry-run"),
    "delete --dry-run": ("delete", "first", "--ignore-not-found", "--dry-run"),
}
WRITERS: dict[str, tuple[str | Path, ...]] = {
    "sync": ("sync", "-f", FIRST, "--no-wait"),
    "delete": ("delete", "first", "--ignore-not-found", "--yes"),
}
ALL = READERS | WRITERS
OPERATOR = "grove-operator-6d5-x2_0aa0bb00-1234-4abc-8def-0123456789ab"


@pytest.fixture
def linked(box: Box) -> Box:
    """A cluster with an installation that plans with multi-node NVLink."""
    publish(box, publication(LINKED))
    return box


def config_file(folder: Path, configuration: Any, name: str = "operator.yaml") -> Path:
    """A configuration file."""
    file = folder / name
    file.write_text(json.dumps(configuration))
    return file


def test_every_command_says_in_its_first_line_which_configuration_it_works_with(box: Box, engine: Engine, tmp_path: Path) -> None:
    # By its name: nobody may list what is in that namespace.
    box.deny(verb="list", resource="configmaps")
    file = config_file(tmp_path, {"network": {"autoMNNVLEnabled": False}})
    by_default = {name: engine(*words) for name, words in ALL.items()}
    publish(box, publication(ELSEWHERE))
    installed = {name: engine(*words) for name, words in ALL.items()}
    given = {name: engine(*words, "--config", file) for name, words in ALL.items()}

    for answers, line in ((by_default, NONE), (installed, LINE), (given, f"configuration: file {file}")):
        assert {name: answer.err.splitlines()[0] for name, answer in answers.items()} == dict.fromkeys(ALL, line)
        assert {answer.code for answer in answers.values()} <= {Exit.DONE, Exit.FAILED}


@pytest.mark.parametrize(
    "words",
    [
        ("diff", "-f", FIRST, "--against", "empty"),
        ("diff", "-f", FIRST, "--base", FIRST),
        ("render", "-f", FIRST),
        ("graph", "-f", FIRST),
        ("manifests", "all"),
        ("config", "show"),
    ],
    ids=lambda words: " ".join(map(str, words[:1] + words[3:4])),
)
def test_without_a_cluster_nothing_is_asked(linked: Box, engine: Engine, words: tuple[str | Path, ...]) -> None:
    linked.inject(InjectedFault("cut", verb="get", resource="configmaps", times=50))
    answer = engine(*words)

    assert (answer.code, "configuration:" in answer.err) == (Exit.DONE, False), answer


def test_a_preview_shows_the_plan_of_the_installation(linked: Box, engine: Engine, tmp_path: Path) -> None:
    file = config_file(tmp_path, LINKED)
    published, given = engine("diff", "-f", RACKS, "-o", "json"), engine("diff", "-f", RACKS, "-o", "json", "--config", file)
    by_default = engine("diff", "-f", RACKS, "-o", "json", "--config", config_file(tmp_path, {}, "defaults.yaml"))

    assert published.document == given.document
    assert ("ComputeDomain" in published.out, "ComputeDomain" in by_default.out) == (True, False)


def test_a_review_on_a_cluster_judges_as_the_installation_does(linked: Box, engine: Engine, tmp_path: Path) -> None:
    body = podcliqueset("web", clique("worker", 1))
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": "grove.io", "version": "v1alpha1", "kind": "PodCliqueSet"},
            "resource": {"group": "grove.io", "version": "v1alpha1", "resource": "podcliquesets"},
            "operation": "CREATE",
            "namespace": "default",
            "name": "web",
            "object": body,
        },
    }
    file = config_file(tmp_path, review, "review.json")

    assert LINE in engine("review", "-f", file, "--against", "live").err.splitlines()
    assert "configuration:" not in engine("review", "-f", file).err


def test_a_sync_beside_a_running_engine_plans_as_it_does_and_says_who_leads(linked: Box, engine: Engine, tmp_path: Path) -> None:
    file = config_file(tmp_path, LINKED)
    with started("run", "--config", file, KUBECONFIG=str(linked.kubeconfig)) as process:
        assert process.stderr
        while '"leading"' not in (line := process.stderr.readline()):
            assert line, "it ended before it led"
        refused = engine("sync", "-f", RACKS, "--lock-timeout", "0")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    (lease,) = linked.all(LEASE)
    synced = engine("sync", "-f", RACKS, "--no-wait")

    assert refused.code == Exit.NOT_LEADER
    assert "engine: the lease kube-system/lock is held by process" in refused.err and ", for: run in all namespaces" in refused.err
    assert (lease["metadata"]["namespace"], lease["metadata"]["name"]) == ("kube-system", "lock")
    assert (synced.code, len(linked.names(COMPUTE_DOMAIN))) == (Exit.DONE, 2)
    assert [each["metadata"]["name"] for each in linked.all(LEASE)] == ["lock"]


def test_with_a_configuration_of_its_own_a_sync_takes_the_lease_of_the_installation(linked: Box, engine: Engine, tmp_path: Path) -> None:
    file = config_file(tmp_path, {"leaderElection": {"resourceNamespace": ""}})
    shown, synced = engine("diff", "-f", FIRST, "--config", file), engine("sync", "-f", FIRST, "--config", file)

    assert (shown.code, synced.code) == (Exit.DONE, Exit.DONE)
    assert "has other values of network.autoMNNVLEnabled: it plans otherwise, and its webhooks judge by them" in shown.err
    assert [each["metadata"]["namespace"] for each in linked.all(LEASE)] == ["kube-system"]
    assert "has other values of network.autoMNNVLEnabled" in synced.err


@pytest.mark.parametrize(
    "election", [{"resourceName": "other"}, {"resourceNamespace": "other"}, {"enabled": False}, {"resourceNamespace": "other", "shards": 2}]
)
def test_nothing_is_written_under_another_lease_than_that_of_the_installation(
    linked: Box, engine: Engine, tmp_path: Path, election: dict[str, Any]
) -> None:
    file = config_file(tmp_path, {"leaderElection": election})

    for words in (*WRITERS.values(), ("run",)):
        answer = engine(*words, "--config", file)
        assert (answer.code, answer.out) == (Exit.PREFLIGHT, "")
        assert "the Lease kube-system/lock" in answer.err and "kubectl -n kube-public delete configmap grove-engine" in answer.err
    assert (linked.all(LEASE), linked.names(PODCLIQUESET)) == ([], [])


def test_a_second_installation_in_another_namespace_is_refused(linked: Box, tmp_path: Path) -> None:
    file = config_file(tmp_path, LINKED)
    answer = finished("run", "--config", file, KUBECONFIG=str(linked.kubeconfig), POD_NAMESPACE="second")

    assert (answer.code, linked.all(LEASE)) == (Exit.PREFLIGHT, [])
    assert "this process runs in second, and the engine is installed in grove-system" in answer.err


def test_who_may_not_read_it_is_told_and_writes_nothing(box: Box, engine: Engine) -> None:
    box.deny(verb="get", resource="configmaps")

    for name, words in ALL.items():
        answer = engine(*words)
        first = answer.err.splitlines()[0]
        assert CALLED in first and "may not be read" in first, answer
        assert "--config FILE" in answer.err + answer.out
        assert (answer.code == Exit.PREFLIGHT) == (name in WRITERS)
    assert box.names(PODCLIQUESET) == []


def test_who_may_not_read_it_can_write_with_a_configuration(box: Box, engine: Engine, tmp_path: Path) -> None:
    box.deny(verb="get", resource="configmaps")
    answer = engine("sync", "-f", FIRST, "--config", config_file(tmp_path, {}))

    assert answer.code == Exit.DONE and "whether this is the Lease of the installation is not known" in answer.err


HOSTILE = {
    "not YAML": "network: [",
    "a list": "- 1\n",
    "two documents": "network: {}\n---\nnetwork: {}\n",
    "a wrong type": "network: {autoMNNVLEnabled: perhaps}",
    "an unknown scheduler": "scheduler: {profiles: [{name: slurm}]}",
    "control characters": 'network: {domainDrainTimeout: "\\e[2J"}',
    "a path": "leaderElection: {resourceNamespace: ../../../api/v1/namespaces/kube-system}",
    "a name with a slash": "leaderElection: {resourceName: a/b}",
    "deep": "[" * 500,
    "aliases": "a: &a [x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n"
    + "".join(f"{chr(99 + n)}: &{chr(99 + n)} [{', '.join([f'*{chr(98 + n)}'] * 8)}]\n" for n in range(8)),
    "nothing": " ",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_publication_that_cannot_be_used_ends_every_command_and_is_named(box: Box, engine: Engine, tmp_path: Path, text: str) -> None:
    publish(box, publication({}, config_yaml=text))

    for words in (*ALL.values(), ("run",)):
        answer = engine(*words)
        assert answer.code == Exit.PREFLIGHT, answer
        assert CALLED in answer.err + answer.out and "\x1b" not in answer.err + answer.out and len(answer.err) < 2000
    assert (box.all(LEASE), box.names(PODCLIQUESET)) == ([], [])
    assert engine("diff", "--config", config_file(tmp_path, {})).code == Exit.DONE


@pytest.mark.parametrize("data", [{"config_yaml": ""}, {"version": "\x1b[2J9.9.9"}, {"namespace": "\x1b[31m" + "x" * 900}])
def test_what_a_publication_says_is_untrusted_text(box: Box, engine: Engine, data: dict[str, str]) -> None:
    publish(box, publication({}, **data))
    answer = engine("diff")

    assert "\x1b" not in answer.err and len(answer.err) < 1500


def test_fields_of_a_newer_release_and_another_version_are_noted(box: Box, engine: Engine) -> None:
    publish(box, publication({}, version="9.1.0", config_yaml="network: {autoMNNVLEnabled: false, later: 1}\n"))
    answer = engine("diff")

    assert answer.code == Exit.DONE
    assert "the version of the installation is 9.1.0, that of this command 0.1.0" in answer.err
    assert "network.later is unknown and ignored" in answer.err


def test_withheld_addresses_are_noted_and_keep_writers_away(box: Box, engine: Engine, tmp_path: Path) -> None:
    publish(box, publication({"dynamo": {"natsAddress": "nats://user:hunter2@nats"}}))
    read, written = engine("diff"), engine("sync", "-f", FIRST)

    assert (read.code, written.code) == (Exit.DONE, Exit.PREFLIGHT)
    for answer in (read, written):
        assert "leaves out what may contain credentials (dynamo.natsAddress)" in answer.err and "hunter2" not in answer.err
    assert engine("sync", "-f", FIRST, "--config", config_file(tmp_path, {})).code == Exit.DONE


def test_a_quiet_sync_says_nothing_about_the_configuration(linked: Box, engine: Engine) -> None:
    engine("sync", "-f", FIRST)

    assert engine("sync", "-q").err == ""


def test_a_log_has_the_configuration_as_an_event(linked: Box, engine: Engine) -> None:
    events = [json.loads(line) for line in engine("sync", "-f", FIRST, "--log-format", "json").err.splitlines()]

    assert (events[0]["event"], f"configuration: {events[0]['source']}") == ("configuration", LINE)


def test_the_time_of_a_command_covers_a_cluster_that_does_not_say_what_is_installed(box: Box) -> None:
    box.inject(InjectedFault("slow", verb="get", resource="configmaps", times=50, seconds=20.0))

    answer = finished("sync", "--timeout", "1s", KUBECONFIG=str(box.kubeconfig))
    assert (answer.code, "the time was over before the configuration was known" in answer.err) == (Exit.FAILED, True)


def operator_lease(box: Box, *, age: timedelta = timedelta(0), holder: str = OPERATOR, **metadata: Any) -> None:
    """The Lease of Grove's operator, renewed that long ago."""
    client = box.cluster.client("user")
    box.portal.call(client.create, NAMESPACE, "", {"metadata": {"name": "grove-system"}})
    renewed = (datetime.now(UTC) - age).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed, "acquireTime": renewed}
    body = {"metadata": {"name": "grove-operator-leader-election", "namespace": "grove-system", **metadata}, "spec": spec}
    box.portal.call(client.create, LEASE, "grove-system", body)


def test_nothing_is_written_beside_groves_operator(box: Box, engine: Engine) -> None:
    operator_lease(box, age=-timedelta(minutes=10))  # The clock of the tests is quick.

    for words in (*WRITERS.values(), ("run",)):
        answer = engine(*words)
        assert (answer.code, box.names(PODCLIQUESET)) == (Exit.PREFLIGHT, [])
        assert "Grove's operator runs in this cluster" in answer.err and "held by grove-operator-6d5-x2" in answer.err
        assert "docs/migrating.md" in answer.err
    assert engine("diff").code == engine("status").code == Exit.DONE


def test_another_engine_under_groves_lease_is_called_one(box: Box, engine: Engine) -> None:
    operator_lease(box, age=-timedelta(minutes=10), annotations={HELD_BY: OPERATOR})

    assert "another installation of the engine writes in this cluster" in engine("sync").err


@pytest.mark.parametrize(
    ("age", "holder"), [(timedelta(hours=2), OPERATOR), (timedelta(seconds=60), OPERATOR), (timedelta(0), "")], ids=["old", "dead", "free"]
)
def test_an_operator_that_has_ended_is_in_nobodys_way(box: Box, engine: Engine, age: timedelta, holder: str) -> None:
    operator_lease(box, age=age, holder=holder)

    assert engine("sync", "-f", FIRST).code == Exit.DONE


def test_under_the_lease_of_the_operator_its_rules_are_enough(box: Box, engine: Engine) -> None:
    publish(box, publication({"leaderElection": {"resourceNamespace": "grove-system"}}))
    operator_lease(box)

    answer = engine("sync", "--lock-timeout", "0")
    assert (answer.code, "held by grove-operator-6d5-x2" in answer.err) == (Exit.NOT_LEADER, True)
    assert "Grove's operator runs in this cluster" in engine("preflight").out


def test_who_may_not_look_for_the_operator_is_told(box: Box, engine: Engine, tmp_path: Path) -> None:
    box.deny(verb="get", resource="leases")
    answer = engine("sync", "--config", config_file(tmp_path, {"leaderElection": {"enabled": False}}))

    assert answer.code == Exit.DONE and "whether Grove's operator runs is not known" in answer.err


def test_preflight_reports_the_installation_and_the_operator(linked: Box, engine: Engine, tmp_path: Path) -> None:
    good = engine("preflight")
    other = engine("preflight", "--config", config_file(tmp_path, {"leaderElection": {"resourceName": "other"}}))
    operator_lease(linked, age=-timedelta(minutes=10))
    beside = engine("preflight")

    assert good.code == Exit.DONE and "installation in grove-system, version 0.1.0" in good.out
    assert other.code == beside.code == Exit.PREFLIGHT
    assert "the Lease kube-system/lock" in other.out and "Grove's operator runs in this cluster" in beside.out


def test_a_running_engine_publishes_the_configuration_that_it_works_with(linked: Box, engine: Engine, tmp_path: Path) -> None:
    file = config_file(tmp_path, {"network": {"autoMNNVLEnabled": False}})

    def change() -> None:
        try:
            until(lambda: "autoMNNVLEnabled: false" in stored(linked)["data"]["config.yaml"])
            config_file(tmp_path, {"network": {"autoMNNVLEnabled": False, "domainDrainTimeout": "7m0s"}})
            until(lambda: "domainDrainTimeout: 7m0s" in stored(linked)["data"]["config.yaml"])
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    administrator = Timer(0.5, change)
    administrator.start()
    assert engine("run", "--config", file).code == Exit.TERMINATED
    administrator.join()
    settled = stored(linked)

    # The place of the Lease, and where it is installed, stay what they were: the file says nothing about them.
    assert "domainDrainTimeout: 7m0s" in settled["data"]["config.yaml"]
    assert settled["data"]["leases"] == "kube-system/lock" and settled["data"]["namespace"] == "grove-system"
    assert settled["metadata"]["labels"] == publication({})["metadata"]["labels"]


def test_a_running_engine_ends_when_another_installation_takes_its_place(linked: Box, engine: Engine, tmp_path: Path) -> None:
    other = Timer(2.0, publish, (linked, publication({"leaderElection": {"resourceName": "other"}})))
    other.start()
    answer = engine("run", "--config", config_file(tmp_path, LINKED))
    other.join()

    assert (answer.code, answer.err.splitlines()[-1]) == (Exit.PREFLIGHT, "exit 7: preflight failed")
    assert "has the Lease default/other, and this process the Lease kube-system/lock: two programs would write" in answer.err
    assert [lease["spec"]["holderIdentity"] for lease in linked.all(LEASE)] == [""]


def test_with_shards_a_sync_says_who_leads_the_shard_of_its_namespace(linked: Box, engine: Engine, tmp_path: Path) -> None:
    with started("run", "--config", config_file(tmp_path, {}), "--shards", "3", KUBECONFIG=str(linked.kubeconfig)) as process:
        until(lambda: len(stored(linked)["data"]["leases"].split()) == 3)
        shard = shard_of("default", 3)
        until(lambda: sum(bool(lease["spec"].get("holderIdentity")) for lease in linked.all(LEASE)) == 4)
        refused = engine("sync", "-n", "default", "--lock-timeout", "0")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    assert stored(linked)["data"]["leases"].split() == ["kube-system/lock", "kube-system/lock-shard-1", "kube-system/lock-shard-2"]
    name = f"kube-system/lock-shard-{shard}" if shard else "kube-system/lock"
    assert (refused.code, f"the lease {name} is held by process" in refused.err) == (Exit.NOT_LEADER, True)


def test_without_a_configuration_of_its_own_a_running_engine_works_with_the_published_one(linked: Box) -> None:
    before = stored(linked)
    with started("run", KUBECONFIG=str(linked.kubeconfig)) as process:
        assert process.stderr
        source = json.loads(process.stderr.readline())["source"]
        while '"leading"' not in (line := process.stderr.readline()):
            assert line, "it ended before it led"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    assert (f"configuration: {source}", '"kube-system/lock"' in line) == (LINE, True)
    assert stored(linked) == before


def test_the_publication_is_read_and_nothing_else_of_its_namespace(linked: Box, engine: Engine) -> None:
    assert [body["metadata"]["name"] for body in linked.all(CONFIG_MAP)] == ["grove-engine"]
    linked.deny(verb="watch", resource="configmaps")
    linked.deny(verb="list", resource="configmaps")

    assert engine("sync", "-f", FIRST).code == Exit.DONE
