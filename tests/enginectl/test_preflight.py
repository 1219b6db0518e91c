"""`engine preflight` on clusters with, without and with half of what is needed."""

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.ids import Kind
from enginectl.base.exit_codes import Exit
from grove_sandbox.installation.installation import definitions
from resources.base import kinds
from resources.schema.crds import crds
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, CommandResult, Engine
from tests.enginectl.conftest import cluster
from tests.enginectl.test_requirements import configured

AUTO = ROOT / "examples" / "04-auto-mnnvl"
CRD = "CRD computedomains.resource.nvidia.com"
CONTROLLER = {"dra-driver-nvidia-gpu-component": "controller"}


@pytest.fixture
def half_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster with our kinds, and with the definition of an old driver: no allocationMode, and a number of nodes that must be said."""
    with cluster(tmp_path, (), definitions=(*crds(), old())) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


def old() -> Mapping[str, Any]:
    """The CRD as 25.3 had it."""
    crd = copy.deepcopy(dict(definitions()[0]))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["required"] = ["numNodes", "channel"]
    spec["properties"]["numNodes"] = {"type": "integer"}
    del spec["properties"]["channel"]["properties"]["allocationMode"]
    return crd


def checks(answer: CommandResult) -> dict[str, tuple[str, str, str]]:
    """What was checked, with level, result and what was found."""
    assert (answer.document["version"], answer.document["kind"]) == (1, "Preflight")
    return {one["check"]: (one["level"], one["result"], one["found"]) for one in answer.document["checks"]}


def deployment(image: str) -> dict[str, Any]:
    """The driver's controller."""
    template = {"metadata": {"labels": CONTROLLER}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"selector": {"matchLabels": CONTROLLER}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "controller", "labels": CONTROLLER}, "spec": spec}


def test_a_cluster_that_has_everything_passes_with_a_table(box: Box, engine: Engine, tmp_path: Path) -> None:
    box.create(kinds.DEPLOYMENT, deployment("example/driver:v0.4.0"))
    answer = engine("preflight", "--config", configured(tmp_path, auto=True))

    head, *rows = answer.out.splitlines()
    assert (answer.code, answer.last, head.split()) == (Exit.DONE, "exit 0: done", ["LEVEL", "RESULT", "CHECK", "FOUND"])
    assert any(row.startswith("hard      ok       CRD computedomains.resource.nvidia.com") for row in rows)
    assert "example/driver:v0.4.0" in answer.out
    assert "Deployment default/controller: 0 of 1 ready" in answer.out
    assert "do: kubectl -n default describe deployment controller" in answer.out


def test_without_the_driver_the_preflight_fails_where_mnnvl_is_configured_and_only_there(
    half_box: Box, engine: Engine, tmp_path: Path
) -> None:
    half_box.portal.call(half_box.cluster.client("user").delete, kinds.CRD, "", "computedomains.resource.nvidia.com")
    on = engine("preflight", "-o", "json", "--config", configured(tmp_path, auto=True))
    off = engine("preflight", "-o", "json")

    assert (on.code, checks(on)[CRD]) == (Exit.PREFLIGHT, ("hard", "bad", "is not installed"))
    assert (off.code, checks(off)[CRD]) == (Exit.DONE, ("info", "bad", "is not installed"))
    assert on.err.splitlines()[-1] == "exit 7: preflight failed"


def test_the_definition_of_an_old_driver_is_read_and_its_trap_is_named(half_box: Box, engine: Engine, tmp_path: Path) -> None:
    answer = engine("preflight", "-o", "json", "--config", configured(tmp_path, auto=True))
    level, result, found = checks(answer)["ComputeDomain: numNodes"]

    assert (answer.code, level, result) == (Exit.DONE, "warning", "bad")
    assert found.startswith("numNodes required; allocationMode unknown: driver 25.3: with numNodes 0 pods run without NVLink between nodes")
    assert checks(answer)["DeviceClass compute-domain-default-channel.nvidia.com"] == ("warning", "bad", "not found")


def test_a_cluster_without_our_kinds_fails_and_says_how_to_install_them(bare_box: Box, engine: Engine) -> None:
    answer = engine("preflight")

    assert answer.code == Exit.PREFLIGHT
    assert "v1alpha1 is not served" in answer.out
    assert "do: engine manifests crds | kubectl apply --server-side -f -" in answer.out


def test_missing_permissions_are_listed_by_kind(box: Box, engine: Engine) -> None:
    box.deny(verb="delete", resource="computedomains")
    box.deny(verb="patch", resource="podcliques/status")
    box.deny(verb="create", resource="pods")
    found = checks(engine("preflight", "-o", "json"))

    assert found["permissions on computedomains.resource.nvidia.com"] == ("warning", "bad", "may not delete")
    assert found["permissions on podcliques/status.grove.io"] == ("warning", "bad", "may not patch")
    assert found["permissions on pods"] == ("warning", "bad", "may not create")
    assert "permissions on podcliquesets.grove.io" not in found


UNREADABLE = [
    (kinds.CRD, "ComputeDomain: numNodes"),
    (kinds.DEVICE_CLASS, "DeviceClass compute-domain-default-channel.nvidia.com"),
    (kinds.RESOURCE_SLICE, "ResourceSlices of compute-domain.nvidia.com"),
    (kinds.DEPLOYMENT, "controller of the DRA driver"),
    (kinds.NODE, "node labels of deleted domains"),
    (kinds.PODCLIQUESET, "domains without a workload"),
]


