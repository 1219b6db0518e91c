"""`--policy` and `--waive`: what users see of rules that are violated, waived, or wrong, and that a denied sync writes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from resources.base.kinds import POD, PODCLIQUESET, SERVICE
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.enginectl.test_on_a_cluster import obsolete

FIRST = ROOT / "examples" / "01-first-gang"
OFFLINE = ("diff", "--against", "empty", "-f", FIRST)
FEW = {"name": "few", "expression": "plan.summary.podsAdded <= params.most", "message": "too many pods"}


def policy(*rules: dict[str, Any], name: str = "p", **spec: Any) -> dict[str, Any]:
    """A policy with these rules; it allows two new pods."""
    spec = {"params": {"most": 2}, "validations": list(rules), **spec}
    return {"apiVersion": "engine.grove.io/v1alpha1", "kind": "PlanPolicy", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Writes policies to a file and returns its path."""

    def write(*bodies: Any) -> Path:
        file = tmp_path / "policy.yaml"
        file.write_text("---\n".join(yaml.safe_dump(body, sort_keys=False) for body in bodies))
        return file

    return write


def test_a_violation_is_the_first_line_and_denies(engine: Engine, written: Any) -> None:
    answer = engine(*OFFLINE, "--policy", written(policy(FEW)))

    assert (answer.code, answer.last) == (Exit.DENIED, "exit 3: denied by policy or guard")
    assert answer.out.splitlines()[:2] == ["denied by p/few: too many pods", "default/first: create"]


def test_what_is_allowed_is_shown_as_without_policies(engine: Engine, written: Any) -> None:
    answer = engine(*OFFLINE, "--policy", written(policy(FEW, params={"most": 3})))

    assert (answer.code, answer.out) == (Exit.DONE, engine(*OFFLINE).out)


def test_each_set_is_named_and_warnings_deny_nothing(engine: Engine, written: Any) -> None:
    rule = {"name": "tag", "scope": "Set", "action": "Warn", "expression": "set.isDeleted", "messageExpression": "'image ' + set.images[0]"}

    answer = engine(*OFFLINE, "--policy", written(policy(rule)))

    assert answer.code == Exit.DONE
    assert answer.out.splitlines()[0] == "warned by p/tag (PodCliqueSet/default/first): image nginx:1.29-alpine"


def test_a_waiver_is_shown_with_its_reason(engine: Engine, written: Any) -> None:
    answer = engine(*OFFLINE, "--policy", written(policy(FEW)), "--waive", "p/few=agreed with x=y")

    assert answer.code == Exit.DONE
    assert answer.out.splitlines()[0] == "waived p/few: too many pods (reason: agreed with x=y)"


def test_the_json_document_has_everything(engine: Engine, written: Any) -> None:
    rules = (
        FEW,
        FEW | {"name": "warn", "action": "Warn"},
        FEW | {"name": "audit", "action": "Audit", "scope": "Set", "expression": "set.summary.creates < 5"},
        FEW | {"name": "waived"},
        FEW | {"name": "broken", "expression": "params.nothing"},
    )
    answer = engine(*OFFLINE, "--policy", written(policy(*rules)), "--waive", "p/waived=agreed", "-o", "json")

    said = {"message": "too many pods", "object": None}
    assert answer.document["policy"] == {
        "denied": [
            said | {"rule": "p/few"},
            {"rule": "p/broken", "object": None, "message": 'it cannot be evaluated: Key not found in map : "nothing"'},
        ],
        "warned": [said | {"rule": "p/warn"}],
        "audited": [
            said | {"rule": "p/audit", "object": {"group": "grove.io", "kind": "PodCliqueSet", "namespace": "default", "name": "first"}}
        ],
        "waived": [said | {"rule": "p/waived", "action": "deny", "reason": "agreed"}],
        "notes": [],
    }


def test_audited_rules_are_not_shown_to_people(engine: Engine, written: Any) -> None:
    assert engine(*OFFLINE, "--policy", written(policy(FEW | {"action": "Audit"}))).out == engine(*OFFLINE).out


def test_policies_judge_the_workloads_that_a_command_concerns(engine: Engine, written: Any) -> None:
    words = (*OFFLINE, "-f", ROOT / "examples" / "00-simple", "--policy", written(policy(FEW, params={"most": 3})))

    assert [engine(*words).code, engine(*words, "--target", "first").code] == [Exit.DENIED, Exit.DONE]


