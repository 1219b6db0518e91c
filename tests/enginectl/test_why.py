"""`engine why`, `engine status` and notes of `engine diff` about domains: on a cluster with a driver, and without."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.registry import ACTORS
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds
from resources.schema.crds import crds
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, CommandResult, Engine
from tests.enginectl.conftest import cluster

FIRST = ROOT / "examples" / "01-first-gang"
SET = """
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {{name: {name}, namespace: default, annotations: {{grove.io/auto-mnnvl: {mode}}}}}
spec:
  replicas: {replicas}
  template:
    cliques:
    - name: worker
      {extra}
      spec:
        roleName: worker
        replicas: {pods}
        podSpec:
          containers: [{{name: w, image: "x:1", resources: {{limits: {{nvidia.com/gpu: "4"}}}}}}]
"""
CONFIG = "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\nnetwork: {autoMNNVLEnabled: true}\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with multi-node NVLink."""
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def lame_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster whose driver does not run."""
    with cluster(tmp_path, [actor for actor in ACTORS if actor != "driver"]) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


@pytest.fixture
def plain_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster with our kinds, and without the driver's."""
    with cluster(tmp_path, [actor for actor in ACTORS if actor != "driver"], definitions=crds()) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


def written(folder: Path, name: str = "demo", *, replicas: int = 1, pods: int = 1, domain: str = "") -> Path:
    """A set in domains of its own, or in one with a name."""
    extra = f"annotations: {{nvidia.com/computedomain: {domain}}}" if domain else ""
    file = folder / f"{name}.yaml"
    file.write_text(SET.format(name=name, replicas=replicas, pods=pods, extra=extra, mode="disabled" if domain else "enabled"))
    return file


def domains(answer: CommandResult) -> dict[str, dict[str, Any]]:
    """The domains of a status, by name."""
    return {one["object"]["name"]: one for workload in answer.document["workloads"] for one in workload["domains"]}


def test_a_joined_domain_is_shown_with_its_nodes_and_pods(box: Box, engine: Engine, config: Path, tmp_path: Path) -> None:
    done = engine("sync", "-f", written(tmp_path, pods=2), "--config", config, "--timeout", "30m")
    assert done.code == Exit.DONE, done
    box.wait_for(COMPUTE_DOMAIN, both_ready)
    text, found = engine("status"), domains(engine("status", "-o", "json"))
    why = engine("why", "computedomain/demo-0")

    assert "  domain demo-0: joined, 2 of 2 nodes joined, pods: 2 of demo-0-worker" in text.out.splitlines()
    one = found["demo-0"]
    assert (one["state"], one["madeBy"], one["replica"], one["pods"]["byClique"]) == ("joined", "engine", 0, {"demo-0-worker": 2})
    assert {node["ready"] for node in one["nodes"]["joined"]} == {True}
    assert why.code == Exit.DONE and "because" not in why.out and "  in sync" in why.out.splitlines()


def test_unschedulable_pods_are_explained_by_the_domains_that_use_the_channels(
    box: Box, engine: Engine, config: Path, tmp_path: Path
) -> None:
    assert engine("sync", "-f", written(tmp_path, "first", pods=3), "--config", config, "--timeout", "30m").code == Exit.DONE
    assert engine("sync", "-f", written(tmp_path, "second"), "--config", config, "--no-wait").code == Exit.DONE
    box.wait_for(kinds.POD, unschedulable, "second-0-worker")
    (pod,) = [name for name in box.names(kinds.POD) if name.startswith("second-")]

    for what in ("ComputeDomain/second-0", f"po/{pod}"):
        answer = engine("why", what)
        assert answer.code == Exit.DONE, answer
        assert f"pod {pod}: Pending, cannot allocate all claims" in answer.out
        assert "of ComputeDomain default/first-0" in answer.out
        assert "do: a node is in one ComputeDomain at a time: the pod needs another node" in answer.out
    assert "domain second-0: joining" in engine("status", "second").out
    # The preview notes it before it happens.
    note = "note: its pods in ComputeDomains need 1 node, one for each pod: 0 of 3 are available"
    assert note in engine("diff", "--config", config).out


def both_ready(body: dict[str, Any]) -> bool:
    """Whether two nodes have joined a domain."""
    return [node["status"] for node in (body.get("status") or {}).get("nodes") or ()] == ["Ready", "Ready"]


def unschedulable(body: dict[str, Any]) -> bool:
    """Whether the scheduler has given up on a pod."""
    return any("cannot allocate all claims" in (one.get("message") or "") for one in (body.get("status") or {}).get("conditions") or ())


