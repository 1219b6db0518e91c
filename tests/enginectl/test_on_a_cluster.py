"""Commands on a cluster: a sandbox over loopback HTTP, with the real client between."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from engine.runtime.lease import DISABLED, LEASE
from enginectl.base.exit_codes import Exit
from grove_sandbox.http.faults import InjectedFault
from resources.base.kinds import POD, PODCLIQUESET, SECRET, SERVICE
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, CommandResult, Engine, command, environment, started
from tests.waiting import PATIENCE

FIRST = ROOT / "examples" / "01-first-gang"


@pytest.fixture
def synced(box: Box, engine: Engine) -> Box:
    """A cluster with the first example on it, settled."""
    answer = engine("sync", "-f", FIRST)
    assert answer.code == Exit.DONE, answer
    return box


def test_sync_settles_a_manifest_and_a_second_one_has_nothing_to_do(box: Box, engine: Engine) -> None:
    first = engine("sync", "-f", FIRST)
    before = box.revisions()
    second = engine("sync", "-f", FIRST)

    assert (first.code, first.last) == (Exit.DONE, "exit 0: done")
    assert len(box.names(POD)) == 3
    assert second.out == "Applied: nothing, everything is in sync.\nexit 0: done\n"
    assert box.revisions() == before


def test_what_diff_shows_is_what_sync_does(synced: Box, engine: Engine) -> None:
    synced.scale("first", 2)
    preview = engine("diff", "-o", "json", "--detailed-exitcode")
    done = engine("sync", "-o", "json")

    shown = {
        (one["verb"], one["object"]["kind"], one["object"]["name"]) for root in preview.document["roots"] for one in root["operations"]
    }
    made = {(one["verb"], one["object"]["kind"], one["object"]["name"]) for one in done.document["results"] if one["verb"] != "status"}
    assert preview.code == Exit.CHANGES
    assert {one for one in shown if one[0] != "status"} == made
    assert done.document["ending"] == "done"


def test_a_dry_run_shows_and_does_nothing(box: Box, engine: Engine) -> None:
    answer = engine("sync", "-f", FIRST, "--dry-run")

    assert (answer.code, box.names(PODCLIQUESET)) == (Exit.DONE, [])
    assert "Plan: 12 to create" in answer.out


def test_a_deleted_workload_leaves_nothing_behind(synced: Box, engine: Engine) -> None:
    synced.delete(PODCLIQUESET, "first")

    assert engine("sync").code == Exit.DONE
    assert synced.revisions() == {}


def test_status_shows_the_state_of_a_workload(synced: Box, engine: Engine) -> None:
    answer, document = engine("status", "first"), engine("status", "-o", "json").document
    missing = engine("status", "nobody")

    head, row = (re.split(r"\s{2,}", line) for line in answer.out.splitlines()[:2])
    assert dict(zip(head, row, strict=True)) | {"AGE": ""} == {
        "NAMESPACE": "default",
        "NAME": "first",
        "STATE": "settled",
        "REPLICAS": "1",
        "AVAILABLE": "1",
        "UPDATED": "1",
        "GANGS": "1/1",
        "PODS READY": "3/3",
        "AGE": "",
    }
    (entry,) = document["workloads"]
    assert (document["version"], entry["pods"]) == (2, {"total": 3, "scheduled": 3, "ready": 3, "completed": 0})
    assert (missing.code, missing.messages[0]) == (
        Exit.FAILED,
        "engine: no workload is called nobody in default; there are PodCliqueSet/default/first",
    )


def test_status_takes_the_kind_with_a_name_and_says_which_namespace_is_missing(synced: Box, engine: Engine) -> None:
    assert engine("status", "pcs/first").out.splitlines()[1].split()[:3] == ["default", "first", "settled"]
    nowhere, missing = engine("status", "-n", "nowhere"), engine("status", "first", "-n", "nowhere")
    assert (nowhere.code, nowhere.out.splitlines()[0]) == (Exit.DONE, "no workloads in nowhere")
    assert "note: nowhere: the namespace does not exist" in nowhere.messages
    assert missing.messages[-1] == "engine: no workload is called first in nowhere: the namespace does not exist"


def test_a_namespace_that_does_not_exist_is_said(box: Box, engine: Engine) -> None:
    for words in ("diff", "sync", "top", "top first"):
        assert "note: nowhere: the namespace does not exist" in engine(*words.split(), "-n", "nowhere").messages, words
        assert "does not exist" not in engine(*words.split(), "-n", "default").err, words


def test_manifests_on_standard_input_that_nothing_reads_are_said(box: Box, tmp_path: Path) -> None:
    def notes(*words: str | Path, **stdin: Any) -> list[str]:
        called = command("--kubeconfig", box.kubeconfig, *words)
        said = subprocess.run(called, env=environment(), capture_output=True, timeout=PATIENCE, check=True, **stdin)
        return [line for line in said.stderr.decode().splitlines() if "standard input" in line]

    manifest = (ROOT / "examples" / "01-first-gang" / "gang.yaml").read_bytes()

    said = ["note: standard input is not read: -f - takes manifests from it"]
    assert [notes("diff", input=manifest), notes("sync", input=manifest)] == [said, said]
    assert notes("diff", "-f", "-", input=manifest) == notes("diff", input=b"") == []
    for content, expected in ((manifest, said), (b"default\nother\n", [])):
        (tmp_path / "input").write_bytes(content)
        with (tmp_path / "input").open("rb") as file:
            assert (notes("diff", stdin=file), file.tell()) == (expected, 0)
    reader, writer = os.pipe()
    try:
        assert notes("diff", stdin=reader) == []  # It stays open, and empty: nothing waits for it.
    finally:
        os.close(reader)
        os.close(writer)


def test_status_does_not_say_that_a_workload_is_missing_if_workloads_cannot_be_listed(synced: Box, engine: Engine) -> None:
    synced.deny(verb="list", resource="podcliquesets")
    answer = engine("status", "first")

    assert answer.code == Exit.INCOMPLETE
    assert "PodCliqueSet objects could not be listed completely" in answer.err and "no workload is called" not in answer.err
    assert "no workloads" not in engine("status").out


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_a_refusal_is_shown_whole_in_the_result(box: Box, engine: Engine, options: tuple[str, ...]) -> None:
    message = f"admission webhook denied the request: {'for a long reason, ' * 40}remove grove.io/auto-mnnvl\x1b[2J"
    box.inject(InjectedFault("answer", "create", "services", times=10**6, code=403, reason="Forbidden", message=message))
    answer = engine("sync", "-f", FIRST, "--no-wait", *options)

    whole = [line for line in (answer.err if options else answer.out).splitlines() if "remove grove.io/auto-mnnvl\\x1b[2J" in line]
    assert answer.code != Exit.DONE and len(whole) == 1, answer
    assert all(len(line) < 250 for line in answer.messages if "denied the request" in line) or options


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("engine status ", {"first"}),
        ("engine why pcs/", {"pcs/first"}),
        ("engine why svc/fi", {"svc/first-0"}),
        ("engine delete x", set()),
        ("engine top f", {"first"}),
        ("engine why frob/", set()),
        ("engine -n nowhere status ", set()),
        ("engine status -n def", {"default"}),
        ("engine diff --namespace kube-sys", {"kube-system"}),
        ("engine -n kube-sys", {"kube-system"}),
        ("engine status -n nowh", set()),
    ],
)
def test_a_shell_gets_the_names_of_objects(
    synced: Box, engine: Engine, monkeypatch: pytest.MonkeyPatch, line: str, words: set[str]
) -> None:
    assert completions(engine, monkeypatch, line) == (words, "")


def test_a_shell_gets_nothing_where_namespaces_may_not_be_listed(synced: Box, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    synced.deny(verb="list", resource="namespaces")

    assert completions(engine, monkeypatch, "engine status -n def") == (set(), "")


def completions(engine: Engine, monkeypatch: pytest.MonkeyPatch, line: str) -> tuple[set[str], str]:
    """What a shell gets for a line, and what is on stderr."""
    monkeypatch.setenv("_ENGINE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    monkeypatch.setattr("enginectl.commands.completion.PATIENCE", PATIENCE)
    answer = engine()

    return set(answer.out.split()), answer.err


def test_status_shows_what_is_pending_and_since_when(full_box: Box, engine: Engine) -> None:
    assert engine("sync", "-f", FIRST, "--no-wait").code == Exit.DONE

    assert re.search(r"PodClique/default/first-0-leader: 0 of 1 pods ready, since \d+s", engine("status").out)


def test_without_waiting_what_is_left_is_listed_and_a_timeout_is_a_failure(full_box: Box, engine: Engine) -> None:
    hasty, patient = engine("sync", "-f", FIRST, "--no-wait"), engine("sync", "--timeout", "40s")

    assert hasty.code == Exit.DONE and "2 PodCliques: first-0-leader, first-0-worker  0 of {1..2} pods ready" in hasty.out
    assert patient.code == Exit.FAILED and "Not settled in time; this is left:" in patient.out


def without_assumptions(answer: CommandResult) -> list[str]:
    """The lines of a report but those of what its forecast assumes: a snapshot has no nodes."""
    return [line for line in answer.out.splitlines() if "This assumes that" not in line]


def test_a_preview_against_a_snapshot_equals_one_against_the_cluster_and_it_has_no_secret(
    synced: Box, engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "snapshot.yaml"
    synced.scale("first", 2)
    (token,) = [body["data"]["token"] for body in synced.all(SECRET) if body["metadata"]["name"] == "first-ic-sat"]

    taken, printed = engine("snapshot", "--out", file), engine("snapshot")

    assert (taken.code, taken.out) == (Exit.DONE, "")
    assert file.read_text() == printed.out and token not in printed.out
    assert without_assumptions(engine("diff", "--against", file)) == without_assumptions(engine("diff"))


def test_a_snapshot_cannot_replace_a_directory(synced: Box, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = engine("snapshot", "--out", ".")

    assert (answer.code, answer.err.splitlines()[-2].startswith("engine: --out .: ")) == (Exit.USAGE, True)


def test_more_unintended_deletes_than_allowed_are_denied_until_they_are_allowed(synced: Box, engine: Engine) -> None:
    (root,) = synced.all(PODCLIQUESET)
    for number in range(12):
        synced.create(SERVICE, obsolete(f"first-0-obsolete-{number}", root))

    preview, refused = engine("diff"), engine("sync")
    allowed = engine("sync", "--max-deletes", "12")

    assert (preview.code, refused.code, allowed.code) == (Exit.DENIED, Exit.DENIED, Exit.DONE)
    assert preview.last == refused.last == "exit 3: denied by policy or guard"
    assert "denied by delete-budget: 12 unintended deletes, 10 allowed" in preview.out
    assert "- delete 12 Services: first-0-obsolete-{0..11}   Orphaned, unintended: PodCliqueSet first does not specify it" in preview.out
    assert synced.names(SERVICE) == ["first-0"]


def test_if_no_root_is_listed_while_their_objects_exist_nothing_is_deleted(synced: Box, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    assert engine("snapshot", "--out", file).code == Exit.DONE
    head, *objects = file.read_text().split("---\n")
    file.write_text("---\n".join([head, *(body for body in objects if "\nkind: PodCliqueSet\n" not in body)]))

    answer = engine("diff", "--against", file)

    assert (answer.code, answer.out.splitlines()[0][:42]) == (Exit.DENIED, "denied by no-roots: no root was found, but")


def obsolete(name: str, root: dict[str, Any]) -> dict[str, Any]:
    """A Service that the root owns and does not desire."""
    owner = {"apiVersion": root["apiVersion"], "kind": root["kind"], "name": "first", "uid": root["metadata"]["uid"], "controller": True}
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "first"}
    metadata = {"name": name, "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None"}}


def test_a_kind_that_may_not_be_listed_is_not_deleted_and_does_not_stop_the_others(synced: Box, engine: Engine) -> None:
    synced.deny(verb="list", resource="services")
    synced.scale("first", 0)

    preview, done = engine("diff"), engine("sync", "--timeout", "30m")

    assert preview.code == done.code == Exit.INCOMPLETE
    assert "incomplete: Service objects could not be listed completely" in preview.out
    assert "is forbidden: User" in preview.out
    assert synced.names(SERVICE)[:1] == ["first-0"]


def test_an_expired_token_is_an_error_in_one_line(box: Box, engine: Engine) -> None:
    box.kubeconfig.write_text(box.kubeconfig.read_text().replace(box.cluster.token, "stale"))

    for words in (("diff",), ("sync",), ("status",), ("snapshot",)):
        answer = engine(*words)
        assert (answer.code, answer.out, len(answer.err.splitlines())) == (Exit.FAILED, "", 2)
        assert "credentials" in answer.err or "Unauthorized" in answer.err
        assert "stale" not in answer.err


def test_on_a_cluster_without_our_kinds_the_message_says_how_to_install_them(bare_box: Box, engine: Engine) -> None:
    remedy = "first `engine manifests crds | kubectl apply --server-side -f -`"
    asked = f"the cluster does not serve PodCliqueSet (grove.io/v1alpha1): {remedy}"
    any_of = f"the cluster does not serve PodCliqueSet (grove.io/v1alpha1), DynamoGraphDeployment (nvidia.com/v1alpha1): {remedy}"

    refused: tuple[tuple[tuple[str | Path, ...], str], ...] = ((("sync",), any_of), (("sync", "-f", FIRST), asked), (("run",), any_of))
    for words, line in refused:
        answer = engine(*words)
        assert (answer.code, answer.out) == (Exit.PREFLIGHT, "") and f"engine: {line}" in answer.messages
    preview, status = engine("diff", "-f", FIRST, "--detailed-exitcode"), engine("status")
    assert (preview.code, status.code) == (Exit.STUCK, Exit.DONE)
    assert "blocked" in preview.out and "the cluster does not serve PodCliqueSet of grove.io/v1alpha1" in preview.out
    assert (preview.errors, status.errors) == (f"note: {asked}\n", f"note: {any_of}\n")


def test_a_sync_can_write_a_log(box: Box, engine: Engine) -> None:
    answer = engine("sync", "-f", FIRST, "--log-format", "json")

    events = [json.loads(line) for line in answer.err.splitlines()]
    assert {"PodCliqueSet/default/first", "PodGang/default/first-0"} <= {event.get("object") for event in events}


def test_an_unreachable_server_is_an_error_in_one_line(box: Box, engine: Engine) -> None:
    box.kubeconfig.write_text(box.kubeconfig.read_text().replace(box.cluster.url, "https://127.0.0.1:9"))

    answer = engine("diff")

    assert (answer.code, len(answer.err.splitlines())) == (Exit.FAILED, 2)
    assert "https://127.0.0.1:9" in answer.err


def test_another_holder_of_the_lease_is_named(synced: Box, engine: Engine, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("leaderElection: {leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 500ms}\n")
    (lease,) = synced.all(LEASE)
    with started("run", "-A", "--config", config, KUBECONFIG=str(synced.kubeconfig), PATH="") as other:
        assert other.stderr
        while '"leading"' not in (line := other.stderr.readline()):
            assert line, "it ended before it led"
        answer = engine("sync", "--config", config)
        other.send_signal(signal.SIGTERM)
        other.communicate(timeout=PATIENCE)

    assert (answer.code, other.returncode) == (Exit.NOT_LEADER, Exit.TERMINATED)
    assert f"engine: the lease default/{lease['metadata']['name']} is held by" in answer.err


def test_without_leader_election_no_lease_is_requested_and_a_warning_is_written(box: Box, engine: Engine, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("leaderElection: {enabled: false}\n")

    synced = engine("sync", "-f", FIRST, "--config", config)
    with started("run", "--config", config, "--log-format", "json", KUBECONFIG=str(box.kubeconfig)) as process:
        assert process.stderr
        _, warning = json.loads(process.stderr.readline()), json.loads(process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    assert (synced.code, synced.messages[0]) == (Exit.DONE, f"warning: {DISABLED}")
    assert (warning["level"], warning["event"]) == ("warning", DISABLED)
    assert box.all(LEASE) == []


def test_run_keeps_the_cluster_as_desired_and_ends_in_order(box: Box, engine: Engine) -> None:
    assert engine("sync", "-f", FIRST).code == Exit.DONE
    box.scale("first", 2)
    with started("run", "--interval", "1s", "--log-format", "json", KUBECONFIG=str(box.kubeconfig)) as process:
        assert process.stderr
        events: list[dict[str, Any]] = []
        while not events or events[-1].get("object") != "PodCliqueSet/default/first":
            line = process.stderr.readline()
            assert line, events
            events.append(json.loads(line))
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=PATIENCE)

    assert (process.returncode, json.loads(rest.splitlines()[-1])["meaning"]) == (Exit.TERMINATED, "exit 143: terminated")
    assert len(box.names(POD)) == 6
    (lease,) = box.all(LEASE)
    assert lease["spec"]["holderIdentity"] == ""


def test_after_ctrl_c_a_sync_says_what_it_did_and_the_next_one_continues(box: Box, engine: Engine) -> None:
    box.inject(InjectedFault("slow", verb="create", resource="pods", seconds=20))  # One pod is late.
    with started("sync", "-f", FIRST, KUBECONFIG=str(box.kubeconfig)) as process:
        assert process.stderr
        while "create   Pod/" not in (line := process.stderr.readline()):
            assert line, "it ended too soon"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, err.splitlines()[-1]) == (Exit.INTERRUPTED, "exit 130: interrupted")
    assert "Interrupted: " in out and "Traceback" not in err
    assert "Plan: " not in out, "the last plan is out of date"
    assert engine("sync").code == Exit.DONE
    assert len(box.names(POD)) == 3


def test_without_an_option_the_namespace_is_that_of_the_manifests_or_of_the_context(synced: Box, engine: Engine, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_text((FIRST / "gang.yaml").read_text().replace("  name: first\n", "  name: other\n  namespace: there\n"))

    assert "first" in engine("status").out and "first" not in engine("status", "-n", "there").out
    preview = engine("diff", "-f", elsewhere)
    assert "there/other: " in preview.out and "default/first" not in preview.out
    everywhere = engine("diff", "-f", elsewhere, "-A", "--target", "*", "-o", "json").document
    assert {root["root"]["name"] for root in everywhere["roots"]} == {"first", "other"}
