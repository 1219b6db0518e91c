"""`--prune`: workloads that have left the files are removed, shown before, guarded, and recorded so that kubectl knows it too."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.version import VERSION
from enginectl.base.exit_codes import Exit
from resources.base import applyset
from resources.base.kinds import CONFIG_MAP, NAMESPACE, POD, PODCLIQUESET, PODGANG, TOPOLOGY_BINDING
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.waiting import PATIENCE

KUBECTL = shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", "")) or shutil.which("kubectl")
PRUNE = ("--prune", "--applyset", "team")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder with a user's manifests."""
    (tmp_path / "manifests").mkdir()
    return tmp_path / "manifests"


def write(folder: Path, name: str, file: str = "", **metadata: Any) -> None:
    """A manifest of a set with one pod."""
    manifest = podcliqueset(name, clique("worker", 1))
    manifest["metadata"] |= metadata
    (folder / f"{file or name}.yaml").write_text(yaml.safe_dump(manifest))


@pytest.fixture
def applied(box: Box, engine: Engine, folder: Path) -> Path:
    """A folder of two sets that are applied as an ApplySet."""
    write(folder, "one")
    write(folder, "two")
    assert engine("sync", "-f", folder, *PRUNE).code == Exit.DONE
    return folder


def parent(box: Box, name: str = "team") -> dict[str, Any]:
    """The labels and annotations of a parent."""
    metadata = next(body["metadata"] for body in box.all(CONFIG_MAP) if body["metadata"]["name"] == name)
    return {**metadata["labels"], **metadata["annotations"]}


def test_a_set_that_has_left_the_folder_is_shown_and_then_removed_with_its_pods(box: Box, engine: Engine, applied: Path) -> None:
    (applied / "two.yaml").unlink()

    preview = engine("diff", "-f", applied, *PRUNE, "--detailed-exitcode")
    assert preview.code == Exit.CHANGES
    assert "delete PodCliqueSet/two   Pruned: " in preview.out and "1 pod removed" in preview.out
    assert box.names(PODCLIQUESET) == ["one", "two"]

    assert engine("sync", "-f", applied, *PRUNE).code == Exit.DONE
    assert box.names(PODCLIQUESET) == ["one"]
    assert all(name.startswith("one-") for name in box.names(POD))


def test_members_bear_the_label_what_they_consist_of_does_not_and_the_parent_is_as_kubectl_expects(
    box: Box, engine: Engine, applied: Path
) -> None:
    id = applyset.applyset_id(CONFIG_MAP.id("default", "team"))

    assert {body["metadata"]["labels"][applyset.PART_OF] for body in box.all(PODCLIQUESET)} == {id}
    assert not any(applyset.PART_OF in body["metadata"].get("labels", {}) for kind in (POD, PODGANG) for body in box.all(kind))
    assert {key.partition("/")[2]: value for key, value in parent(box).items()} == {
        "id": id,
        "tooling": f"grove-engine/v{VERSION}",
        "contains-group-kinds": "PodCliqueSet.grove.io",
        "additional-namespaces": "",
    }


def test_a_second_run_has_nothing_to_do(box: Box, engine: Engine, applied: Path) -> None:
    revision, before = next(body["metadata"]["resourceVersion"] for body in box.all(CONFIG_MAP)), box.revisions()

    preview, second = engine("diff", "-f", applied, *PRUNE, "--detailed-exitcode"), engine("sync", "-f", applied, *PRUNE)

    assert (preview.code, second.code) == (Exit.DONE, Exit.DONE)
    assert "nothing, everything is in sync" in second.out
    assert [body["metadata"]["resourceVersion"] for body in box.all(CONFIG_MAP)] == [revision]
    assert box.revisions() == before


def test_a_preview_writes_nothing_and_shows_and_counts_that_a_parent_is_created(box: Box, engine: Engine, folder: Path) -> None:
    write(folder, "one")

    answer = engine("diff", "-f", folder, *PRUNE)

    assert answer.code == Exit.DONE
    assert "ConfigMap/default/team: create" in answer.out and "create ConfigMap/team" in answer.out
    counted = engine("diff", "-f", folder, *PRUNE, "-o", "json").document
    alone = engine("diff", "-f", folder, "-o", "json").document
    assert counted["forecast"]["operations"]["create"] == alone["forecast"]["operations"]["create"] + 1
    assert box.all(CONFIG_MAP) == [] and box.names(PODCLIQUESET) == []


