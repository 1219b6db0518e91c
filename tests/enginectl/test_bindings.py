"""Topology bindings on the command line: in files, in status, in snapshots, and without rights on them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.registry import ACTORS
from resources.base.kinds import PODCLIQUESET, PODGANG, TOPOLOGY_BINDING
from resources.schema.crds import crds
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.enginectl.conftest import cluster

FIRST = ROOT / "examples" / "01-first-gang"
HALL = """\
apiVersion: grove.io/v1alpha1
kind: ClusterTopologyBinding
metadata:
  name: hall
spec:
  levels:
    - {domain: zone, key: topology.kubernetes.io/zone}
    - {domain: rack, key: example.com/rack}
"""


@pytest.fixture
def hall(tmp_path: Path) -> Path:
    """A file with a binding."""
    file = tmp_path / "hall.yaml"
    file.write_text(HALL)
    return file


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """A configuration under which constraints are acted on."""
    file = tmp_path / "config.yaml"
    file.write_text("topologyAwareScheduling: {enabled: true}\n")
    return file


@pytest.fixture
def older_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster whose kinds of ours are those of before there were bindings."""
    known = [one for one in crds() if one["spec"]["names"]["kind"] != TOPOLOGY_BINDING.name]
    with cluster(tmp_path, ACTORS, definitions=known) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


def test_a_binding_in_a_file_is_created_then_changed_and_then_in_sync_whatever_the_namespace(box: Box, engine: Engine, hall: Path) -> None:
    preview, made = engine("diff", "-f", hall, "--detailed-exitcode"), engine("sync", "-f", hall, "-n", "lab")
    assert (preview.code, made.code) == (Exit.CHANGES, Exit.DONE), (preview, made)
    assert "ClusterTopologyBinding/hall" in preview.out
    (found,) = box.all(TOPOLOGY_BINDING)
    assert (found["status"], found["metadata"].get("finalizers")) == ({"observedGeneration": 1}, None)

    assert engine("sync", "-f", hall).out.splitlines()[0] == "Applied: nothing, everything is in sync."

    hall.write_text(HALL.replace("  name: hall\n", "  name: hall\n  namespace: ignored\n").replace("example.com/rack", "example.com/row"))
    edit = engine("diff", "-f", hall, "-o", "json")
    assert [[one["verb"] for one in root["operations"]] for root in edit.document["roots"]] == [["patch"]]
    assert engine("sync", "-f", hall).code == Exit.DONE
    (found,) = box.all(TOPOLOGY_BINDING)
    assert found["spec"]["levels"][1]["key"] == "example.com/row"
    assert found["status"]["observedGeneration"] == 2


def test_a_file_with_a_binding_and_a_workload_means_the_namespace_of_the_workload(
    box: Box, engine: Engine, hall: Path, tmp_path: Path
) -> None:
    assert engine("sync", "-f", FIRST).code == Exit.DONE
    there = (FIRST / "gang.yaml").read_text().replace("  name: first\n", "  name: first\n  namespace: there\n")
    hall.write_text(f"{HALL}---\n{there}")

    shown = engine("diff", "-f", hall, "-o", "json").document["roots"]

    assert sorted((root["root"]["kind"], root["root"]["namespace"]) for root in shown) == [
        ("ClusterTopologyBinding", ""),
        ("PodCliqueSet", "there"),
    ]


def test_a_workload_may_refer_to_a_binding_that_lies_beside_it(box: Box, engine: Engine, hall: Path, topology: Path) -> None:
    constraint = "  template:\n    topologyConstraint: {topologyName: hall, pack: {required: rack}}\n"
    first = (FIRST / "gang.yaml").read_text().replace("  template:\n", constraint)
    alone = hall.with_name("alone.yaml")
    alone.write_text(first)
    hall.write_text(f"{first}---\n{HALL}")
    required = {"packConstraint": {"required": "example.com/rack"}}

    rendered = engine("render", "-f", hall, "--config", topology, "-o", "json")
    (gang,) = [body for body in rendered.document["objects"] if body["kind"] == "PodGang"]
    assert gang["spec"]["topologyConstraint"] == required
    assert engine("render", "-f", alone, "--config", topology).code == Exit.DONE

    missing, shown = engine("diff", "-f", alone, "--config", topology), engine("diff", "-f", hall, "--config", topology)
    assert (missing.code, shown.code) == (Exit.FAILED, Exit.DONE), shown
    assert 'ClusterTopologyBinding "hall" not found' in missing.out and "has no effect" not in shown.out

    assert engine("sync", "-f", hall, "--config", topology).code == Exit.DONE
    assert [one["spec"]["topologyConstraint"] for one in box.all(PODGANG)] == [required]
    assert engine("sync", "-f", hall, "--config", topology).out.splitlines()[0] == "Applied: nothing, everything is in sync."

    hall.write_text(hall.read_text().replace("example.com/rack", "example.com/row"))
    edit = engine("diff", "-f", hall, "--config", topology, "-o", "json").document["roots"]
    assert {one["object"]["kind"]: one["verb"] for root in edit for one in root["operations"]} == {
        "ClusterTopologyBinding": "patch",
        "PodGang": "patch",
    }