def test_without_changes_nothing_is_denied(engine: Engine, written: Any) -> None:
    never = FEW | {"expression": "false"}

    assert engine("diff", "--against", "empty", "--policy", written(policy(never))).code == Exit.DONE


def test_a_folder_and_several_policies(engine: Engine, written: Any, tmp_path: Path) -> None:
    written(policy(FEW), policy(FEW, name="q"))

    assert engine(*OFFLINE, "--policy", tmp_path).out.splitlines()[:2] == [
        "denied by p/few: too many pods",
        "denied by q/few: too many pods",
    ]


def test_hostile_names_and_messages_are_harmless(engine: Engine, written: Any) -> None:
    escape = "\x1b]0;taken over\x07\u202e\r\ndenied"
    rules = FEW | {"message": escape}, FEW | {"name": "made", "messageExpression": f"set.name + {json.dumps(escape)}", "scope": "Set"}
    rules[1]["expression"] = "false"

    answer = engine(*OFFLINE, "--policy", written(policy(*rules)), "--waive", f"p/made={escape}")

    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(answer.out + answer.err)
    assert answer.out.splitlines()[0] == r"denied by p/few: \x1b]0;taken over\x07\u202e\x0d\x0adenied"


def test_html_shows_violations_as_text(engine: Engine, written: Any) -> None:
    answer = engine(*OFFLINE, "--policy", written(policy(FEW | {"message": "<script>alert(1)</script>"})), "-o", "html")

    assert answer.code == Exit.DENIED
    assert "denied by p/few: &lt;script&gt;" in answer.out and "<script" not in answer.out


@pytest.mark.parametrize(
    ("change", "line", "reason"),
    [
        ({"kind": "Policy"}, 1, "Policy is no PlanPolicy of engine.grove.io/v1alpha1"),
        ({"apiVersion": "engine.grove.io/v2"}, 1, "PlanPolicy is supported as engine.grove.io/v1alpha1 only"),
        ({"apiVersion": "engine.grove.com/v1alpha1"}, 1, "PlanPolicy is supported as engine.grove.io/v1alpha1 only"),
        ({"metadata": {"name": "a/b"}}, 4, "metadata.name: Invalid value"),
        ({"spec": {"validations": []}}, 6, "spec.validations: Invalid value: a list: must have at least 1 entries"),
        ({"spec": {"validations": [FEW], "rules": []}}, 10, "spec.rules: unknown field"),
        ({"spec": {}}, 5, "spec.validations: Required value"),
        ({"spec": {"validations": [FEW | {"action": "Refuse"}]}}, 10, 'spec.validations[0].action: Unsupported value: "Refuse"'),
        ({"spec": {"validations": [{"name": "a", "expression": "true"}]}}, 7, "spec.validations[0].message: Required value"),
        ({"spec": {"validations": [FEW, FEW]}}, 11, 'spec.validations[1].name: Duplicate value: "few"'),
        (
            {"spec": {"validations": [FEW | {"expression": "plan.summary.pods < 3"}]}},
            8,
            "spec.validations[0].expression: line 1, column 13 of the expression: undefined field 'pods' not found in struct 'Summary'",
        ),
        (
            {"spec": {"validations": [FEW | {"messageExpression": "1"}]}},
            10,
            "spec.validations[0].messageExpression: line 1, column 1 of the expression: its value is of type int",
        ),
    ],
)
def test_a_policy_that_is_wrong_ends_the_command_with_its_place(
    change: dict[str, Any], line: int, reason: str, engine: Engine, written: Any
) -> None:
    file = written(policy(FEW) | change)

    answer = engine("sync", "-f", FIRST, "--policy", file)

    assert answer.code == Exit.FAILED
    assert answer.err.startswith(f"engine: {file}:{line}: {reason}")


def test_a_number_beyond_64_bits_is_a_float_as_in_every_manifest(engine: Engine, written: Any) -> None:
    fits, exceeded = (engine(*OFFLINE, "--policy", written(policy(FEW, params={"most": most}))) for most in (2**63, -(2**70)))

    assert [fits.code, exceeded.code] == [Exit.DONE, Exit.DENIED]