def test_a_domain_waits_for_a_driver_that_does_not_run(lame_box: Box, engine: Engine, config: Path, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path), "--config", config, "--no-wait").code == Exit.DONE
    text, why = engine("status"), engine("why", "computedomains/demo-0")

    message = "the driver has not created ResourceClaimTemplate demo-0 of ComputeDomain demo-0 yet"
    assert f"  domain demo-0: pending, {message}" in text.out.splitlines()
    assert f"  pending: {message}" in why.out.splitlines()

    lame_box.delete(COMPUTE_DOMAIN, "demo-0")
    gone = engine("why", "computedomain/demo-0", "-o", "json").document
    assert gone["finalizers"] == ["grove.io/computedomain-finalizer"]
    assert [one["cause"] for one in gone["diagnoses"]] == ["nothing uses the domain any more: the engine has to release it"]
    assert domains(engine("status", "-o", "json"))["demo-0"]["state"] == "terminating"


def test_a_shared_domain_names_the_others(box: Box, engine: Engine, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert engine("sync", "-f", written(tmp_path, name, domain="rack"), "--timeout", "30m").code == Exit.DONE
    found = engine("status", "one", "-o", "json")
    why = engine("why", "computedomain/rack")

    assert (domains(found)["rack"]["shared"], domains(found)["rack"]["others"]) == (True, ["two"])
    assert "desired by PodCliqueSet/default/one: pods of one request it by name" in why.out
    assert "desired by PodCliqueSet/default/two: pods of two request it by name" in why.out


def test_a_domain_cannot_be_created_if_its_kind_is_not_served(plain_box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, domain="rack"), "--no-wait").code == Exit.STUCK
    why = engine("why", "computedomain/rack")

    assert "does not exist" in why.out and "the cluster does not serve ComputeDomain of resource.nvidia.com/v1beta1" in why.out
    assert "domain rack: missing" in engine("status").out


@pytest.mark.parametrize("word", ["pclq", "PCLQ", "podclique", "PodCliques", "podcliques.grove.io"])
def test_kinds_have_the_names_that_kubectl_accepts(synced: Box, engine: Engine, word: str) -> None:
    answer = engine("why", f"{word}/first-0-worker")

    assert (answer.code, answer.out.splitlines()[0]) == (Exit.DONE, "PodClique/default/first-0-worker")
    assert "  desired by PodCliqueSet/default/first (replica 0): clique worker of replica 0" in answer.out.splitlines()
    assert "  in sync" in answer.out.splitlines()


@pytest.fixture
def synced(box: Box, engine: Engine) -> Box:
    """A cluster with the first example on it, settled."""
    assert engine("sync", "-f", FIRST).code == Exit.DONE
    return box


def test_what_is_due_is_shown_with_its_reason_and_fields(synced: Box, engine: Engine) -> None:
    synced.change(kinds.SERVICE, "first-0", {"metadata": {"labels": {"app.kubernetes.io/component": "mine"}}})
    answer = engine("why", "svc/first-0")
    synced.scale("first", 2)
    unborn = engine("why", "pclq/first-1-worker", "-o", "json").document

    assert "  due: patch, Drifted: headless Service of replica 0" in answer.out.splitlines()
    assert "app.kubernetes.io/component" in answer.out and "mine" in answer.out
    assert (unborn["version"], unborn["exists"], unborn["operations"][0]["verb"]) == (2, False, "create")
    assert unborn["desiredBy"][0]["root"]["name"] == "first"


def test_fields_are_traced_to_the_set_they_come_from(synced: Box, engine: Engine) -> None:
    verbose, document = engine("why", "pclq/first-0-worker", "-v"), engine("why", "pclq/first-0-worker", "-o", "json").document
    fields = {field["path"]: field["from"] for field in document["fields"]}

    assert fields["spec.replicas"] == ["spec.template.cliques[1].spec.replicas"]
    assert "  spec.replicas comes from spec.template.cliques[1].spec.replicas" in verbose.out.splitlines()
    assert "comes from" not in engine("why", "pclq/first-0-worker").out


def test_an_object_that_no_set_desires_is_called_so(synced: Box, engine: Engine) -> None:
    synced.create(kinds.SERVICE, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "mine"}, "spec": {"clusterIP": "None"}})
    (root,) = synced.all(kinds.PODCLIQUESET)
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "first", "uid": root["metadata"]["uid"], "controller": True}
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "first"}
    obsolete = {"name": "first-0-obsolete", "labels": labels, "ownerReferences": [owner]}
    synced.create(kinds.SERVICE, {"apiVersion": "v1", "kind": "Service", "metadata": obsolete, "spec": {"clusterIP": "None"}})

    unmanaged, unused = engine("why", "service/mine"), engine("why", "service/first-0-obsolete")
    assert (unmanaged.code, "not managed: no workload owns or desires it" in unmanaged.out) == (Exit.DONE, True)
    assert (unused.code, "obsolete: PodCliqueSet/default/first owns it and no longer desires it" in unused.out) == (Exit.DONE, True)
    assert "due: delete" in unused.out


