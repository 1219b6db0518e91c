"""Manifests that admission rejects: reported with file and line before anything is done, whatever they are compared with."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from grove_sandbox.api.webhooks import Webhooks
from grove_sandbox.registry import ACTORS
from providers.fabrics.nvidia.fabric import Nvidia
from providers.schedulers.kube import KubeScheduler
from resources.admission.managed_rules import Protection
from resources.base.kinds import PODCLIQUE, PODCLIQUESET, SERVICE
from resources.children.table import CHILDREN
from resources.ports.configuration import Configuration
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster

SET = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: {name}
spec:
  replicas: 1
  template:
    cliques:
      - name: a
        spec:
          roleName: {role}
          replicas: 1
          minAvailable: {least}
          podSpec:
            containers: [{{name: main, image: i, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]
"""
LEAST = "spec.template.cliques[0].spec.minAvailable: Invalid value: 2: minAvailable must not be greater than replicas"
IMMUTABLE = 'spec.template.cliques[0].spec.roleName: Invalid value: "q": field is immutable'


def write(folder: Path, name: str, *, role: str = "a", least: int = 1) -> Path:
    """A set in a file of its own."""
    file = folder / f"{name}.yaml"
    file.write_text(SET.format(name=name, role=role, least=least))
    return file


def test_of_a_rejected_set_nothing_is_rendered_and_the_others_are(engine: Engine, tmp_path: Path) -> None:
    good, bad = write(tmp_path, "good"), write(tmp_path, "bad", least=2)

    said = engine("render", "-f", good, "-f", bad)

    assert said.code == Exit.FAILED
    assert said.err == f"engine: {bad}:13: {LEAST}\n"
    assert {body["metadata"]["name"] for body in yaml.load_all(said.out, yaml.CSafeLoader) if body["kind"] == "PodClique"} == {"good-0-a"}


@pytest.mark.parametrize("against", ["empty", "snapshot"])
def test_without_a_cluster_a_new_set_is_judged_as_it_would_be_made(engine: Engine, tmp_path: Path, against: str) -> None:
    good, bad = write(tmp_path, "good"), write(tmp_path, "bad", least=2)
    (tmp_path / "snapshot").write_text("")

    said = engine("diff", "--against", "empty" if against == "empty" else tmp_path / "snapshot", "-f", good, "-f", bad)

    assert said.code == Exit.FAILED
    assert f"default/bad: no changes, INVALID\n  problem: {bad}:13: {LEAST}\n" in said.out
    assert "default/good: create\n" in said.out
    assert "bad-0-a" not in said.out


def test_every_fault_of_every_set_is_in_the_document_too(engine: Engine, tmp_path: Path) -> None:
    bad, worse = write(tmp_path, "bad", least=2), write(tmp_path, "worse", least=2, role="''")

    document = engine("diff", "--against", "empty", "-f", bad, "-f", worse, "-o", "json").document

    problems = {account["root"]["name"]: account["problems"] for account in document["roots"]}
    assert problems["bad"] == [f"{bad}:13: {LEAST}"]
    assert f"{worse}:13: {LEAST}" in problems["worse"]
    assert [account["operations"] for account in document["roots"]] == [[], []]