def test_all_faults_of_all_documents_are_told_with_the_nearest_known_names(engine: Engine, tmp_path: Path) -> None:
    head = "apiVersion: engine.grove.io/v1alpha1\nkind: PlanPolicy\n"
    one = f"{head}metadata: {{nmae: one}}\nspec: {{parms: {{}}, validations: [{{name: a, expresion: 'true', message: m}}]}}\n"
    two = "apiVersion: engine.grove.io/v1alpha1\nkind: PlanPolcy\nmetadata: {name: two}\n"
    (tmp_path / "p.yaml").write_text(f"{one}---\n{two}")

    answer = engine(*OFFLINE, "--policy", tmp_path / "p.yaml")

    assert answer.code == Exit.FAILED
    for message in (
        "p.yaml:3: metadata.nmae: unknown field: did you mean name?",
        "p.yaml:4: spec.parms: unknown field: did you mean params?",
        "p.yaml:4: spec.validations[0].expresion: unknown field: did you mean expression?",
        "p.yaml:6: PlanPolcy is no PlanPolicy of engine.grove.io/v1alpha1; did you mean PlanPolicy?",
    ):
        assert message in answer.err, answer.err


def test_two_policies_of_one_name_are_refused(engine: Engine, written: Any) -> None:
    answer = engine(*OFFLINE, "--policy", written(policy(FEW), policy(FEW)))

    assert (answer.code, "the policy p appears twice, first at" in answer.err) == (Exit.FAILED, True)


def test_a_file_without_a_policy_is_refused(engine: Engine, tmp_path: Path) -> None:
    empty = tmp_path / "empty.yaml"
    empty.write_text("# nothing\n")

    missing, folder, without = (engine(*OFFLINE, "--policy", path) for path in (tmp_path / "none.yaml", tmp_path / "x", empty))

    assert [missing.code, folder.code, without.code] == [Exit.USAGE, Exit.USAGE, Exit.FAILED]
    assert "there is no PlanPolicy in it" in without.err


@pytest.mark.parametrize(
    ("waiver", "reason"),
    [
        ("p/none=because", "there is no rule p/none; there are: p/few"),
        ("few=because", "there is no rule few"),
        ("p/few", "must be POLICY/RULE=REASON, with a reason"),
        ("p/few= ", "must be POLICY/RULE=REASON, with a reason"),
        ("\x1b[31m=x", r"there is no rule \x1b[31m"),
    ],
)
def test_a_waiver_of_nothing_is_a_usage_error(waiver: str, reason: str, engine: Engine, written: Any) -> None:
    answer = engine(*OFFLINE, "--policy", written(policy(FEW)), "--waive", waiver)

    assert (answer.code, reason in answer.err) == (Exit.USAGE, True), answer.err


def test_waivers_need_policies_and_policies_the_forecast(engine: Engine, written: Any) -> None:
    without = engine(*OFFLINE, "--waive", "p/few=x")
    only_next = engine(*OFFLINE, "--next", "--policy", written(policy(FEW)))

    assert [without.code, only_next.code] == [Exit.USAGE, Exit.USAGE]


