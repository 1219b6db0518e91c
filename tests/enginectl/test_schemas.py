"""The published schemas: they are current, every document is valid, and within a version they only grow."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from msgspec.structs import replace

from engine.approval.wire import VERSION as PLAN_VERSION
from engine.forecast.cluster_model import Effects, Level
from engine.plan import Objection, Plan, Wait
from engine.report.json import VERSION, document, printed
from enginectl.actions.schema import SHAPES, schema
from enginectl.base.exit_codes import Exit
from enginectl.base.options import DocumentName
from resources.schema.crds import DEFINITIONS
from tests.engine.report.plans import ROOT as ROOT_ID
from tests.engine.report.plans import pod, report_of
from tests.engine.report.test_forecast import FIRST, forecast_of, rolled
from tests.engine.report.test_html import hostile_report
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.schemas import checked

RECORDED = ROOT / "tests" / "enginectl" / "recorded_schemas"
"""The schemas as they were first published in this version. They change only with the version."""


@pytest.mark.parametrize("name", DocumentName)
def test_the_schema_in_the_documentation_is_current(engine: Engine, name: DocumentName) -> None:
    assert engine("schema", name).out == (ROOT / "docs" / "schema" / f"{name}.json").read_text()


@pytest.mark.parametrize("name", DocumentName)
def test_a_schema_is_one(name: DocumentName) -> None:
    jsonschema_rs.meta.validate(schema(name))


@pytest.mark.parametrize(("name", "version"), list(zip(SHAPES, (VERSION, PLAN_VERSION, VERSION), strict=True)))
def test_within_a_version_a_schema_only_grows(name: DocumentName, version: int) -> None:
    recorded = json.loads((RECORDED / f"{name}-{version}.json").read_text())

    assert list(broken(recorded, json.loads(json.dumps(schema(name))))) == []


def broken(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """What somebody who relies on the old schema would miss in documents of the new one."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() - {"description", "title", "required"}:
            if key not in new:
                yield f"{path}/{key} is gone"
            else:
                yield from broken(old[key], new[key], f"{path}/{key}")
        yield from (f"{path}/{key} may be absent" for key in set(old.get("required", ())) - set(new.get("required", ())))
    elif path.endswith("/enum"):
        yield from (f"{path} lacks {value}" for value in old if value not in new)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from broken(*pair, f"{path}/{index}")
    elif old != new:
        yield f"{path} was {old} and is {new}"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda new: new["$defs"]["WaitEntry"]["properties"].pop("why"), "/$defs/WaitEntry/properties/why is gone"),
        (lambda new: new["$defs"]["WaitEntry"]["required"].remove("why"), "/$defs/WaitEntry/why may be absent"),
        (
            lambda new: new["$defs"]["Identity"]["properties"]["name"].update(type="integer"),
            "/$defs/Identity/properties/name/type was string and is integer",
        ),
        (
            lambda new: new["$defs"]["OperationEntry"]["properties"]["verb"]["enum"].remove("delete"),
            "/$defs/OperationEntry/properties/verb/enum lacks delete",
        ),
    ],
)
def test_a_change_that_breaks_readers_is_found(change: Any, fault: str) -> None:
    old = schema(DocumentName.DIFF)
    new = deepcopy(old)
    change(new)

    assert list(broken(old, new)) == [fault]


def test_an_addition_breaks_nobody() -> None:
    old = schema(DocumentName.DIFF)
    new = deepcopy(old)
    new["$defs"]["Identity"]["properties"]["cluster"] = {"type": "string"}
    new["$defs"]["OperationEntry"]["properties"]["verb"]["enum"].append("move")

    assert list(broken(old, new)) == []


def test_the_policies_of_the_documentation_are_valid_and_a_spelling_error_is_not() -> None:
    validator = jsonschema_rs.validator_for(schema(DocumentName.POLICY))
    blocks = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs" / "policy.md").read_text(), re.MULTILINE | re.DOTALL)
    policies = [policy for block in blocks for policy in yaml.load_all(block, yaml.CSafeLoader) if policy.get("kind") == "PlanPolicy"]

    assert policies and all(validator.is_valid(policy) for policy in policies)
    assert not validator.is_valid({**policies[0], "spec": {**policies[0]["spec"], "validation": []}})