def test_a_renamed_file_removes_nothing(box: Box, engine: Engine, applied: Path) -> None:
    (applied / "two.yaml").rename(applied / "renamed.yaml")
    before = box.revisions()

    assert engine("sync", "-f", applied, *PRUNE).code == Exit.DONE
    assert box.revisions() == before


def test_an_empty_folder_removes_nothing_unless_that_is_allowed(box: Box, engine: Engine, applied: Path) -> None:
    for file in applied.iterdir():
        file.unlink()

    for words in (("sync",), ("sync", "--dry-run"), ("diff",)):
        refused = engine(*words, "-f", applied, *PRUNE)
        assert refused.code == Exit.DENIED
        assert "denied by prune-empty: there is no workload in the files, and 2 workloads" in refused.out + refused.err
    assert box.names(PODCLIQUESET) == ["one", "two"]

    assert engine("sync", "-f", applied, *PRUNE, "--allow-empty").code == Exit.DONE
    assert box.names(PODCLIQUESET) == []
    assert parent(box)[applyset.GROUP_KINDS] == ""


def test_what_others_have_applied_stays(box: Box, engine: Engine, applied: Path) -> None:
    box.create(PODCLIQUESET, podcliqueset("theirs", clique("worker", 1)))
    (applied / "two.yaml").unlink()

    assert engine("sync", "-f", applied, *PRUNE).code == Exit.DONE
    assert box.names(PODCLIQUESET) == ["one", "theirs"]


@pytest.mark.parametrize(
    ("labels", "annotations", "words"),
    [
        ({}, {}, "exists and is not the parent of an ApplySet"),
        (None, {applyset.TOOLING: "kubectl/v1.34"}, "is managed by kubectl/v1.34, not by grove-engine"),
        (None, {applyset.TOOLING: "\x1b[31m"}, "is managed by \\x1b[31m, not by"),
    ],
    ids=["no parent", "kubectl", "hostile"],
)
def test_a_parent_that_is_not_ours_is_refused_and_left_alone(
    box: Box, engine: Engine, folder: Path, labels: dict[str, str] | None, annotations: dict[str, str], words: str
) -> None:
    write(folder, "one")
    id = CONFIG_MAP.id("default", "team")
    labels = {applyset.ID: applyset.applyset_id(id)} if labels is None else labels
    metadata = {"name": "team", "labels": labels, "annotations": annotations}
    box.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    refused = engine("sync", "-f", folder, *PRUNE)

    assert refused.code == Exit.DENIED
    assert "denied by applyset-parent: ConfigMap/default/team" in refused.err and words in refused.err
    assert box.names(PODCLIQUESET) == []
    assert [body["metadata"].get("annotations") or {} for body in box.all(CONFIG_MAP)] == [annotations]


@pytest.mark.parametrize("value", ["true", "Yes"])
def test_a_protected_set_is_not_removed(box: Box, engine: Engine, applied: Path, value: str) -> None:
    box.change(PODCLIQUESET, "two", {"metadata": {"annotations": {"engine.grove.io/protect": value}}})
    (applied / "two.yaml").unlink()

    refused, preview = engine("sync", "-f", applied, *PRUNE), engine("diff", "-f", applied, *PRUNE)

    assert (refused.code, preview.code) == (Exit.DENIED, Exit.DENIED)
    assert "denied by protected: PodCliqueSet/default/two is protected: remove its annotation engine.grove.io/protect" in refused.err
    assert "denied by protected" in preview.out
    assert box.names(PODCLIQUESET) == ["one", "two"]