def test_checks_without_access_are_unknown_and_the_others_are_made(box: Box, engine: Engine, tmp_path: Path) -> None:
    for kind, _ in UNREADABLE:
        for verb in ("get", "list"):
            box.deny(verb=verb, resource=kind.plural)
    answer = engine("preflight", "-o", "json", "--config", configured(tmp_path, auto=True))
    found = checks(answer)

    assert {found[what][1] for _, what in UNREADABLE} == {"unknown"}
    assert "is forbidden" in found["controller of the DRA driver"][2]
    assert answer.code == Exit.PREFLIGHT  # Sets may not be listed.

    box.permit()
    box.deny(resource=kinds.CRD.plural)
    # The schema of the CRD is a hard requirement.
    assert engine("preflight", "--config", configured(tmp_path, auto=True)).code == Exit.INCOMPLETE


def test_workloads_that_are_there_are_counted_against_the_nodes(box: Box, engine: Engine, tmp_path: Path) -> None:
    config = AUTO / "config" / "operator.yaml"
    assert engine("sync", "-f", AUTO / "racks.yaml", "--config", config, "--no-wait").code == Exit.DONE
    box.scale("racks", 9)

    level, result, found = checks(engine("preflight", "-o", "json", "--config", config))["nodes for requested domains"]
    assert (level, result) == ("warning", "bad")
    assert found.startswith("default/racks: its pods in ComputeDomains need ") and found.endswith("3 of 3 are available")


def test_an_unreachable_cluster_is_a_failure_without_traceback(engine: Engine) -> None:
    answer = engine("preflight")

    assert (answer.code, answer.out) == (Exit.FAILED, "")


def test_nothing_is_written(box: Box, engine: Engine, tmp_path: Path) -> None:
    addons = (
        kinds.LEADER_WORKER_SET.group,
        kinds.VOLCANO_POD_GROUP.group,
        kinds.KAI_POD_GROUP.group,
        kinds.KAI_TOPOLOGY.group,
        kinds.POD_GROUP.group,
    )
    watched: tuple[Kind, ...] = tuple(kind for kind in kinds.KINDS if kind.group not in addons)
    before = {kind: box.names(kind) for kind in watched if kind.name not in ("Event", "Lease", "PodGangMap")}
    engine("preflight", "--config", configured(tmp_path, auto=True))

    assert {kind: box.names(kind) for kind in before} == before


def test_every_check_that_is_not_good_says_what_to_do(half_box: Box, engine: Engine, tmp_path: Path) -> None:
    half_box.deny(verb="list", resource="deviceclasses")
    half_box.deny(verb="patch", resource="podcliquesets/status")
    document = engine("preflight", "-o", "json", "--config", configured(tmp_path, auto=True)).document
    not_good = {one["check"]: one["remedy"] for one in document["checks"] if one["result"] != "ok"}

    assert len(not_good) > 4
    assert [check for check, remedy in not_good.items() if not remedy] == []


def remedies(answer: CommandResult) -> list[str]:
    """What a table says that is to be done."""
    return [line.strip() for line in answer.out.splitlines() if line.strip().startswith("do: ")]


def test_a_remedy_of_several_checks_is_written_once(bare_box: Box, engine: Engine, tmp_path: Path) -> None:
    assert remedies(engine("preflight")).count("do: engine manifests crds | kubectl apply --server-side -f -") == 1


def test_many_missing_permissions_have_one_remedy_and_no_text_is_cut(box: Box, engine: Engine, tmp_path: Path) -> None:
    for verb in ("delete", "patch"):
        box.deny(verb=verb)
    for kind, _ in UNREADABLE:
        box.deny(verb="list", resource=kind.plural)
    answer = engine("preflight", "--config", configured(tmp_path, auto=True))

    said = remedies(answer)
    assert len(set(said)) == len(said) and sum("kubectl create clusterrole " in line for line in said) == 2
    assert answer.out.count("may not ") == 1 and "delete: " in answer.out
    assert "…" not in answer.out


def test_who_may_write_nothing_is_told_of_the_role_of_readers(box: Box, engine: Engine) -> None:
    printed = yaml.load_all(engine("manifests", "rbac").out, yaml.CSafeLoader)
    rules = [rule for body in printed if body["kind"] in ("ClusterRole", "Role") for rule in body["rules"]]
    for resource in {resource for rule in rules for resource in rule.get("resources", ())}:
        for verb in ("create", "update", "patch", "delete", "watch"):
            box.deny(verb=verb, resource=resource)
    for kind, _ in UNREADABLE:
        box.deny(verb="list", resource=kind.plural)
    answer = engine("preflight")

    assert "you may write nothing" in answer.out
    assert "--mode read | kubectl apply -f -, then kubectl create clusterrolebinding NAME" in answer.out
    assert "--verb=VERBS" not in answer.out


def test_an_account_without_any_rights_fails(box: Box, engine: Engine) -> None:
    for rule in [rule for body in yaml.load_all(engine("manifests", "rbac").out, yaml.CSafeLoader) for rule in body.get("rules", ())]:
        for resource in rule.get("resources", ()):
            box.deny(resource=resource)
    answer = engine("preflight")

    assert answer.code == Exit.PREFLIGHT, answer.out
    assert "hard      bad       permissions on " in answer.out


def test_what_cannot_be_judged_for_one_reason_is_one_row(box: Box, engine: Engine) -> None:
    box.deny(verb="create", resource="selfsubjectaccessreviews")
    answer = engine("preflight")

    assert answer.out.count('cannot create resource "selfsubjectaccessreviews"') <= 2
    assert answer.out.count("engine manifests rbac prints the roles that allow it") >= 1
    assert "permissions on " in answer.out and " more  " in answer.out