def test_a_change_of_manifests_is_judged_by_what_it_changes_and_by_todays_calendar(engine: Engine, written: Any, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    changed = tmp_path / "new" / "gang.yaml"
    changed.write_text((FIRST / "gang.yaml").read_text().replace("nginx:1.29-alpine", "nginx:1.30-alpine"))
    restarts = FEW | {"expression": "plan.summary.podsRestarted <= params.most", "messageExpression": "string(plan.summary.podsRestarted)"}
    today = FEW | {"name": "today", "expression": 'now > timestamp("2020-01-01T00:00:00Z")'}
    policies = written(policy(restarts, today))

    answer = engine("diff", "--base", FIRST, "-f", changed, "--policy", policies)
    waived = engine("diff", "--base", FIRST, "-f", changed, "--policy", policies, "--waive", "p/few=ok", "-o", "json")

    assert (answer.code, answer.out.splitlines()[0], waived.code) == (Exit.DENIED, "denied by p/few: 3", Exit.DONE)
    assert [each["rule"] for each in waived.document["policy"]["waived"]] == ["p/few"]


def test_a_denied_sync_writes_nothing(box: Box, engine: Engine, written: Any) -> None:
    file = written(policy(FEW, FEW | {"name": "warn", "action": "Warn"}))
    before = box.revisions()

    answer = engine("sync", "-f", FIRST, "--policy", file)
    quiet = engine("sync", "-q", "-f", FIRST, "--policy", file)
    document = engine("sync", "-f", FIRST, "--policy", file, "-o", "json")
    dry = engine("sync", "-f", FIRST, "--policy", file, "--dry-run")

    assert (box.revisions(), box.names(PODCLIQUESET)) == (before, [])
    assert {answer.code, quiet.code, document.code, dry.code} == {Exit.DENIED}
    assert answer.out.splitlines() == [
        "denied by p/few: too many pods",
        "warned by p/warn: too many pods",
        "exit 3: denied by policy or guard",
    ]
    assert (quiet.out, quiet.err) == ("", "engine: denied by p/few: too many pods\nexit 3: denied by policy or guard\n")
    assert (document.document["ending"], document.document["results"]) == ("denied", [])
    assert [each["rule"] for each in document.document["left"]["policy"]["denied"]] == ["p/few"]


def test_a_sync_that_is_allowed_tells_what_it_is_warned_of_and_what_is_waived(box: Box, engine: Engine, written: Any) -> None:
    words = ("--policy", written(policy(FEW, FEW | {"name": "warn", "action": "Warn"})), "--waive", "p/few=agreed")

    answer = engine("sync", "-f", FIRST, *words)
    box.scale("first", 2)
    document = engine("sync", "-o", "json", *words)

    assert (answer.code, document.code, len(box.names(POD))) == (Exit.DONE, Exit.DONE, 6)
    assert answer.errors.splitlines()[:2] == ["warned by p/warn: too many pods", "waived p/few: too many pods (reason: agreed)"]
    assert document.document["left"]["policy"]["waived"][0]["reason"] == "agreed"


def test_rules_see_what_follows_the_first_pass(box: Box, engine: Engine, written: Any) -> None:
    engine("sync", "-f", FIRST)
    box.change(PODCLIQUESET, "first", {"metadata": {"annotations": {"example.com/keep": "yes"}}})
    box.delete(PODCLIQUESET, "first")
    file = ROOT / "examples" / "policies" / "protected.yaml"

    preview = engine("diff", "--policy", file)
    gone = FEW | {"expression": "plan.summary.podsRemoved < 3 && plan.operations.exists(o, o.stage > 0)", "message": "three pods go"}

    assert (preview.code, preview.out.splitlines()[0]) == (
        Exit.DENIED,
        "denied by protected/sets (PodCliqueSet/default/first): a set with the annotation example.com/keep would be deleted",
    )
    assert "denied by p/few: three pods go" in engine("diff", "--policy", written(policy(gone))).out


def test_a_deletion_is_judged_too(box: Box, engine: Engine, written: Any) -> None:
    engine("sync", "-f", FIRST)
    gone = FEW | {"expression": "!plan.sets.exists(s, s.isDeleted && s.replicas.after == 0)", "message": "nothing is deleted here"}
    words = ("delete", "first", "--policy", written(policy(gone)))

    dry, refused = engine(*words, "--dry-run"), engine(*words, "--yes")
    assert (dry.code, refused.code, box.names(PODCLIQUESET)) == (Exit.DENIED, Exit.DENIED, ["first"])
    assert "denied by p/few: nothing is deleted here" in dry.out.splitlines()
    assert refused.out.splitlines()[0] == "denied by p/few: nothing is deleted here"

    allowed = engine(*words, "--yes", "--waive", "p/few=moved away")
    assert (allowed.code, box.names(PODCLIQUESET)) == (Exit.DONE, [])


def test_guards_are_told_in_the_same_form(box: Box, engine: Engine) -> None:
    engine("sync", "-f", FIRST)
    (root,) = box.all(PODCLIQUESET)
    box.create(SERVICE, obsolete("old", root))

    words = ("sync", "--dry-run", "--max-deletes", "0")
    (denied,) = engine(*words, "-o", "json").document["policy"]["denied"]

    assert (denied["rule"], denied["object"]["name"]) == ("delete-budget", "first")
    assert denied["message"].startswith("1 unintended deletes, 0 allowed")
    assert f"  denied by delete-budget: {denied['message']}" in engine(*words).out.splitlines()


def test_policies_that_match_no_workload_say_so(engine: Engine, written: Any) -> None:
    elsewhere = {"matchConditions": [{"name": "production", "expression": "set.namespace == 'production'"}]}
    answer = engine(*OFFLINE, "--policy", written(policy(FEW, name="prod", **elsewhere), policy(FEW, params={"most": 9})))

    assert (answer.code, answer.out.splitlines()[0]) == (Exit.DONE, "note: no workload that changes matches prod")