def test_a_set_that_is_kept_stays_a_member(box: Box, engine: Engine, applied: Path) -> None:
    box.change(PODCLIQUESET, "two", {"metadata": {"annotations": {"engine.grove.io/prune": "disabled"}}})
    (applied / "two.yaml").unlink()

    kept = engine("sync", "-f", applied, *PRUNE)
    assert (kept.code, box.names(PODCLIQUESET)) == (Exit.DONE, ["one", "two"])
    assert "note: PodCliqueSet/default/two is kept although no manifest names it" in kept.err

    box.change(PODCLIQUESET, "two", {"metadata": {"annotations": {"engine.grove.io/prune": None}}})
    assert engine("sync", "-f", applied, *PRUNE).code == Exit.DONE
    assert box.names(PODCLIQUESET) == ["one"]


def test_a_run_that_fails_half_way_removes_nothing_and_the_next_one_does(box: Box, engine: Engine, applied: Path) -> None:
    (applied / "two.yaml").rename(applied.parent / "two.yaml")
    write(applied, "three")
    box.deny(verb="create", resource="podcliquesets")

    failed = engine("sync", "-f", applied, *PRUNE, "--timeout", "30m")
    assert (failed.code, box.names(PODCLIQUESET)) == (Exit.FAILED, ["one", "two"])

    box.cluster.access.denials.clear()
    assert engine("sync", "-f", applied, *PRUNE).code == Exit.DONE
    assert box.names(PODCLIQUESET) == ["one", "three"]


def test_without_the_right_to_write_the_parent_nothing_is_written(box: Box, engine: Engine, folder: Path) -> None:
    write(folder, "one")
    box.deny(verb="create", resource="configmaps")

    failed = engine("sync", "-f", folder, *PRUNE, "--timeout", "30m")

    assert (failed.code, box.names(PODCLIQUESET)) == (Exit.FAILED, [])
    assert "configmaps" in failed.out


def test_a_kind_that_may_not_be_listed_matters_only_if_it_may_have_members(box: Box, engine: Engine, applied: Path) -> None:
    (applied / "two.yaml").unlink()
    box.deny(verb="list", resource="dynamographdeployments")
    assert engine("sync", "-f", applied, *PRUNE, "--timeout", "30m").code == Exit.INCOMPLETE
    assert box.names(PODCLIQUESET) == ["one"]
    assert engine("delete", "pcs/one", "--dry-run").code == Exit.INCOMPLETE

    box.deny(verb="list", resource="podcliquesets")
    blind = engine("sync", "-f", applied, *PRUNE, "--timeout", "30m")
    assert (blind.code, "PodCliqueSet objects could not be listed completely" in blind.err) == (Exit.FAILED, True)


def test_a_set_moves_to_another_applyset_only_when_its_label_is_removed(box: Box, engine: Engine, applied: Path) -> None:
    other = applied.parent / "other"
    other.mkdir()
    (applied / "two.yaml").rename(other / "two.yaml")

    refused = engine("sync", "-f", other, "--prune", "--applyset", "others")
    assert refused.code == Exit.DENIED
    assert "denied by applyset-member: PodCliqueSet/default/two belongs to another ApplySet" in refused.err

    box.change(PODCLIQUESET, "two", {"metadata": {"labels": {applyset.PART_OF: None}}})
    assert engine("sync", "-f", other, "--prune", "--applyset", "configmaps/others").code == Exit.DONE
    assert engine("sync", "-f", applied, *PRUNE).code == Exit.DONE
    assert box.names(PODCLIQUESET) == ["one", "two"]


