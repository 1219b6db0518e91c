"""What code scanning shows of a plan: findings at the lines of manifests."""

import re
from typing import Any

import jsonschema_rs
import pytest

from engine.plan import Enforcement, Judgement, Plan, Violation, Wait
from engine.report.json import printed
from engine.report.model import FileLine, Report, compose
from engine.report.sarif import MAX_RESULTS, ScanResult, faults, findings, located, sarif
from tests.engine.report.plans import ROOT, pod, replica_of, report_of
from tests.engine.report.sarif_schema import SARIF
from tests.engine.report.test_html import hostile_report

HERE = {ROOT: FileLine("sets/a.yaml", 7)}


def run_of(document: dict[str, Any]) -> dict[str, Any]:
    """The run of a document that is valid, and in which each result refers to its rule."""
    jsonschema_rs.validator_for(SARIF, validate_formats=True).validate(document)
    (run,) = document["runs"]
    assert isinstance(run, dict)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    return run


def lines(run: dict[str, Any]) -> list[tuple[str, str, str, int]]:
    """Rule, level, file and line of each result."""
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    return [
        (result["ruleId"], result["level"], place["artifactLocation"]["uri"], place["region"]["startLine"])
        for result, place in zip(run["results"], places, strict=True)
    ]


def test_each_finding_is_at_its_line_with_its_rule_and_its_level() -> None:
    report = report_of(
        deferred=(Wait(pod("b"), "its name is taken", blocked=True),), problems=("sets/a.yaml:12: spec.replicas: Invalid value: -1",)
    )
    violations = (
        Violation("prod/restarts", Enforcement.DENY, "many restarts"),
        Violation("prod/digests", Enforcement.WARN, "image by tag", ROOT),
        Violation("prod/freeze", Enforcement.DENY, "freeze", waived="ticket 4711"),
    )

    run = run_of(sarif(findings(Report(report.roots, judgement=Judgement(violations)), HERE), "prod"))

    assert lines(run) == [
        ("prod/restarts", "error", "sets/a.yaml", 7),
        ("fault", "error", "sets/a.yaml", 12),
        ("blocked", "error", "sets/a.yaml", 7),
        ("prod/digests", "warning", "sets/a.yaml", 7),
        ("prod/freeze", "warning", "sets/a.yaml", 7),
    ]
    assert run["results"][1]["message"]["text"] == "default/simple: spec.replicas: Invalid value: -1"
    assert run["results"][4]["suppressions"] == [{"kind": "external", "justification": "ticket 4711"}]
    assert run["automationDetails"] == {"id": "engine/prod/"}


def test_what_is_in_no_file_is_a_notification() -> None:
    report = report_of(problems=("<stdin>:3: spec: bad",), error=ValueError("x"))

    run = run_of(sarif(findings(report, {})))

    assert run["results"] == []
    assert [each["message"]["text"] for each in run["invocations"][0]["toolExecutionNotifications"]] == [
        "internal error: ValueError: x; nothing is changed for this root; please report it",
        "spec: bad",
    ]


def test_a_set_that_a_graph_proposes_is_at_the_manifest_of_the_graph() -> None:
    nested = ROOT._replace(name="nested")
    plans = [Plan(ROOT), Plan(nested, deferred=(Wait(pod("b"), "taken", blocked=True),), parent=ROOT)]
    elsewhere = ROOT._replace(name="a")

    run = run_of(sarif(findings(compose(plans, replica_of), {**HERE, elsewhere: FileLine("first.yaml", 1)})))

    assert lines(run) == [("blocked", "error", "sets/a.yaml", 7)]


def test_a_fingerprint_stays_when_lines_and_values_change_and_differs_between_fields() -> None:
    before, moved, other = (
        next(iter(faults(text))) for text in ("a.yaml:1: spec.x: got 1", "a.yaml:9: spec.x: got 2", "a.yaml:1: spec.y: got 1")
    )
    blocked = [ScanResult("blocked", "error", f"Pod/x-{number}: taken", "", "a") for number in (1, 2)]

    assert before.fingerprint == moved.fingerprint != other.fingerprint
    assert blocked[0].fingerprint == blocked[1].fingerprint


def test_the_text_of_an_error_is_one_finding_for_each_line() -> None:
    run = run_of(
        sarif(faults("a b.yaml:3: not YAML: mapping\n/srv/x/c.yaml:4: spec: bad\n/else/d.yaml:5: y\nand 3 more faults"), folder="/srv/x")
    )

    assert lines(run) == [
        ("fault", "error", "a%20b.yaml", 3),
        ("fault", "error", "c.yaml", 4),
        ("fault", "error", "file:///else/d.yaml", 5),
    ]
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 1


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [("a:1: b: c", FileLine("a", 1), "b: c"), ("c:/a.yaml:12: x", FileLine("c:/a.yaml", 12), "x"), ("no place", None, "no place")],
)
def test_a_fault_begins_with_its_place(text: str, place: FileLine | None, message: str) -> None:
    assert located(text) == (place, message)


def test_there_are_at_most_5000_results_and_the_others_are_counted() -> None:
    many = (ScanResult("fault", "error", str(number), "x", place=FileLine("a.yaml")) for number in range(MAX_RESULTS + 7))

    run = run_of(sarif(many))

    assert len(run["results"]) == MAX_RESULTS
    assert "7 more findings" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_hostile_text_stays_text() -> None:
    document = sarif(
        [*findings(hostile_report(), HERE), ScanResult("r", "note", "[click](https://evil.example)", "d", place=FileLine("x/../y#z"))]
    )

    run = run_of(document)

    assert "\\[click\\](https://evil.example)" in run["results"][-1]["message"]["text"]
    assert lines(run)[-1][2] == "y%23z"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u200b\u202a-\u202e\u2066-\u2069]", printed(document))
    assert "\x1b" not in str(document) and max(len(result["message"]["text"]) for result in run["results"]) <= 2_000
