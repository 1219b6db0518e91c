"""What commands do where graphs cannot be listed, because some are stored in a version that nothing converts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.http.faults import InjectedFault
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import CommandResult, Engine
from tests.stories.graphs import graph, service

MESSAGE = (
    "failed to read one or more dynamographdeployments.nvidia.com from the storage: StorageError: corrupt object, Code: 7, Key: /new: "
    'conversion webhook for nvidia.com/v1beta1, Kind=DynamoGraphDeployment failed: Post "https://a.b.svc/convert": service "a" not found'
)
WRONG = 'conversion webhook of DynamoGraphDeployment: Post "https://a.b.svc/convert": service "a" not found'
MENDED = "start what answers it, or let engine run convert (engine manifests crds --converter"
KEPT = (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG, kinds.POD, kinds.SERVICE)


def web(replicas: int = 1) -> dict[str, Any]:
    """A set that is of no graph."""
    return podcliqueset("web", clique("worker", 2), replicas=replicas)


def objects(box: Box, root: str = "") -> Mapping[str, str]:
    """Kind and name of the objects of sets, or of one -> their uids."""
    found = ((kind.name, each["metadata"]) for kind in KEPT for each in box.all(kind))
    return {f"{kind} {meta['name']}": meta["uid"] for kind, meta in found if meta["name"].startswith(root)}


def said(answer: CommandResult) -> str:
    return answer.out + answer.err


@pytest.fixture
def unlisted(box: Box, engine: Engine, tmp_path: Path) -> Box:
    """A cluster with a graph and a set that run, in which graphs cannot be listed any more."""
    for body in (graph(decode=service(nodes=2), other=service()), web()):
        file = tmp_path / "first.json"
        file.write_text(json.dumps(body))
        assert engine("sync", "-f", file).code == Exit.DONE
    box.inject(InjectedFault("answer", verb="list", resource="dynamographdeployments", times=100_000, code=500, message=MESSAGE))
    return box


def test_nothing_is_changed_and_every_command_says_once_what_is_wrong_and_what_ends_it(unlisted: Box, engine: Engine) -> None:
    before, revisions = objects(unlisted), unlisted.revisions()

    answers = {words: engine(*words) for words in (("diff",), ("sync",), ("status",), ("why", "dgd/chat"))}

    for words, answer in answers.items():
        assert (answer.code, said(answer).count(WRONG), said(answer).count(MENDED)) == (Exit.INCOMPLETE, 1, 1), (words, answer)
    assert all(f"PodCliqueSet/default/{name}" in said(engine("why", f"pcs/{name}")) for name in ("chat", "web"))
    assert "it is not known what is desired: DynamoGraphDeployment objects cannot be listed" in answers["why", "dgd/chat"].out
    assert [line.split()[1] for line in answers[("status",)].out.splitlines() if line.startswith("default")] == ["chat", "web"]
    assert (objects(unlisted), unlisted.revisions()) == (before, revisions)


def test_sets_go_on_and_those_of_graphs_are_kept_by_what_they_say(unlisted: Box, engine: Engine, tmp_path: Path) -> None:
    before = objects(unlisted, "chat")
    file = tmp_path / "web.json"
    file.write_text(json.dumps(web(2)))

    assert engine("sync", "-f", file).code == Exit.INCOMPLETE
    assert len([name for name in objects(unlisted, "web-1") if name.startswith("Pod ")]) == 2
    lost = next(name for name in unlisted.names(kinds.POD) if name.startswith("chat-0-other"))
    unlisted.portal.call(lambda: unlisted.cluster.client("user").delete(kinds.POD, "default", lost, grace=0))
    assert engine("sync").code == Exit.INCOMPLETE

    after = objects(unlisted, "chat")
    assert len(after) == len(before) and before.items() - after.items() == {(f"Pod {lost}", before[f"Pod {lost}"])}


def test_a_graph_is_neither_deleted_nor_changed_and_a_set_is_deleted(unlisted: Box, engine: Engine, tmp_path: Path) -> None:
    before = objects(unlisted, "chat")
    file = tmp_path / "chat.json"
    edited = graph(decode=service(nodes=3), other=service(script="python3 -m dynamo.vllm --model n"))
    file.write_text(json.dumps(edited))

    deleted, of_graph = engine("delete", "dgd/chat", "--yes"), engine("delete", "pcs/chat", "--yes")
    applied = engine("sync", "-f", file, "--allow-replace", "--timeout", "10s")
    unclear, gone = engine("delete", "web", "--yes"), engine("delete", "pcs/web", "--yes")

    assert (deleted.code, MENDED in deleted.err) == (Exit.FAILED, True)
    assert (unclear.code, "name the kind as well, e.g. pcs/web" in unclear.err) == (Exit.FAILED, True)
    assert (of_graph.code, "belongs to DynamoGraphDeployment chat" in of_graph.err) == (Exit.DENIED, True)
    assert applied.code not in (Exit.DONE, Exit.CHANGES) and MENDED in said(applied), applied
    assert gone.code in (Exit.DONE, Exit.INCOMPLETE), gone
    assert (objects(unlisted, "chat"), objects(unlisted, "web")) == (before, {})