def test_a_set_that_is_there_is_held_against_what_it_was(box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", write(tmp_path, "x")).code == Exit.DONE
    engine("snapshot", "--out", tmp_path / "cluster.yaml")
    changed = write(tmp_path, "x", role="q")

    live = engine("diff", "-f", changed)
    taken = engine("diff", "-f", changed, "--against", tmp_path / "cluster.yaml")
    empty = engine("diff", "-f", changed, "--against", "empty")

    assert (live.code, taken.code, empty.code) == (Exit.FAILED, Exit.FAILED, Exit.DONE)
    assert f"  problem: {changed}:11: {IMMUTABLE}\n" in live.out
    assert live.out == taken.out
    assert "field is immutable" not in empty.out


def test_a_sync_of_several_files_does_nothing_where_one_is_rejected(box: Box, engine: Engine, tmp_path: Path) -> None:
    engine("sync", "-f", write(tmp_path, "x"))
    before = box.revisions()
    good, bad, changed = write(tmp_path, "good"), write(tmp_path, "bad", least=2), write(tmp_path, "x", role="q")

    said = engine("sync", "-f", good, "-f", bad, "-f", changed)

    assert said.code == Exit.FAILED
    assert said.err.splitlines()[-3:] == [f"engine: {bad}:13: {LEAST}", f"engine: {changed}:11: {IMMUTABLE}", "exit 1: failed"]
    assert box.revisions() == before


def test_while_a_set_is_being_deleted_its_manifest_is_judged_as_that_of_a_new_one(box: Box, engine: Engine, tmp_path: Path) -> None:
    engine("sync", "-f", write(tmp_path, "x"))
    box.delete(PODCLIQUESET, "x")
    before = box.revisions()

    bad = write(tmp_path, "x", least=2)
    seen, said = engine("diff", "-f", bad), engine("sync", "-f", bad)

    assert (seen.code, said.code) == (Exit.FAILED, Exit.FAILED)
    assert f"  problem: {bad}:13: {LEAST}\n" in seen.out
    assert box.revisions() == before
    assert engine("diff", "-f", write(tmp_path, "x", role="q")).code == Exit.DONE


def test_what_may_be_changed_is_changed(box: Box, engine: Engine, tmp_path: Path) -> None:
    engine("sync", "-f", write(tmp_path, "x"))
    file = write(tmp_path, "x")
    file.write_text(file.read_text().replace("replicas: 1\n  template", "replicas: 2\n  template"))

    assert engine("sync", "-f", file).code == Exit.DONE
    assert box.names(PODCLIQUE) == ["x-0-a", "x-1-a"]


def test_what_is_allowed_and_hardly_meant_is_told_with_its_file(engine: Engine, tmp_path: Path) -> None:
    file = write(tmp_path, "x")
    file.write_text(file.read_text().replace("podSpec:", "podSpec:\n            restartPolicy: Never"))

    said = engine("diff", "--against", "empty", "-f", file)

    assert said.code == Exit.DONE
    assert said.err.startswith(f"warning: {file}:")
    assert "restartPolicy" in said.err


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration in which sets with accelerators are enrolled, and managed objects protected."""
    file = tmp_path / "config.yaml"
    head = "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\n"
    file.write_text(f"{head}network: {{autoMNNVLEnabled: true}}\nauthorizer: {{enabled: true}}\n")
    return file


def test_the_preview_of_a_new_set_shows_what_admission_gives_it(engine: Engine, tmp_path: Path, config: Path) -> None:
    document = engine("diff", "--config", config, "--against", "empty", "-f", write(tmp_path, "x"), "-o", "json").document

    (made,) = (step["manifest"] for step in document["roots"][0]["operations"] if step["object"]["kind"] == "PodCliqueSet")
    assert made["metadata"]["annotations"] == {"grove.io/auto-mnnvl": "enabled"}


@pytest.fixture
def guarded_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster with our webhooks, all of them."""
    setup = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler", fabrics=(Nvidia(),))
    with cluster(tmp_path, ACTORS, webhooks=Webhooks(setup, Protection(CHILDREN.protected(setup)))) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


def test_behind_its_own_webhooks_the_engine_brings_up_scales_and_takes_down(guarded_box: Box, engine: Engine, tmp_path: Path) -> None:
    ours = ("--context", "operator")
    up = engine("sync", "-f", write(tmp_path, "x"), *ours)
    guarded_box.scale("x", 2)
    scaled = engine("sync", *ours)
    many = guarded_box.names(PODCLIQUE)
    guarded_box.delete(PODCLIQUESET, "x")
    down = engine("sync", *ours)

    assert (up.code, scaled.code, down.code) == (Exit.DONE, Exit.DONE, Exit.DONE)
    assert many == ["x-0-a", "x-1-a"]
    assert guarded_box.names(PODCLIQUE) == guarded_box.names(SERVICE) == guarded_box.names(PODCLIQUESET) == []


def test_who_is_not_the_engine_is_refused_by_its_webhooks(guarded_box: Box, engine: Engine, tmp_path: Path) -> None:
    said = engine("sync", "-f", write(tmp_path, "x"), "--timeout", "30m")

    assert said.code == Exit.STUCK
    assert "admission denied, creation/updation of resource: default/x-0-a is not allowed" in said.out + said.err


BINDING = """\
---
apiVersion: grove.io/v1alpha1
kind: ClusterTopologyBinding
metadata:
  name: t
spec:
  levels:
    - {domain: rack, key: example.com/rack}
"""


def test_a_set_may_refer_to_a_topology_that_lies_beside_it(box: Box, engine: Engine, tmp_path: Path) -> None:
    config, file = tmp_path / "config.yaml", write(tmp_path, "x")
    head = "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\n"
    config.write_text(f"{head}topologyAwareScheduling: {{enabled: true}}\n")
    constrained = file.read_text().replace(
        "  template:\n", "  template:\n    topologyConstraint: {topologyName: t, pack: {required: rack}}\n"
    )
    file.write_text(constrained)
    alone = engine("diff", "--config", config, "-f", file)

    file.write_text(constrained + BINDING)
    with_foreign = engine("diff", "--config", config, "-f", file)

    assert (alone.code, with_foreign.code) == (Exit.FAILED, Exit.DONE)
    assert (
        f'  problem: {file}:8: spec.template.topologyConstraint.topologyName: Invalid value: "t": ClusterTopologyBinding "t"' in alone.out
    )


RULES = ("cliques[0].spec.minAvailable: Invalid value: 9", "cliques[1].name: Duplicate value", "cliques[0].spec.startsAfter: Invalid value")
SHAPES = (
    "spec.replcas: unknown field",
    "ports[0].containerPort",
    "containers[0].imgae: unknown field",
    "containers[0].image: Required value",
)
"""What is wrong with `BOTH`: by the rules; and with its shape and its pods."""
BOTH = """
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: NAME}
spec:
  replcas: 1
  template:
    cliqueStartupType: CliqueStartupTypeExplicit
    cliques:
    - name: a
      spec:
        roleName: a
        minAvailable: 9
        startsAfter: [other]
        podSpec: {containers: [{name: main, imgae: nginx}]}
    - name: a
      spec:
        roleName: b
        podSpec: {containers: [{name: main, image: nginx, ports: [{containerPort: "80"}]}]}
"""


@pytest.mark.parametrize("words", [("diff", "--against", "empty"), ("render",), ("sync", "-y")], ids=lambda words: words[0])
def test_faults_of_all_layers_and_files_are_told_at_once(engine: Engine, box: Box, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "both.yaml").write_text(BOTH.replace("NAME", "both"))
    only_rules = BOTH.replace("NAME", "rules").replace("  replcas: 1\n", "").replace("imgae", "image").replace('"80"', "80")
    (tmp_path / "rules.yaml").write_text(only_rules)

    said = engine(*words, "-f", tmp_path)

    assert said.code == 1
    for file, faults in (("both", (*SHAPES, *RULES)), ("rules", RULES)):
        lines = [line for line in said.err.splitlines() if f"{file}.yaml:" in line]
        assert len(lines) == len(faults)
        assert all(any(fault in line for line in lines) for fault in faults)
        assert lines == sorted(lines, key=lambda line: int(line.split(".yaml:")[1].split(":")[0]))


def test_with_a_cluster_a_rule_is_not_broken_by_what_an_update_would_keep(engine: Engine, box: Box, tmp_path: Path) -> None:
    """`minAvailable` is 1 in the cluster: left out, it stays so, and the autoscaler may go down to 1."""
    scaled = BOTH.replace("NAME", "kept").replace(
        "        minAvailable: 9\n", "        replicas: 3\n        autoScalingConfig: {SCALING}\n"
    )
    (tmp_path / "kept.yaml").write_text(scaled.replace("SCALING", "minReplicas: 1, maxReplicas: 4"))

    offline = engine("diff", "--against", "empty", "-f", tmp_path).err

    assert "minReplicas" in offline
    assert "minReplicas" not in engine("diff", "-f", tmp_path).err


def test_the_sets_of_a_namespace_are_limited_together_where_a_cluster_is_asked(box: Box, engine: Engine, tmp_path: Path) -> None:
    config = tmp_path / "operator.yaml"
    config.write_text("apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\nlimits: {namespace: {pods: 1}}\n")
    first, second = write(tmp_path, "first"), write(tmp_path, "second")
    engine("sync", "-f", first, "--config", config, "--no-wait")

    shown, synced, same = (
        engine(*words, "--config", config)
        for words in (("diff", "-f", second), ("sync", "-f", second, "--no-wait"), ("sync", "-f", first, "--no-wait"))
    )

    together = "must not have more than 1 pods together (limits.namespace.pods)"
    assert [together in said.out + said.err for said in (shown, synced, same)] == [True, True, False]
    assert box.names(PODCLIQUESET) == ["first"]
