"""`engine review`: as many answers as reviews, one a line, whatever comes in."""

import base64
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from resources.base.kinds import TOPOLOGY_BINDING
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, CommandResult, Engine
from tests.resources.admission.test_review import review
from tests.resources.manifests import clique, pcs

GOOD = review(uid="good")
BAD = review(uid="bad", object=pcs(clique("a", roleName=7)))


def answers(said: CommandResult) -> list[Any]:
    """The heart of every answer, in order."""
    return [json.loads(line)["response"] for line in said.out.splitlines()]


def verdicts(said: CommandResult) -> list[tuple[str, bool]]:
    """Who was answered, and whether they may."""
    return [(response["uid"], response["allowed"]) for response in answers(said)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the reviews go."""
    return tmp_path / "reviews.json"


def write(file: Path, *documents: Any) -> Path:
    """Reviews, one a line."""
    file.write_text("".join(f"{json.dumps(document) if not isinstance(document, str) else document}\n" for document in documents))
    return file


def test_each_review_has_its_answer_in_order_and_one_denial_sets_the_exit_code(engine: Engine, file: Path) -> None:
    said = engine("review", "-f", write(file, GOOD, BAD, GOOD))

    assert verdicts(said) == [("good", True), ("bad", False), ("good", True)]
    assert said.code == Exit.DENIED
    assert said.err.splitlines()[-1] == "exit 3: denied by policy or guard"


def test_all_allowed_is_done_and_nothing_is_said_beside_the_answers(engine: Engine, file: Path) -> None:
    said = engine("review", "-f", write(file, GOOD))

    patch = json.loads(base64.b64decode(answers(said)[0]["patch"]))
    assert {"op": "add", "path": "/spec/template/terminationDelay", "value": "4h0m0s"} in patch
    assert (said.code, said.err) == (Exit.DONE, "")


def test_a_denial_names_every_field(engine: Engine, file: Path) -> None:
    (response,) = answers(engine("review", "-f", write(file, review(object=pcs(clique("a", roleName=7, replicas="x"))))))

    fields = {cause["field"] for cause in response["status"]["details"]["causes"]}
    assert {"spec.template.cliques[0].spec.roleName", "spec.template.cliques[0].spec.replicas"} <= fields
    assert all(field in response["status"]["message"] for field in fields)


def test_standard_input_is_read_too(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(GOOD, indent=2).encode())))

    assert verdicts(engine("review", "-f", "-")) == [("good", True)]


def test_reviews_in_yaml_are_taken_as_other_commands_take_it(engine: Engine, file: Path) -> None:
    file.write_text(yaml.safe_dump_all([GOOD, BAD]))

    assert verdicts(engine("review", "-f", file)) == [("good", True), ("bad", False)]


def test_a_review_that_cannot_be_read_does_not_keep_the_others_from_their_answers(engine: Engine, file: Path) -> None:
    said = engine("review", "-f", write(file, GOOD, "[1]", '{"broken":', review(uid="odd", operation="PATCH"), GOOD))

    assert verdicts(said) == [("good", True), ("odd", False), ("good", True)]
    assert answers(said)[1]["status"]["message"].startswith("line 4: request.operation: must be one of CREATE")
    assert said.err.splitlines() == [
        f"engine: {file}:2: not an AdmissionReview with a request, but a list",
        f"engine: {file}:3: not JSON: Expecting value",
        f'engine: {file}:4: request.operation: must be one of CREATE, UPDATE, DELETE, CONNECT, got "PATCH"',
        "exit 1: failed",
    ]
    assert said.code == Exit.FAILED


def test_a_manifest_in_place_of_a_review_is_told_which_command_takes_it(engine: Engine) -> None:
    said = engine("review", "-f", ROOT / "examples" / "01-first-gang" / "gang.yaml")

    assert said.code == Exit.FAILED
    assert "not an AdmissionReview with a request, but an object; `engine diff -f FILE` judges manifests" in said.err


def test_what_a_name_holds_does_not_reach_the_terminal(engine: Engine, file: Path) -> None:
    said = engine("review", "-f", write(file, review(uid="\x1b[31m\x7f\u202e", name="\x1b]0;x\x07", object={"\x1b[2J": 1})))

    assert said.out.isascii()
    assert said.out.removesuffix("\n").isprintable()
    assert answers(said)[0]["uid"] == "\x1b[31m\x7f\u202e"


def test_people_may_read_it_as_text(engine: Engine, file: Path) -> None:
    said = engine("review", "-o", "text", "-f", write(file, GOOD, BAD))

    assert "CREATE PodCliqueSet/ml/d: allowed" in said.out
    assert '  add /spec/template/terminationDelay "4h0m0s"' in said.out
    assert "CREATE PodCliqueSet/ml/d: denied (Invalid)" in said.out
    assert "  spec.template.cliques[0].spec.roleName: " in said.out
    assert said.last == "exit 3: denied by policy or guard"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "review needs reviews: -f FILE, or -f - for standard input"),
        (("-f", "nowhere.json"), "nowhere.json: no such file or directory"),
        (("-f", "nowhere.json", "--against", "no-snapshot.yaml"), "--against no-snapshot.yaml: no such file"),
    ],
)
def test_a_usage_error_is_one_line(engine: Engine, words: tuple[str, ...], message: str) -> None:
    said = engine("review", *words)

    assert said.code == Exit.USAGE
    assert message in said.err
    assert said.err.splitlines()[-1] == "exit 64: usage error"


CONFIG = """\
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
topologyAwareScheduling: {enabled: true}
"""


def test_a_live_cluster_says_which_neighbours_there_are(box: Box, engine: Engine, file: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    constrained = pcs(topologyConstraint={"topologyName": "t", "pack": {"required": "rack"}})
    constrained["metadata"]["namespace"] = "default"
    write(file, review(namespace="default", object=constrained))

    def allowed(*words: str | Path) -> bool:
        ((_, verdict),) = verdicts(engine("review", "--config", config, "-f", file, *words))
        return verdict

    assert allowed()
    assert not allowed("--against", "live")
    box.create(TOPOLOGY_BINDING, binding())
    assert allowed("--against", "live")
    engine("snapshot", "--config", config, "--out", tmp_path / "cluster.yaml")
    assert allowed("--against", tmp_path / "cluster.yaml")


def binding() -> dict[str, Any]:
    """A topology of zones and racks."""
    levels = [{"domain": "zone", "key": "topology.kubernetes.io/zone"}, {"domain": "rack", "key": "example.com/rack"}]
    frame = {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", "metadata": {"name": "t"}}
    return {**frame, "spec": {"levels": levels}}


def test_a_managed_object_is_for_the_engine_and_for_those_who_are_exempt(
    engine: Engine, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, account = tmp_path / "config.yaml", tmp_path / "account"
    config.write_text(f"{CONFIG}authorizer: {{enabled: true, exemptServiceAccountUserNames: [system:kube-controller-manager]}}\n")
    account.mkdir()
    (account / "namespace").write_text("grove-system\n")
    monkeypatch.setattr("enginectl.wiring.configuration.SERVICE_ACCOUNT", account)
    monkeypatch.setenv("GROVE_OPERATOR_SERVICE_ACCOUNT_NAME", "grove-operator")
    users = ("ann", "system:serviceaccount:grove-system:grove-operator", "system:kube-controller-manager")

    said = engine("review", "--config", config, "--against", snapshot(tmp_path), "-f", write(file, *(deletion(user) for user in users)))

    assert verdicts(said) == [("ann", False), (users[1], True), (users[2], True)]
    assert answers(said)[0]["status"] | {"details": None} == {
        "metadata": {},
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": "admission denied, deletion of resource: ml/d-0-a is not allowed",
        "details": None,
    }
    assert verdicts(engine("review", "-f", file)) == [(user, True) for user in users]


def snapshot(folder: Path) -> Path:
    """A cluster in which the set is."""
    file = folder / "snapshot.yaml"
    body = pcs()
    file.write_text(yaml.safe_dump({**body, "metadata": {**body["metadata"], "uid": "7"}}))
    return file


def deletion(user: str) -> Any:
    """Somebody wants to delete a clique of the set."""
    metadata = {
        "name": "d-0-a",
        "namespace": "ml",
        "labels": {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "d"},
    }
    old = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "metadata": metadata}
    kind = {"group": "grove.io", "version": "v1alpha1", "kind": "PodClique"}
    return review(uid=user, operation="DELETE", kind=kind, name="d-0-a", object=None, oldObject=old, userInfo={"username": user})