def test_an_object_is_named_as_with_kubectl_or_by_its_name_alone(synced: Box, engine: Engine) -> None:
    for words in (["pcs/first"], ["pcs", "first"], ["first"]):
        answer = engine("why", *words)
        assert (answer.code, answer.out.splitlines()[0]) == (Exit.DONE, "PodCliqueSet/default/first"), words
    answer = engine("why", "first-0")
    assert (answer.code, answer.messages[0].partition(": name the kind")[1]) == (Exit.USAGE, ": name the kind"), answer
    missing = engine("why", "frist")
    assert (missing.code, missing.messages[0]) == (
        Exit.FAILED,
        "engine: nothing is called frist in default; there are PodCliqueSet/default/first",
    )
    (pod,) = [name for name in synced.names(kinds.POD) if name.startswith("first-0-")][:1]
    assert engine("why", pod).out.splitlines()[0] == f"Pod/default/{pod}"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["pod/nobody"], Exit.FAILED, "engine: Pod/default/nobody does not exist, and no workload desires it"),
        (
            ["pcs/nobody"],
            Exit.FAILED,
            "engine: PodCliqueSet/default/nobody does not exist, and no workload desires it; there are no workloads",
        ),
        (["frob/x"], Exit.USAGE, "engine: frob: the cluster serves no such kind"),
        (["pod"], Exit.USAGE, "engine: pod: expected KIND/NAME, e.g. pod/x or pclq/x"),
        (["nobody"], Exit.FAILED, "engine: nothing is called nobody in default; there are no workloads"),
        (["nobody", "-n", "nowhere"], Exit.FAILED, "engine: nothing is called nobody in nowhere: the namespace does not exist"),
        (["pod/a", "b"], Exit.USAGE, "engine: pod/a b: expected KIND/NAME"),
        (["pod/a/b"], Exit.USAGE, "engine: pod/a/b: expected KIND/NAME"),
        (["pod/x", "-A"], Exit.USAGE, "engine: why explains one object: name its namespace with -n"),
        (["pod/.."], Exit.FAILED, "engine: Pod/default/.. does not exist, and no workload desires it"),
        (["pod/\x1b[31mred"], Exit.FAILED, "engine: Pod/default/\\x1b[31mred does not exist"),
    ],
)
def test_what_cannot_be_explained_is_an_error_in_one_line(box: Box, engine: Engine, words: list[str], code: Exit, message: str) -> None:
    answer = engine("why", *words)

    assert answer.code == code and any(line.startswith(message) for line in answer.err.splitlines()), answer
    assert "\x1b" not in answer.out + answer.err


def test_kinds_that_may_not_be_listed_are_named_and_the_rest_is_explained(box: Box, engine: Engine, config: Path, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path), "--config", config, "--timeout", "30m").code == Exit.DONE
    for plural in ("events", "nodes", "daemonsets", "resourceslices"):
        box.deny(verb="list", resource=plural)
    answer = engine("why", "computedomain/demo-0")

    assert answer.code == Exit.INCOMPLETE and "desired by PodCliqueSet/default/demo (replica 0)" in answer.out
    lines = [line for line in answer.err.splitlines() if " objects could not be listed completely: " in line]
    for kind in ("Event", "Node", "DaemonSet", "ResourceSlice"):
        assert sum(kind in line.partition(" objects could")[0] for line in lines) == 1
    # Without the inventory the capacity is unknown, and there is no note about it.
    assert "are available" not in engine("diff", "--config", config).out


def test_domains_that_may_not_be_listed_are_not_called_missing(box: Box, engine: Engine, config: Path, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path), "--config", config, "--timeout", "30m").code == Exit.DONE
    box.deny(verb="list", resource="computedomains")
    answer = engine("status")

    assert (answer.code, "  domain demo-0: unknown, " in answer.out) == (Exit.INCOMPLETE, True)


def test_a_preview_without_a_cluster_notes_what_no_cluster_can_do(engine: Engine, tmp_path: Path, config: Path) -> None:
    file = written(tmp_path, pods=2)
    quiet = engine("diff", "-f", file, "--against", "empty", "--config", config)
    pinned = file.read_text().replace("podSpec:", "podSpec:\n          nodeSelector: {kubernetes.io/hostname: n7}")
    file.write_text(pinned)
    noted = engine("diff", "-f", file, "--against", "empty", "--config", config)

    assert "ComputeDomains need" not in quiet.out and "a node takes one pod" not in quiet.out
    assert "note: 2 pods of clique worker must run on node n7, and a node takes one pod in a ComputeDomain" in noted.out


def test_a_kind_that_two_groups_have_is_that_of_the_object_that_exists(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster(tmp_path, [], addons=("volcano", "kai")) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        identity = {"apiVersion": kinds.VOLCANO_POD_GROUP.api_version, "kind": "PodGroup", "metadata": {"name": "gang"}}
        box.create(kinds.VOLCANO_POD_GROUP, {**identity, "spec": {"minMember": 1}})
        answers = [
            engine("why", f"{word}/gang") for word in ("podgroup", "podgroup.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh")
        ]
        other = engine("why", "podgroup.scheduling.run.ai/gang")

    assert [answer.code for answer in answers] == [Exit.DONE] * 3
    assert "does not exist, and no workload desires it" in other.err
