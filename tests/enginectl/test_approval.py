"""Plans that are saved, approved and applied: what was approved and nothing else, on a sandbox with the real client between."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.approval.document import digest_of
from enginectl.base.exit_codes import Exit
from resources.base.kinds import DYNAMO_GRAPH, POD, PODCLIQUESET, PODGANG, SERVICE
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, CommandResult, Engine

GRAPH = ROOT / "examples" / "06-dynamo" / "vllm.yaml"
OLD, NEW = "registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.10"


def manifest(folder: Path, name: str = "web", *, image: str = OLD, pods: int = 2) -> Path:
    """A set with one clique, in a file of its own."""
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "10m"}}}
    clique = {"name": "a", "spec": {"roleName": "a", "replicas": pods, "minAvailable": 1, "podSpec": {"containers": [container]}}}
    spec = {"replicas": 1, "template": {"cliques": [clique]}}
    body = {"apiVersion": PODCLIQUESET.api_version, "kind": PODCLIQUESET.name, "metadata": {"name": name}, "spec": spec}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(body))
    return file


def images(box: Box) -> set[str]:
    """What runs."""
    return {container["image"] for pod in box.all(POD) for container in pod["spec"]["containers"]}


def forged(plan: Path, **fields: Any) -> Path:
    """The plan with other fields and the digest that belongs to them."""
    document = {**json.loads(plan.read_text()), **fields}
    document["digest"] = digest_of(document)
    plan.write_text(json.dumps(document))
    return plan


def refused(answer: CommandResult) -> list[str]:
    """What the answer says is not as approved; that must be why the command has ended."""
    assert (answer.code, answer.last) == (Exit.STALE, "exit 4: not as approved"), answer
    return [line.removeprefix("not as approved: ") for line in answer.out.splitlines() if line.startswith("not as approved: ")]


@pytest.fixture
def serving(box: Box, engine: Engine, tmp_path: Path) -> Box:
    """A cluster with the set `web`, settled."""
    assert engine("sync", "-f", manifest(tmp_path)).code == Exit.DONE
    return box


@pytest.fixture
def plan(serving: Box, engine: Engine, tmp_path: Path) -> Path:
    """A plan that gives `web` another image."""
    file = tmp_path / "plan.json"
    assert engine("diff", "-f", manifest(tmp_path, image=NEW), "--out", file).code == Exit.DONE
    return file


def test_a_pull_request_is_reviewed_approved_and_applied_as_it_was_shown(serving: Box, engine: Engine, tmp_path: Path) -> None:
    plan, before = tmp_path / "plan.json", serving.revisions()
    review = engine("diff", "-f", manifest(tmp_path, image=NEW), "--out", plan)
    reviewed = serving.revisions()
    shown = engine("show", plan)
    applied = engine("sync", "--plan", plan)
    again = engine("sync", "--plan", plan)

    assert (review.code, reviewed) == (Exit.DONE, before)
    assert "2 pods restarted" in review.out
    assert f"the plan was saved in {plan}: digest {json.loads(plan.read_text())['digest'][:12]}" in review.err
    assert plan.stat().st_mode & 0o777 == 0o600
    assert shown.out.endswith(review.out)
    assert (applied.code, images(serving)) == (Exit.DONE, {NEW}), applied
    assert (again.code, again.out.splitlines()[0]) == (Exit.DONE, "Applied: nothing, everything is in sync.")


def test_a_plan_for_a_new_set_covers_its_pods_whose_names_nobody_knows_yet(box: Box, engine: Engine, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    engine("diff", "-f", manifest(tmp_path), "--out", plan)
    applied = engine("sync", "--plan", plan)

    assert applied.code == Exit.DONE, applied
    assert len(box.names(POD)) == 2


def test_what_is_shown_of_a_plan_is_what_diff_showed(serving: Box, engine: Engine, tmp_path: Path) -> None:
    changed, formats = manifest(tmp_path, image=NEW, pods=3), ("json", "html", "markdown", "text")
    reviews = {format: engine("diff", "-v", "-f", changed, "--out", tmp_path / format, "-o", format).out for format in formats}
    serving.delete(PODCLIQUESET, "web")
    shown = {format: engine("show", "-v", tmp_path / format, "-o", format).out for format in formats}

    assert shown.pop("text").endswith(reviews.pop("text"))
    assert shown == reviews


def test_a_plan_is_stale_once_its_set_is_edited(serving: Box, engine: Engine, plan: Path) -> None:
    serving.scale("web", 2)
    before = serving.revisions()
    answer = engine("sync", "--plan", plan)
    document = engine("sync", "--plan", plan, "-o", "json").document

    (deviation,) = refused(answer)
    assert deviation.startswith("PodCliqueSet/default/web: then generation 1 (uid ")
    assert deviation.endswith("with another spec: spec.replicas 1 → 2")
    assert [each["about"] for each in document["unapproved"]] == ["PodCliqueSet/default/web"]
    assert serving.revisions() == before


def test_an_edit_to_zero_and_another_order_make_a_plan_stale_and_are_named(serving: Box, engine: Engine, plan: Path) -> None:
    def edit(**fields: Any) -> None:
        template = copy.deepcopy(serving.all(PODCLIQUESET)[0]["spec"]["template"])
        template["cliques"][0]["spec"]["podSpec"] |= fields
        serving.change(PODCLIQUESET, "web", {"spec": {"template": template}})

    containers = [{"name": name, "image": OLD} for name in ("main", "side")]
    edit(securityContext={"runAsUser": 0})
    (edited,) = refused(engine("sync", "--plan", plan))
    edit(containers=containers)
    assert engine("diff", "--out", plan).code == Exit.DONE
    edit(containers=containers[::-1])
    (reordered,) = refused(engine("sync", "--plan", plan))

    assert edited.endswith('podSpec.securityContext (absent) → {"runAsUser":0}')
    assert reordered.endswith("podSpec.containers: order [main, side] → [side, main]")


def test_a_plan_is_stale_once_its_set_is_another_one_of_that_name(serving: Box, engine: Engine, tmp_path: Path, plan: Path) -> None:
    serving.delete(PODCLIQUESET, "web")
    engine("sync")
    gone = refused(engine("sync", "--plan", plan))
    engine("sync", "-f", manifest(tmp_path))
    before = serving.revisions()
    recreated = refused(engine("sync", "--plan", plan))

    assert gone[0].endswith("now absent")
    assert recreated[0].startswith("PodCliqueSet/default/web: then generation 1 (uid ")
    assert serving.revisions() == before


def test_a_plan_concerns_the_workloads_of_its_files(serving: Box, engine: Engine, tmp_path: Path, plan: Path) -> None:
    serving.create(PODCLIQUESET, yaml.load(manifest(tmp_path, "other").read_text(), yaml.CSafeLoader))

    assert engine("sync", "--plan", plan).code == Exit.DONE
    assert not any(name.startswith("other") for name in serving.names(POD))


def test_what_is_not_in_the_plan_is_told_object_by_object_and_nothing_is_written(serving: Box, engine: Engine, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert engine("diff", "-f", manifest(tmp_path, image=NEW), "--target", "*", "--out", plan).code == Exit.DONE
    other = yaml.load(manifest(tmp_path, "other").read_text(), yaml.CSafeLoader)
    serving.create(PODCLIQUESET, other)
    before = serving.revisions()
    deviations = refused(engine("sync", "--plan", plan))

    assert any("Pod 0 of default/other-0-a: then not planned, now create" in deviation for deviation in deviations)
    assert not any("web" in deviation for deviation in deviations)
    assert serving.revisions() == before


def test_what_is_lost_or_drifts_meanwhile_is_made_as_it_was_approved(serving: Box, engine: Engine, plan: Path) -> None:
    serving.delete(SERVICE, "web-0")
    serving.change(PODGANG, "web-0", {"metadata": {"labels": {"app.kubernetes.io/part-of": "drifted"}}})
    serving.delete(POD, serving.names(POD)[0])

    assert engine("sync", "--plan", plan).code == Exit.DONE
    assert (images(serving), serving.names(SERVICE)) == ({NEW}, ["web-0"])


def test_a_plan_for_other_circumstances_is_refused(serving: Box, engine: Engine, plan: Path) -> None:
    saved, before = plan.read_text(), serving.revisions()
    fields = {
        "cluster": ("another", "the cluster: then another, now "),
        "engine": ("9.9.0", "the engine: then 9.9.0, now "),
        "expiresAt": ("2020-01-01T00:00:00Z", "the time: then valid until 2020-01-01 00:00:00 UTC, now "),
        "settings": ({}, "the setting "),
    }
    for field, (value, message) in fields.items():
        plan.write_text(saved)
        deviations = refused(engine("sync", "--plan", forged(plan, **{field: value})))
        assert deviations and all(deviation.startswith(message) for deviation in deviations)

    assert serving.revisions() == before


def test_a_plan_expires(box: Box, engine: Engine, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    engine("diff", "-f", manifest(tmp_path), "--out", plan, "--valid-for", "1ms")

    assert refused(engine("sync", "--plan", plan))[0].startswith("the time: ")


def test_a_plan_that_is_altered_or_of_another_version_is_none(serving: Box, engine: Engine, plan: Path) -> None:
    saved = plan.read_text()
    before = serving.revisions()
    document = json.loads(saved)
    spoiled = {
        saved.replace(NEW, "example/evil"): "its content is not what was saved",
        json.dumps({**document, "version": 2}): "a saved plan of version 2, but this engine reads version 1",
        json.dumps({**document, "kind": "List"}): "not a saved plan",
        saved[:-100]: "not a saved plan",
        "[" * 100_000: "not a saved plan",
        "": "not a saved plan",
    }
    for content, error in spoiled.items():
        plan.write_text(content)
        for answer in (engine("sync", "--plan", plan), engine("show", plan)):
            assert answer.code == Exit.FAILED
            assert error in answer.err and str(plan) in answer.err

    assert serving.revisions() == before


def test_a_forged_plan_cannot_remove_more_than_it_shows(serving: Box, engine: Engine, plan: Path) -> None:
    document = json.loads(plan.read_text())
    service = {"kind": "Service", "name": "web-0", "namespace": "default"}
    hidden = {"verb": "delete", "object": service, "uid": "", "resourceVersion": "", "times": 1}
    answer = engine("show", forged(plan, allow=[*document["allow"], hidden]))

    assert (answer.code, "its content is not what was saved" in answer.err) == (Exit.FAILED, True)


def test_a_forged_plan_is_told_what_is_wrong_with_it(serving: Box, engine: Engine, plan: Path) -> None:
    fields: dict[str, Any] = {"allow": 1, "expiresAt": "2020-01-01T00:00:00", "extra": 1, "roots": [{}], "manifests": [1]}
    saved = plan.read_text()
    for name, value in fields.items():
        plan.write_text(saved)
        answer = engine("sync", "--plan", forged(plan, **{name: value}))
        assert answer.code == Exit.FAILED
        assert "not a saved plan: " in answer.err


@pytest.mark.parametrize("option", ["-f", "-n", "-A", "--dry-run", "--allow-replace", "--take-over"])
def test_a_plan_excludes_what_says_otherwise(engine: Engine, tmp_path: Path, option: str) -> None:
    value = [str(tmp_path)] if option == "-f" else ["x"] if option == "-n" else []

    assert engine("sync", "--plan", tmp_path / "plan.json", option, *value).code == Exit.USAGE


@pytest.mark.parametrize("words", [["--against", "empty"], ["--next"]])
def test_only_what_a_sync_would_do_to_its_end_is_saved(engine: Engine, tmp_path: Path, words: list[str]) -> None:
    plan = tmp_path / "plan.json"

    assert engine("diff", "-f", manifest(tmp_path), "--out", plan, *words).code == Exit.USAGE
    assert engine("diff", "-f", manifest(tmp_path), "--out", "-").code == Exit.USAGE
    assert not plan.exists()


def test_a_plan_with_a_rejected_manifest_is_not_saved(box: Box, engine: Engine, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    answer = engine("diff", "-f", manifest(tmp_path, pods=-1), "--out", plan)

    assert (answer.code, plan.exists()) == (Exit.FAILED, False)
    assert "the plan was not saved" in answer.err


def test_an_incomplete_plan_is_not_saved(serving: Box, engine: Engine, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    serving.deny(verb="list", resource="services")
    answer = engine("diff", "-f", manifest(tmp_path, image=NEW), "--out", plan)

    assert (answer.code, plan.exists()) == (Exit.INCOMPLETE, False)


def test_who_may_not_read_the_cluster_gets_a_plan_without_it_and_cannot_apply_one_with_it(
    serving: Box, engine: Engine, tmp_path: Path, plan: Path
) -> None:
    serving.deny(verb="get", resource="namespaces")
    unknown = tmp_path / "unknown.json"
    answer = engine("diff", "-f", manifest(tmp_path, image=NEW), "--out", unknown)

    assert "does not say which cluster it is for" in answer.err
    with_it = engine("sync", "--plan", plan)
    assert with_it.code == Exit.FAILED and "make and approve a new plan" not in with_it.err
    assert "engine: whether the plan is for this cluster is not known: " in with_it.err
    assert 'cannot get resource "namespaces"' in with_it.err and "engine manifests rbac prints the roles" in with_it.err
    assert engine("sync", "--plan", unknown).code == Exit.DONE


def test_a_plan_with_nothing_to_do_allows_nothing(serving: Box, engine: Engine, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert engine("diff", "-f", manifest(tmp_path), "--out", plan).code == Exit.DONE
    document = json.loads(plan.read_text())
    serving.scale("web", 2)

    assert (document["allow"], document["forecast"]) == ([], None)
    assert refused(engine("sync", "--plan", plan))


def test_a_graph_is_created_and_updated_by_plans_with_the_sets_it_consists_of(box: Box, engine: Engine, tmp_path: Path) -> None:
    plan, newer = tmp_path / "plan.json", tmp_path / "newer.yaml"
    newer.write_text(GRAPH.read_text().replace(":0.7.0", ":0.8.0"))
    for file, release in ((GRAPH, "0.7.0"), (newer, "0.8.0")):
        saved = engine("diff", "-f", file, "--out", plan)
        applied, before = engine("sync", "--plan", plan), box.revisions()
        again = engine("sync", "--plan", plan)

        assert (saved.code, applied.code, len(box.names(POD))) == (Exit.DONE, Exit.DONE, 5), applied
        assert {image.rpartition(":")[2] for image in images(box)} == {release}
        assert (again.code, again.out.splitlines()[0], box.revisions()) == (
            Exit.DONE,
            "Applied: nothing, everything is in sync.",
            before,
        )


def test_a_plan_for_a_graph_is_stale_once_the_graph_is_edited(box: Box, engine: Engine, tmp_path: Path) -> None:
    plan, newer = tmp_path / "plan.json", tmp_path / "newer.yaml"
    newer.write_text(GRAPH.read_text().replace(":0.7.0", ":0.8.0"))
    assert engine("sync", "-f", GRAPH).code == Exit.DONE
    assert engine("diff", "-f", newer, "--out", plan).code == Exit.DONE
    box.change(DYNAMO_GRAPH, "chat", {"spec": {"services": {"Decode": {"replicas": 1}}}})
    before = box.revisions()

    (deviation,) = refused(engine("sync", "--plan", plan))
    assert deviation.startswith("DynamoGraphDeployment/default/chat: then generation 1 ")
    assert box.revisions() == before