def test_two_bindings_of_one_name_and_faults_are_reported_with_their_place(engine: Engine, hall: Path) -> None:
    hall.write_text(f"{HALL}---\n{HALL}")
    assert f"{hall}:10: ClusterTopologyBinding/hall appears twice, first at {hall}:1" in engine("render", "-f", hall).err

    hall.write_text(HALL.replace("domain: rack", "domain: Rack"))
    answer = engine("render", "-f", hall)
    assert answer.code == Exit.FAILED and f"{hall}:8: spec.levels[1].domain" in answer.err

    hall.write_text(HALL.replace("domain: rack", "domain: zone"))
    answer = engine("diff", "-f", hall, "--against", "empty")
    assert answer.code == Exit.FAILED and f'{hall}:8: spec.levels[1].domain: Duplicate value: "zone"' in answer.out


def test_a_binding_is_rendered_as_it_would_be_sent(engine: Engine, hall: Path) -> None:
    (made,) = engine("render", "-f", hall, "-o", "json").document["objects"]

    assert (made["metadata"], [level["domain"] for level in made["spec"]["levels"]]) == ({"name": "hall"}, ["zone", "rack"])


def test_status_of_all_namespaces_shows_bindings_below_the_workloads(box: Box, engine: Engine, hall: Path) -> None:
    assert engine("sync", "-f", hall, "-f", FIRST).code == Exit.DONE

    everything, here, alone = engine("status", "-A"), engine("status"), engine("status", "-A", "hall")

    *_, blank, head, row, _ = everything.out.splitlines()
    assert (blank, head.split()) == ("", ["TOPOLOGY", "BINDING", "STATE", "LEVELS", "DRIFT", "AGE"])
    assert row.split()[:6] == ["hall", "settled", "zone", ">", "rack", "-"]
    assert "hall" not in here.out and "first" in here.out
    assert (alone.code, alone.out.splitlines()[0]) == (Exit.DONE, head)
    (entry,) = engine("status", "-A", "-o", "json").document["bindings"]
    assert (entry["levels"], entry["drift"], entry["schedulers"], entry["state"]) == (["zone", "rack"], "", [], "settled")


@pytest.mark.parametrize("configured", [False, True])
def test_a_snapshot_of_everything_holds_each_binding_once_and_is_as_good_as_the_cluster(
    box: Box, engine: Engine, hall: Path, topology: Path, tmp_path: Path, configured: bool
) -> None:
    file, options = tmp_path / "snapshot.yaml", ("--config", topology) if configured else ()
    assert engine("sync", "-f", hall, "-f", FIRST, *options).code == Exit.DONE
    assert engine("snapshot", "-A", "--out", file, *options).code == Exit.DONE

    assert file.read_text().count("\nkind: ClusterTopologyBinding\n") == 1
    hall.write_text(HALL.replace("example.com/rack", "example.com/row"))
    assert engine("diff", "-f", hall, "--against", file, *options).out == engine("diff", "-f", hall, "-A", *options).out


def test_without_rights_on_bindings_a_namespace_is_complete_and_the_whole_cluster_is_not(box: Box, engine: Engine) -> None:
    box.deny(verb="list", resource="clustertopologybindings")

    done = engine("sync", "-f", FIRST)
    assert (done.code, engine("diff").code, engine("status").code) == (Exit.DONE, Exit.DONE, Exit.DONE)
    (found,) = box.all(PODCLIQUESET)
    assert found["status"]["availableReplicas"] == 1

    everywhere = engine("diff", "-A")
    assert everywhere.code == Exit.INCOMPLETE
    assert "incomplete: ClusterTopologyBinding objects could not be listed completely" in everywhere.out


def test_managing_one_namespace_needs_no_rights_on_bindings(box: Box, engine: Engine) -> None:
    box.deny(verb="list", resource="clustertopologybindings")

    everywhere, here = engine("preflight"), engine("preflight", "-n", "default")

    check = "permissions on clustertopologybindings"
    assert check in everywhere.out and check not in here.out


def test_with_topology_enabled_a_namespace_without_rights_on_bindings_is_incomplete(box: Box, engine: Engine, topology: Path) -> None:
    box.deny(verb="list", resource="clustertopologybindings")

    assert engine("diff", "--config", topology).code == Exit.INCOMPLETE


def test_a_cluster_that_does_not_serve_bindings_is_managed_with_a_note(older_box: Box, engine: Engine, hall: Path) -> None:
    line = "note: the cluster does not serve ClusterTopologyBinding (grove.io/v1alpha1): first `engine manifests crds | kubectl apply"

    quiet, noted = engine("sync", "-f", FIRST), engine("sync", "-A")

    assert (quiet.code, quiet.errors.count("note:")) == (Exit.DONE, 0), quiet
    assert (noted.code, noted.messages[0][: len(line)]) == (Exit.DONE, line)
    assert engine("diff", "-A").messages[0][: len(line)] == line
    older_box.scale("first", 2)
    assert engine("sync", "-A").err.count(line) == 1, "It is said before the first write, and once."
    assert (engine("preflight").code, "v1alpha1 is not served" in engine("preflight").out) == (Exit.DONE, True)
    assert engine("sync", "-f", hall).code == Exit.PREFLIGHT