def test_members_are_found_in_every_namespace_that_the_parent_records(box: Box, engine: Engine, applied: Path) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}}
    box.portal.call(box.cluster.client("user").create, NAMESPACE, "", namespace)
    write(applied, "three", namespace="far")
    assert engine("sync", "-f", applied, *PRUNE).code == Exit.DONE
    assert parent(box)[applyset.NAMESPACES] == "far"

    (applied / "three.yaml").unlink()
    assert engine("sync", "-f", applied, *PRUNE).code == Exit.DONE
    assert box.names(PODCLIQUESET) == ["one", "two"]
    assert parent(box)[applyset.NAMESPACES] == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--prune",), "--prune needs --applyset"),
        (("--applyset", "team"), "--applyset is for --prune"),
        (("--allow-empty",), "--allow-empty is for --prune"),
        (("--prune", "--applyset", "team"), "--prune needs -f"),
        (("--prune", "--applyset", "deployments/team", "-f", "."), "one of configmaps/NAME and secrets/NAME"),
        (("--prune", "--applyset", "Team\x1b", "-f", "."), "not a valid name"),
    ],
)
def test_options_that_do_not_fit_are_usage_errors(box: Box, engine: Engine, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    answer = engine("sync", *(str(tmp_path) if word == "." else word for word in words))

    assert (answer.code, message in answer.err) == (Exit.USAGE, True)


@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl in KUBEBUILDER_ASSETS, nor on PATH")
def test_kubectl_refuses_our_applyset_and_we_refuse_that_of_kubectl(box: Box, engine: Engine, applied: Path) -> None:
    refused = kubectl_apply(box, applied, "team")
    assert refused.returncode != 0
    assert 'managed by tooling "grove-engine" instead of "kubectl"' in refused.stderr

    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "default"}}
    (applied.parent / "config.yaml").write_text(yaml.safe_dump(config))
    made = kubectl_apply(box, applied.parent / "config.yaml", "kubectls")
    assert made.returncode == 0, made.stderr

    ours = engine("sync", "-f", applied, "--prune", "--applyset", "kubectls")
    assert ours.code == Exit.DENIED
    assert "is managed by kubectl/" in ours.err


def kubectl_apply(box: Box, files: Path, name: str) -> subprocess.CompletedProcess[str]:
    """What `kubectl apply --prune` answers for an ApplySet."""
    words = [str(KUBECTL), "--kubeconfig", str(box.kubeconfig), "apply", "-f", str(files), "--prune", f"--applyset=configmaps/{name}"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(files.parent), "KUBECTL_APPLYSET": "true"}
    return subprocess.run([*words, "-n", "default"], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_with_a_base_what_the_change_leaves_out_is_removed_and_what_is_protected_is_not(engine: Engine, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for directory in (old, new):
        directory.mkdir()
        write(directory, "one")
    write(old, "two")
    words = ("diff", "--base", old, "-f", new, "--prune")

    noted, shown = engine(*words[:-1]), engine(*words)
    assert "delete" not in noted.out and "it stays" in noted.out
    assert "delete PodCliqueSet/two   Pruned: the change has no manifest of it any more" in shown.out and "1 pod removed" in shown.out

    write(old, "two", annotations={"engine.grove.io/protect": "true"})
    assert engine(*words).code == Exit.DENIED
    assert engine(*words, "--applyset", "team").code == Exit.USAGE


def test_a_binding_is_a_member_as_well_and_stays_one_when_it_is_applied_without_pruning(box: Box, engine: Engine, folder: Path) -> None:
    binding = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": "racks"},
        "spec": {"levels": [{"domain": "rack", "key": "example.com/rack"}]},
    }
    write(folder, "one")
    (folder / "racks.yaml").write_text(yaml.safe_dump(binding))
    assert engine("sync", "-f", folder, *PRUNE).code == Exit.DONE
    assert parent(box)[applyset.GROUP_KINDS] == "ClusterTopologyBinding.grove.io,PodCliqueSet.grove.io"

    assert engine("sync", "-f", folder / "racks.yaml").code == Exit.DONE
    (folder / "racks.yaml").unlink()
    assert engine("sync", "-f", folder, *PRUNE).code == Exit.DONE
    assert box.names(TOPOLOGY_BINDING) == []
    assert parent(box)[applyset.GROUP_KINDS] == "PodCliqueSet.grove.io"


def test_a_protection_that_is_misspelled_is_told_when_it_is_applied(box: Box, engine: Engine, folder: Path) -> None:
    write(folder, "one", annotations={"engine.grove.io/Protect": "true"}, labels={"engine.grove.io/prune": "disabled"})

    text = engine("diff", "-f", folder).err

    assert "metadata.annotations[engine.grove.io/Protect] has no effect: the annotation is engine.grove.io/protect" in text
    assert "metadata.labels[engine.grove.io/prune] has no effect: it is an annotation, not a label" in text
