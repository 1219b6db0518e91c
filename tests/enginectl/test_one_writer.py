"""Several users of one cluster on the command line: timeouts, exit codes, what is said about the holder of the lease, and cron."""

import json
import re
import signal
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from engine.runtime.lease import LEASE
from engine.runtime.lease_holder import HELD_BY, HELD_FOR
from enginectl.base.exit_codes import Exit
from enginectl.wiring.leases import purpose_of
from enginectl.wiring.scope import EVERYTHING, Selection
from grove_sandbox.http.faults import InjectedFault
from providers.fabrics.nvidia.names import AUTO
from resources.base.kinds import POD, PODCLIQUESET
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine, finished, started
from tests.open_sockets import left_open
from tests.providers.kubernetes.loopback import kubeconfig
from tests.silent_server import Stage, silent_server
from tests.waiting import PATIENCE

FIRST = ROOT / "examples" / "01-first-gang"
OPTED_OUT = ROOT / "examples" / "04-auto-mnnvl" / "opted-out.yaml"
NAME = "grove-operator-leader-election"


@pytest.fixture
def stuck(tmp_path: Path) -> Path:
    """A manifest of a workload that no node can run."""
    file = tmp_path / "stuck.yaml"
    text = (FIRST / "gang.yaml").read_text().replace("  name: first\n", "  name: stuck\n")
    assert "containers:" in text
    file.write_text(re.sub(r"^( *)containers:", r"\1nodeSelector: {rack: none}\n\1containers:", text, flags=re.MULTILINE))
    return file


def lease(**changes: Any) -> dict[str, Any]:
    """A Lease that another process holds for a long time."""
    spec = {"holderIdentity": "host1_41__0123abcd", "leaseDurationSeconds": 3600, "leaseTransitions": 1}
    times = {"acquireTime": "2026-01-01T08:00:00.123456Z", "renewTime": "2026-01-01T08:00:00.123456Z"}
    return {"metadata": {"name": NAME, "namespace": "default", **changes.pop("metadata", {})}, "spec": spec | times | changes}


@contextmanager
def a_sync_that_waits(box: Box, file: Path, *options: str) -> Iterator[Any]:
    """A `sync -f` of the file in another process, once it waits for pods."""
    with started("sync", "-f", file, *options, KUBECONFIG=str(box.kubeconfig)) as process:
        assert process.stderr
        while "pending" not in (line := process.stderr.readline()):
            assert line, "it ended too soon"
        yield process
        process.kill()


def test_a_sync_that_waits_for_pods_does_not_keep_another_one_from_its_work(box: Box, engine: Engine, stuck: Path) -> None:
    with a_sync_that_waits(box, stuck):
        other = engine("sync", "-f", FIRST, "--timeout", "30m")
        scaled = box.names(PODCLIQUESET)

    assert (other.code, scaled) == (Exit.DONE, ["first", "stuck"])


def test_a_sync_that_is_interrupted_while_it_waits_leaves_the_lease_free(box: Box, engine: Engine, stuck: Path) -> None:
    with a_sync_that_waits(box, stuck) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)

    (left,) = box.all(LEASE)
    assert (process.returncode, left["spec"]["holderIdentity"]) == (Exit.INTERRUPTED, "")
    assert "annotations" not in left["metadata"]


def test_another_holder_is_named_with_its_time_and_its_purpose(box: Box, engine: Engine) -> None:
    annotations = {HELD_BY: "host1_41__0123abcd", HELD_FOR: "sync -f racks.yaml in namespace x"}
    box.create(LEASE, lease(metadata={"annotations": annotations}))

    answer = engine("sync", "-f", FIRST, "--lock-timeout", "0")

    assert (answer.code, answer.out) == (Exit.NOT_LEADER, "")
    assert answer.messages == [
        f"engine: the lease default/{NAME} is held by process 41 on host1, since 2026-01-01T08:00:00Z, "
        "for: sync -f racks.yaml in namespace x",
        "exit 6: the lease is not held",
    ]


@pytest.mark.parametrize(
    ("metadata", "spec", "said"),
    [
        ({}, {"holderIdentity": "ns/engine-0_1_0123456789ab_0123abcd"}, "pod ns/engine-0, since 2026-01-01T08:00:00Z\n"),
        ({}, {"holderIdentity": "grove-operator-1_0aa0bb00-1234-4abc-8def-0123456789ab"}, "grove-operator-1, since 2026-01-01T08:00:00Z\n"),
        ({}, {"holderIdentity": "x\x1b[2J\ny", "acquireTime": None}, "x\\x1b[2J\\x0ay\n"),
        ({"annotations": {HELD_BY: "somebody else", HELD_FOR: "sync"}}, {}, "process 41 on host1, since 2026-01-01T08:00:00Z\n"),
        ({"annotations": {HELD_BY: "host1_41__0123abcd", HELD_FOR: "a\x1b[31m\n" + "b" * 900}}, {}, ", for: a\\x1b[31m\\x0ab"),
    ],
)
def test_what_a_lease_contains_is_untrusted_text(
    box: Box, engine: Engine, metadata: dict[str, Any], spec: dict[str, Any], said: str
) -> None:
    box.create(LEASE, lease(metadata=metadata, **spec))

    answer = engine("sync", "--lock-timeout", "0")

    assert answer.code == Exit.NOT_LEADER and said in answer.err
    assert len(answer.messages) == 2 and len(answer.err) < 600 and "\x1b" not in answer.err


