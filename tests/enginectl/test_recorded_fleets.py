"""A fleet that was brought up with the pod types of an earlier release of Kubernetes is settled: newer types move no hash and no field."""

import gzip
from pathlib import Path

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from tests.enginectl.calling import ROOT, Engine
from tests.enginectl.recorded_fleets import fleets
from tests.enginectl.test_examples import IN_MEMORY, configured

every_fleet = pytest.mark.parametrize("fleet", fleets(), ids=lambda file: f"{file.parent.name}-{file.name.partition('.')[0]}")

NOT_RECORDED = [("create", "Topology"), ("status", "PodCliqueSet"), ("status", "DynamoGraphDeployment")]
"""What is missing because snapshots do not have it, and the statuses that earlier versions did not write."""

LATER = {ROOT / "examples" / "09-rolling-update"}
"""Examples that were written after the pod types of another release had been recorded."""


def example_of(fleet: Path) -> Path:
    """The example that the fleet was made of."""
    return ROOT / "examples" / fleet.name.partition(".")[0]


def test_there_is_a_fleet_of_every_example() -> None:
    recorded = {(file.parent.name, example_of(file)) for file in fleets()}

    assert {release for release, _ in recorded} >= {"v1.35.4"}
    assert {example for _, example in recorded} == set(IN_MEMORY) - LATER


@every_fleet
def test_nothing_of_it_is_deleted_restarted_or_patched(fleet: Path, engine: Engine, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.yaml"
    snapshot.write_bytes(gzip.decompress(fleet.read_bytes()))
    example = example_of(fleet)

    for manifests in ((), ("-f", example)):
        answer = engine("diff", *manifests, "--against", snapshot, *configured(example), "-o", "json")
        operations = [(each["verb"], each["object"]["kind"]) for root in answer.document["roots"] for each in root["operations"]]
        assert answer.code == Exit.DONE and len(answer.document["roots"]) > 0
        assert [each for each in operations if each not in NOT_RECORDED] == []


@every_fleet
def test_it_consists_of_pods_whose_hashes_a_change_of_their_template_moves(fleet: Path, engine: Engine, tmp_path: Path) -> None:
    documents = [each for each in yaml.load_all(gzip.decompress(fleet.read_bytes()), yaml.CSafeLoader) if each]
    for each in documents:
        for clique in each.get("spec", {}).get("template", {}).get("cliques", ()) if each["kind"] == "PodCliqueSet" else ():
            clique["spec"]["podSpec"]["terminationGracePeriodSeconds"] = 77
        if each["kind"] == "DynamoGraphDeployment":
            for service in each["spec"]["services"].values():
                service.setdefault("extraPodSpec", {})["terminationGracePeriodSeconds"] = 77
    snapshot = tmp_path / "snapshot.yaml"
    snapshot.write_text(yaml.safe_dump_all(documents))

    answer = engine("diff", "--detailed-exitcode", "--against", snapshot, *configured(example_of(fleet)))

    assert answer.code == Exit.CHANGES, answer