def test_documents_of_hostile_reports_and_of_forecasts_are_valid() -> None:
    effects = Effects({"pods restarted": 2}, (Level(pod("simple-0-a"), 3, 1, 3, 2),))
    left = Plan(ROOT_ID, pending=(Wait(pod("p"), "not ready"),))
    forecast = forecast_of([FIRST], *rolled(3), plan=left, effects=effects)

    for report in (hostile_report(), report_of(), replace(report_of(FIRST), forecast=forecast)):
        checked(json.loads(printed(document(report))))


@pytest.mark.parametrize("change", [{"extra": 1}, {"version": "2"}, {"roots": None}, {"kind": "Diff", "summary": {}}])
def test_a_document_that_differs_from_its_schema_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema_rs.ValidationError):
        checked({**json.loads(printed(document(report_of()))), **change})


def test_a_preview_and_a_sync_of_a_cluster_write_valid_documents(box: Box, engine: Engine) -> None:
    words = ("-f", ROOT / "examples" / "03-scaling-group", "-o", "json")

    assert engine("diff", *words).document["applicable"] is True
    assert engine("sync", *words).document["ending"] == "done"
    assert engine("diff", "-o", "json").document["complete"] is True


def test_saved_plans_are_valid(box: Box, engine: Engine, tmp_path: Path) -> None:
    for name in ("03-scaling-group/group.yaml", "06-dynamo/vllm.yaml"):
        manifest, plan = ROOT / "examples" / name, tmp_path / "plan.json"
        assert engine("diff", "-f", manifest, "--out", plan).code == Exit.DONE
        document = checked(json.loads(plan.read_text()))
        assert document["allow"] and document["forecast"]["finished"]
        assert engine("sync", "--plan", plan).code == Exit.DONE
    removal = tmp_path / "removal.json"
    assert engine("delete", "-f", manifest, "--out", removal).code == Exit.DONE
    assert checked(json.loads(removal.read_text()))["removals"]


def test_of_what_is_denied_or_not_seen_the_document_says_so() -> None:
    denied, unseen = report_of(objections=(Objection("r", "m"),)), replace(report_of(), incomplete={"Pod": "forbidden"})

    assert [(value["complete"], value["applicable"]) for value in map(document, (denied, unseen, report_of()))] == [
        (True, False),
        (False, True),
        (True, True),
    ]


KIND_NAMES = tuple(definition.kind.name.lower() for definition in DEFINITIONS)


@pytest.mark.parametrize("name", KIND_NAMES)
def test_the_schema_of_a_kind_stands_alone(engine: Engine, name: str) -> None:
    for words in ((), ("--strict",)):
        answer = engine("schema", name, *words)
        jsonschema_rs.meta.validate(json.loads(answer.out))
        assert answer.code == Exit.DONE and '"$ref"' not in answer.out and "x-kubernetes-int-or-string" not in answer.out


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("[0-9]*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_manifests_of_the_examples_are_valid_by_the_strict_schemas_of_their_kinds(engine: Engine, file: Path) -> None:
    for body in filter(None, yaml.load_all(file.read_text(), yaml.CSafeLoader)):
        if (name := body["kind"].lower()) in KIND_NAMES:
            version = ("--api-version", body["apiVersion"].partition("/")[2])
            validator = jsonschema_rs.validator_for(json.loads(engine("schema", name, "--strict", *version).out))
            assert list(validator.iter_errors(body)) == []


def test_a_misspelt_field_is_refused_by_the_strict_schema_only(engine: Engine) -> None:
    body = yaml.load((ROOT / "examples" / "01-first-gang" / "gang.yaml").read_text(), yaml.CSafeLoader)
    body["spec"]["replica"] = 2
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["imagePullPolice"] = "Always"
    lenient = jsonschema_rs.validator_for(json.loads(engine("schema", "PodCliqueSet").out))
    strict = jsonschema_rs.validator_for(json.loads(engine("schema", "PodCliqueSet", "--strict").out))
    said = " ".join(each.message for each in strict.iter_errors(body))

    assert list(lenient.iter_errors(body)) == []
    assert "'replica'" in said and "'imagePullPolice'" in said


def test_unknown_names_and_versions_are_usage_errors(engine: Engine) -> None:
    unknown = engine("schema", "pods")
    assert unknown.code == Exit.USAGE and "there are diff, plan, policy, sync, podclique" in unknown.err
    assert "there are v1alpha1, v1beta1" in engine("schema", "dynamographdeployment", "--api-version", "v2").err
    assert engine("schema", "diff", "--strict").code == Exit.USAGE