def test_while_a_sync_writes_its_lease_says_which_command_it_is(box: Box, engine: Engine) -> None:
    assert engine("sync", "-f", FIRST).code == Exit.DONE
    with started("run", "-n", "default", "--log-format", "json", KUBECONFIG=str(box.kubeconfig)) as process:
        assert process.stderr
        while '"leading"' not in (line := process.stderr.readline()):
            assert line, "it ended before it led"
        (held,) = box.all(LEASE)
        refused = engine("sync", "--lock-timeout", "0")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    assert held["metadata"]["annotations"][HELD_FOR] == "run in namespace default"
    assert refused.code == Exit.NOT_LEADER and re.search(r"process \d+ on .*, since .*Z, for: run in namespace default\n", refused.err)


def test_the_purpose_names_files_without_their_folders_and_at_most_three_of_them() -> None:
    files = [Path("/srv/alice/racks.yaml"), Path("-"), Path("b.yaml"), Path("c.yaml"), Path("d.yaml")]

    assert purpose_of("sync", files[:1], Selection(("x",))) == "sync -f racks.yaml in namespace x"
    assert purpose_of("sync", files, Selection(("x", "y"))) == "sync -f racks.yaml -f - -f b.yaml and 2 more in namespaces x, y"
    assert purpose_of("run", (), EVERYTHING) == "run in all namespaces"


def test_the_timeout_covers_a_cluster_that_does_not_answer(box: Box) -> None:
    box.inject(InjectedFault("slow", verb="list", resource="podcliquesets", times=50, seconds=20.0))

    for words in (("sync",), ("sync", "-f", FIRST), ("sync", "--dry-run")):
        answer = finished(*words, "--timeout", "1s", KUBECONFIG=str(box.kubeconfig))
        assert (answer.code, answer.err.splitlines()[-1]) == (Exit.FAILED, "exit 1: failed")
        assert "the time was over before" in answer.err and "nothing was written" in answer.err
    quiet = finished("sync", "--quiet", "--timeout", "1s", KUBECONFIG=str(box.kubeconfig))
    assert (quiet.code, quiet.err.splitlines()[-1]) == (Exit.UNSETTLED, "exit 8: not settled")
    assert box.names(PODCLIQUESET) == []


@pytest.mark.parametrize("stage", get_args(Stage))
@pytest.mark.parametrize(("options", "ending"), [(("-q",), Exit.UNSETTLED), ((), Exit.FAILED), (("--dry-run",), Exit.FAILED)])
def test_a_sync_that_runs_into_its_timeout_closes_its_connections(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stage: Stage, options: tuple[str, ...], ending: Exit
) -> None:
    with silent_server(stage) as server:
        config = kubeconfig(tmp_path, server.url, certificate_authority_data=b64encode(server.authority).decode())
        monkeypatch.setenv("KUBECONFIG", str(config))
        code = engine("sync", *options, "--timeout", "1s").code

        assert (code, left_open(server.url)) == (ending, [])


def test_a_quiet_sync_says_what_it_changed_and_nothing_when_it_changed_nothing(box: Box, engine: Engine) -> None:
    first, second = engine("sync", "-q", "-f", FIRST), engine("sync", "--quiet", "-f", FIRST)

    lines = first.out.splitlines()
    assert (first.code, first.err, len(lines)) == (Exit.DONE, "", 12)
    assert lines[0] == "create PodCliqueSet/default/first: proposed by a manifest (ManifestChanged)"
    assert all(re.fullmatch(r"create \S+ of PodCliqueSet/default/first: .+ \(ManifestChanged\)", line) for line in lines[1:])
    assert (second.code, second.out, second.err) == (Exit.DONE, "", "")


def test_a_quiet_sync_writes_a_document_only_if_there_is_something_in_it(box: Box, engine: Engine) -> None:
    first, second = engine("sync", "-q", "-f", FIRST, "-o", "json"), engine("sync", "-q", "-o", "json")

    results = [result for result in first.document["results"] if result["verb"] != "status"]
    assert (first.code, first.err, first.document["ending"], len(results)) == (Exit.DONE, "", "done", 12)
    assert {(result["root"]["name"], result["cause"]) for result in results} == {("first", "intent")}
    assert (second.code, second.out, second.err) == (Exit.DONE, "", "")


def test_a_quiet_sync_tells_a_timeout_from_a_failure_and_writes_both_to_stderr(box: Box, engine: Engine, stuck: Path) -> None:
    late = engine("sync", "-q", "-f", stuck, "--timeout", "40s", "--assume-nodes")
    document = engine("sync", "-q", "-o", "json", "--timeout", "40s")
    box.deny(verb="create", resource="services")
    failed = engine("sync", "-q", "-f", FIRST)

    assert (late.code, late.err.splitlines()[0]) == (Exit.UNSETTLED, "engine: not settled in time")
    assert "engine: pending: " in late.err and late.err.endswith("exit 8: not settled\n")
    assert (document.code, document.document["ending"], document.document["timedOut"]) == (Exit.UNSETTLED, "timed out", True)
    assert failed.code == Exit.FAILED and failed.err.endswith("exit 1: failed\n")
    assert re.search(r"^engine: create Service/default/first-0: .*forbidden", failed.err, re.MULTILINE)


def test_a_quiet_sync_leaves_out_notes_and_warnings_but_not_errors(box: Box, engine: Engine, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("leaderElection: {enabled: false}\nnobody: knows\n")
    engine("sync", "-f", FIRST)

    answer = engine("sync", "-q", "--config", config)
    loud = engine("sync", "--config", config)

    assert (answer.code, answer.out, answer.err) == (Exit.DONE, "", "")
    assert loud.err.count("warning: ") == 2


def test_a_quiet_sync_names_an_edited_annotation_that_has_no_effect(box: Box, engine: Engine) -> None:
    engine("sync", "-f", OPTED_OUT)
    box.change(PODCLIQUESET, "alone", {"metadata": {"annotations": {AUTO: "enabled"}}})

    answer = engine("sync", "-q")

    fault = f"PodCliqueSet/default/alone: metadata.annotations.{AUTO}: Forbidden: annotation {AUTO} cannot be added"
    assert (answer.code, answer.out, answer.err.count(fault)) == (Exit.FAILED, "", 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sync", "-q", "-v"], "--quiet and --verbose exclude each other"),
        (["sync", "-q", "--dry-run"], "--quiet and --dry-run exclude each other"),
        (["sync", "--lock-timeout", "soon"], "--lock-timeout soon: not a duration such as 30s, 4h or 1h30m"),
        (["sync", "--lock-timeout", "-1s"], "--lock-timeout -1s"),
    ],
)
def test_options_that_cannot_be_used_are_usage_errors(engine: Engine, words: list[str], message: str) -> None:
    answer = engine(*words)

    assert (answer.code, message in answer.err) == (Exit.USAGE, True), answer.err


def test_the_exit_code_of_status_says_whether_everything_is_settled(box: Box, engine: Engine, stuck: Path) -> None:
    empty, plain = engine("status", "--exit-code"), engine("status")
    engine("sync", "-f", FIRST)
    settled, usual = engine("status", "--exit-code"), engine("status")
    engine("sync", "-f", stuck, "--no-wait")
    unsettled = [engine("status", "--exit-code", *words) for words in ((), ("-o", "json"), ("stuck",))]
    one = engine("status", "first", "--exit-code")

    assert (empty.code, plain.code, settled.code, one.code) == (Exit.DONE,) * 4
    assert re.sub(r"\d+s", "", settled.out) == re.sub(r"\d+s", "", usual.out)
    assert [answer.code for answer in unsettled] == [Exit.UNSETTLED] * 3
    assert unsettled[0].last == "exit 8: not settled" and json.loads(unsettled[1].out)["workloads"]
    assert engine("status").code == Exit.DONE


def test_the_exit_code_of_status_tells_what_is_faulty_denied_and_unknown_from_what_is_unsettled(box: Box, engine: Engine) -> None:
    engine("sync", "-f", FIRST)
    (root,) = box.all(PODCLIQUESET)
    box.change(PODCLIQUESET, "first", {"metadata": {"annotations": {"engine.grove.io/none": "x"}}, "spec": {"replicas": 2}})
    changing = engine("status", "--exit-code")
    box.deny(verb="list", resource="services")
    incomplete = engine("status", "--exit-code")

    assert root and (changing.code, incomplete.code) == (Exit.UNSETTLED, Exit.INCOMPLETE)


def test_the_exit_code_of_status_counts_a_completed_set_as_done(box: Box, engine: Engine, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    pod_spec = '{restartPolicy: Never, containers: [{name: c, image: "x:1"}]}'
    clique = f'{{name: c, annotations: {{sandbox.grove.io/fail: "exit:0"}}, spec: {{podSpec: {pod_spec}}}}}'
    spec = f"{{replicas: 1, template: {{cliques: [{clique}]}}}}"
    job.write_text(f"apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata: {{name: job}}\nspec: {spec}\n")
    engine("sync", "-f", job, "--no-wait")
    box.wait_for(POD, lambda pod: (pod.get("status") or {}).get("phase") == "Succeeded")
    synced, answer = engine("sync", "--timeout", "30m"), engine("status", "job", "--exit-code")

    assert (synced.code, answer.code) == (Exit.DONE, Exit.DONE)
    assert re.search(r"job +completed", answer.out)
