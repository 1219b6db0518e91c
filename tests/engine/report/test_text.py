"""What a person reads of a plan."""

from datetime import UTC, datetime
from html import unescape

import pytest
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.operation import Cause, Change, Operation
from engine.plan import Enforcement, Judgement, Objection, Plan, Violation, Wait
from engine.reason import Reason
from engine.report.html.document import html
from engine.report.json import document, printed
from engine.report.markdown.document import markdown
from engine.report.model import NEW_ROOT, Report, compose
from engine.report.text import MOST, ROWS, text
from engine.resource import NOW
from engine.verb import Verb
from tests.engine.report.hostile import HOSTILE
from tests.engine.report.plans import ROOT, change, operation, patch, pod, replica_of, report_of
from tests.laws.toy import START

AT = datetime(2026, 1, 2, tzinfo=UTC)


def text_of(report: Report, verbose: bool = False) -> str:
    """The whole text of a report."""
    return "\n".join(line.text for line in text(report, verbose=verbose))


def every_verb() -> Report:
    """A report with an operation of every verb."""
    service = ResourceId("", "Service", "default", "simple-0")
    return report_of(
        operation(Verb.CREATE, pod("simple-0-a-x7k2q"), "pod 0 of simple-0-a", Cause.DRIFT, reason=Reason.MISSING),
        patch(service, change("spec.clusterIP", "10.0.0.1", "None", Cause.DRIFT), why="headless Service"),
        operation(Verb.DELETE, pod("simple-1-a-b2b2b"), "replicas 2 → 1", reason=Reason.SCALED_IN),
        operation(Verb.REPLACE, ResourceId("", "Secret", "default", "simple-token"), "its type cannot change"),
        operation(
            Verb.RELEASE,
            ResourceId("grove.io", "PodClique", "default", "simple-1-a"),
            "its pods are gone",
            body={"finalizers": ["ours"]},
            reason=Reason.SCALED_IN,
        ),
        operation(Verb.STATUS, ROOT, "1 of 2 replicas updated", Cause.STATUS, reason=Reason.STATUS_CHANGED),
    )


def test_a_report_has_a_headline_a_line_for_each_change_with_its_reason_and_the_number_of_statuses() -> None:
    assert text_of(every_verb()).splitlines() == [
        "default/simple: scale in and update and repair",
        "  now      - delete Pod/simple-1-a-b2b2b   ScaledIn",
        "           ⊘ release PodClique/simple-1-a   ScaledIn",
        "           + create Pod/simple-0-a-x7k2q   Missing",
        '           ~ patch clusterIP: "10.0.0.1" → "None" in Service/simple-0   Drifted',
        "           ± replace Secret/simple-token   TemplateChanged",
        "Plan: 1 to create, 1 to patch, 1 to replace, 1 to release, 1 to delete.",
        "Besides, 1 status is brought up to date; -v shows it.",
    ]


def test_on_demand_every_operation_has_its_reason_its_sentence_its_cause_and_its_fields() -> None:
    lines = text_of(every_verb(), verbose=True).splitlines()

    assert lines[6:-2] == [
        "  replica 1",
        "  - delete   Pod/simple-1-a-b2b2b  ScaledIn: replicas 2 → 1 (intent)",
        "  ⊘ release  PodClique/simple-1-a  ScaledIn: its pods are gone (intent)",
        "      finalizers: ours",
        "  ± replace  Secret/simple-token  TemplateChanged: its type cannot change (intent)",
        "  ~ status   PodCliqueSet/simple  StatusChanged: 1 of 2 replicas updated (status)",
        "  replica 0",
        "  ~ patch    Service/simple-0      Drifted: headless Service (drift)",
        '      spec.clusterIP: "10.0.0.1" → "None"',
        "  + create   Pod/simple-0-a-x7k2q  Missing: pod 0 of simple-0-a (drift)",
    ]


def test_a_change_that_many_objects_repeat_is_told_once_and_hashes_never() -> None:
    clique = ResourceId("grove.io", "PodClique", "default", "simple-0-a")
    root = patch(ROOT, change("spec.template.cliques.[a].spec.podSpec.containers.[main].image", "a:1", "a:2"))
    copies = [
        patch(
            clique._replace(name=f"simple-{number}-a"),
            change("spec.podSpec.containers.[main].image", "a:1", "a:2"),
            change("metadata.labels.pod-template-hash", f"{number}", f"{number}{number}"),
            seal="pod-template-hash",
        )
        for number in range(3)
    ]

    assert text_of(report_of(root, *copies)).splitlines()[1:-1] == [
        '  now      ~ patch podSpec.containers[main].image: "a:1" → "a:2"',
        "             in PodCliqueSet/simple, 3 PodCliques   TemplateChanged",
    ]
    assert "hash" not in text_of(report_of(root, *copies)) + text_of(report_of(root, *copies), verbose=True)


def test_what_a_reviewer_decides_on_comes_first_in_every_format() -> None:
    main = "spec.template.cliques.[a].spec.podSpec.containers.[main]"
    order = [
        f"{main}.image",
        "spec.template.cliques.[a].spec.podSpec.initContainers.[prep].image",
        f"{main}.command.[0]",
        f"{main}.args.[0]",
        f"{main}.env.[A].value",
        f"{main}.resources.limits.cpu",
        "spec.template.cliques.[a].spec.replicas",
        "spec.template.cliques.[a].spec.minAvailable",
        f"{main}.livenessProbe.periodSeconds",
        "spec.template.cliques.[a].labels.image",
    ]
    values = [f'"v{at}"' for at in range(len(order))]
    changes = sorted((change(path, value.strip('"'), "new") for path, value in zip(order, values, strict=True)), key=lambda each: each.path)
    alone, many = report_of(patch(ROOT, *changes)), report_of(*(patch(pod(f"simple-{at}"), one) for at, one in enumerate(changes)))

    shown = [text_of(alone), text_of(many), text_of(alone, verbose=True), markdown(alone), unescape(html(alone, AT))]
    for each in shown:
        named = [value for value in values if value in each]  # Those of environment variables are masked in documents.
        assert len(named) >= len(order) - 1 and sorted(named, key=each.rindex) == named, each


def test_what_is_added_and_too_long_for_a_line_is_told_field_by_field() -> None:
    container = {"name": "side", "image": "s" * 60, "env": [{"name": "Z", "value": ""}], "securityContext": {"runAsUser": 0, "x": "y" * 70}}
    added = patch(ROOT, Change(("spec", "containers", "[side]"), None, container, Cause.INTENT))
    lines = [line.strip().removeprefix("now      ") for line in text_of(report_of(added)).splitlines() if "~ patch" in line]

    assert [line.removeprefix("~ patch containers[side].").partition(": ")[0] for line in lines] == [
        "image",
        "env",
        "name",
        "securityContext",
    ]
    assert 'env: (absent) → [{"name":"Z","value":""}]' in lines[1] and '→ {"runAsUser":0,' in lines[3]
    assert "containers[side]" in markdown(report_of(added)) and "runAsUser" in html(report_of(added), AT)


def numbered(*values: tuple[object, object]) -> Report:
    """A report in which a field of some pods changes."""
    names = (f"simple-{number}-a-b2b2b" for number in range(len(values)))
    return report_of(*(patch(pod(name), change("spec.priority", *value)) for name, value in zip(names, values, strict=True)))


def test_values_that_differ_in_numbers_share_a_line_that_has_all_of_them() -> None:
    report = numbered((1, 0), (1, 7), (2, 9), (1, 0))

    assert "priority: {1..2} → {0,7,9} in 4 Pods" in text_of(report)
    assert all("{1..2}" in document and "{0,7,9}" in document for document in (markdown(report), html(report, AT)))


def test_a_change_to_zero_is_not_told_as_one_to_another_number() -> None:
    report = numbered((1, 0), (1, 7))

    assert text_of(report).splitlines()[1:3] == [
        "  now      ~ patch priority: 1 → 0 in Pod/simple-0-a-b2b2b   TemplateChanged",
        "           ~ patch priority: 1 → 7 in Pod/simple-1-a-b2b2b   TemplateChanged",
    ]


def test_names_in_an_order_cannot_control_the_terminal_or_look_like_other_names() -> None:
    order = patch(ROOT, Change(("spec", "containers"), ["a, b", "\x1b[2J"], ["\x1b[2J", "a, b"], Cause.INTENT, order=True))

    assert r'containers: order ["a, b", "\u001b[2J"] → ["\u001b[2J", "a, b"]' in text_of(report_of(order))


def test_objects_of_which_only_a_hash_changes_are_named() -> None:
    label = patch(pod("simple-0-a-b2b2b"), change("metadata.labels.pod-template-hash", "1", "2"), seal="pod-template-hash")

    assert "~ patch Pod/simple-0-a-b2b2b   TemplateChanged" in text_of(report_of(label))


def test_where_only_statuses_are_out_of_date_there_is_nothing_to_tell() -> None:
    status = operation(Verb.STATUS, ROOT, "1 of 2 replicas updated", Cause.STATUS, reason=Reason.STATUS_CHANGED)

    assert text_of(report_of(status)).splitlines() == ["No changes.", "Besides, 1 status is brought up to date; -v shows it."]


def test_later_blocked_and_pending_objects_have_a_mark_a_reason_and_a_time() -> None:
    until = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    report = report_of(
        deferred=(
            Wait(pod("simple-0-a-b2b2b"), "Pod objects could not be listed completely", blocked=True),
            Wait(pod("simple-0-b-b2b2b"), "replica 1 is updated first"),
            Wait(pod("simple-0-c-b2b2b"), "replica 1 is updated first"),
        ),
        pending=(Wait(pod("simple-0-a-x7k2q"), "not ready", until),),
    )

    assert (
        text_of(report)
        == """\
default/simple: BLOCKED
  ! blocked  Pod/simple-0-a-b2b2b  Pod objects could not be listed completely
  ? later    2 Pods: simple-0-b-b2b2b, simple-0-c-b2b2b  replica 1 is updated first
  · pending  Pod/simple-0-a-x7k2q  not ready (until 2026-01-02T03:04:05Z)
No changes: 2 later, 1 blocked, 1 pending."""
    )


def test_a_plan_without_anything_is_one_line() -> None:
    assert text_of(report_of()) == "No changes."


def test_an_unintended_delete_says_so() -> None:
    assert "TemplateChanged, unintended" in text_of(report_of(operation(Verb.DELETE, pod("simple-0-a-b2b2b"), intended=False)))


def test_refusals_errors_and_problems_come_before_the_operations() -> None:
    plan = Plan(
        ROOT,
        (operation(Verb.CREATE, pod("simple-0-a-x7k2q")),),
        objections=(Objection("budget", "too many"),),
        problems=("no such clique",),
        error=KeyError("x"),
    )
    report = compose([plan], replica_of, objections=(Objection("refuse-to-wipe", "no root at all"),), incomplete={"Pod": "403"})

    assert [line.text for line in text(report)][:6] == [
        "denied by refuse-to-wipe: no root at all",
        "incomplete: Pod objects could not be listed completely (403); none of them is deleted",
        "default/simple: update, DENIED, INVALID",
        "  denied by budget: too many",
        "  internal error: KeyError: 'x'; nothing is changed for this root; please report it",
        "  problem: no such clique",
    ]


def test_five_hundred_replicas_fit_on_a_screen() -> None:
    pods = [
        operation(Verb.CREATE, pod(f"simple-{i}-a-{suffix}"), f"pod of replica {i}") for i in range(500) for suffix in ("b2b2b", "x7k2q")
    ]
    services = [operation(Verb.CREATE, ResourceId("", "Service", "default", f"simple-{i}")) for i in range(500)]
    deleted = operation(Verb.DELETE, pod("simple-7-a-zzzzz"), "the pod has ended (Failed)", reason=Reason.POD_ENDED)

    assert text_of(report_of(*pods, *services, deleted)).splitlines() == [
        "default/simple: update and repair",
        "  now      - delete Pod/simple-7-a-zzzzz   PodEnded: the pod has ended (Failed)",
        "           + create 1500 objects: 1000 Pods, 500 Services   TemplateChanged",
        "Plan: 1500 to create, 1 to delete.",
    ]


def test_changes_are_one_only_when_their_values_are() -> None:
    rolled = [patch(pod(f"simple-{i}-a-b2b2b"), change("spec.image", "app:1", "app:2")) for i in range(50)]
    odd = patch(pod("simple-50-a-b2b2b"), change("spec.image", "app:1", "evil"))

    assert text_of(report_of(*rolled, odd)).splitlines()[1:-1] == [
        '  now      ~ patch image: "app:1" → "app:2" in 50 Pods   TemplateChanged',
        '           ~ patch image: "app:1" → "evil" in Pod/simple-50-a-b2b2b   TemplateChanged',
    ]


def test_long_values_are_shown_from_where_they_differ() -> None:
    long = "--flag=" + "x" * 300

    report = report_of(patch(pod("p"), change("spec.args", f"{long}1", f"{long}2")))
    line = text_of(report, verbose=True).splitlines()[-2]

    assert line == '      spec.args: "…{0}1" → "…{0}2"'.format("x" * 24).replace('"…', "…")


def test_verbose_lists_everything() -> None:
    pods = [operation(Verb.CREATE, pod(f"simple-{i}-a-b2b2b")) for i in range(ROWS * 2)]

    assert text_of(report_of(*pods), verbose=True).count("\n  + create ") == ROWS * 2


def test_an_object_that_blocks_two_workloads_counts_twice_and_once_for_a_graph_and_its_set() -> None:
    quota = Wait(ResourceId("", "ResourceQuota", "default", "team"), "it is used up", blocked=True)
    graph = ResourceId("nvidia.com", "DynamoGraphDeployment", "default", "a-longer-name")
    other = ROOT._replace(name="other")
    plans = [Plan(ROOT, deferred=(quota,), parent=graph), Plan(graph, deferred=(quota,)), Plan(other, deferred=(quota,))]
    report = compose(plans, lambda root, child: "")

    assert text_of(report).splitlines()[-1] == "No changes: 2 blocked."


def test_a_thousand_roots_are_cut_and_the_rest_counted_with_deletes_and_what_is_blocked_first() -> None:
    plans = [
        Plan(ROOT._replace(name=f"set-{i}"), (operation(Verb.DELETE if i == 900 else Verb.CREATE, pod(f"set-{i}-a")),)) for i in range(1000)
    ]
    plans[800] = replace(plans[800], deferred=(Wait(pod("set-800-b"), "the API server refuses it", blocked=True),))
    lines = [line.text for line in text(compose(plans, replica_of))]

    heads = [line for line in lines[:6] if line.startswith("default/")]
    assert heads[:2] == ["default/set-900: update", "default/set-800: update, BLOCKED"]
    assert len(lines) < ROWS + 5
    assert lines[-2].startswith("… and ") and lines[-1] == "Plan: 999 to create, 1 to delete; 1 blocked."


@pytest.mark.parametrize("poison", ["\x1b[2J", "\u202e", "\u009b31m", "\r", "\n", "\u2028", "\u200b"])
def test_no_text_of_the_cluster_controls_the_terminal(poison: str) -> None:
    evil = f"a{poison}b"
    report = compose(
        [
            Plan(
                ROOT._replace(name=evil),
                (
                    patch(pod(evil), change(f"metadata.annotations.{evil}", evil, evil + "!"), why=evil),
                    operation(Verb.RELEASE, pod(evil), evil, body={"finalizers": [evil]}),
                ),
                deferred=(Wait(pod(evil), evil), Wait(pod(evil), evil, blocked=True)),
                pending=(Wait(pod(evil), evil),),
                objections=(Objection("budget", evil),),
                problems=(evil,),
                error=ValueError(evil),
                notes=(evil,),
            )
        ],
        lambda _root, _child: evil,
        objections=(Objection("wipe", evil),),
        incomplete={"Pod": evil},
    )

    assert all(poison not in line.text for line in text(report))
    assert all(poison not in line.text for line in text(report, verbose=True))


def test_the_time_of_writing_is_shown_as_a_mark() -> None:
    def status(number: int) -> Operation:
        changes = (change("status.conditions", None, [{"type": "Ready", "lastTransitionTime": NOW}]),)
        return operation(Verb.STATUS, pod(f"simple-{number}-a"), "its status is out of date", changes=changes)

    lines = text_of(report_of(*map(status, range(50))), verbose=True).splitlines()

    assert lines[2:4] == [
        "  ~ status   Pod/simple-0-a  TemplateChanged: its status is out of date (intent)",
        '      status.conditions: (absent) → [{"type":"Ready","lastTransitionTime":"(time of writing)"}]',
    ]


def test_the_remedy_at_the_end_of_the_reason_of_a_blocked_object_is_shown() -> None:
    why = f"the set must be replaced: {'changes ' * 30}; allow it with --allow-replace"

    assert why in text_of(report_of(deferred=(Wait(ROOT, why, blocked=True),)))


def test_a_new_nested_root_has_the_note_about_names_only_if_its_root_exists() -> None:
    nested = ResourceId("grove.io", "PodCliqueSet", "default", "nested")
    inner = Plan(nested, (operation(Verb.CREATE, nested),), parent=ROOT)
    both = compose([Plan(ROOT, (operation(Verb.CREATE, ROOT),)), inner], replica_of)
    only = compose([Plan(ROOT), inner], replica_of)

    assert [NEW_ROOT in root.notes for root in both.roots] == [True, False]
    assert [NEW_ROOT in root.notes for root in only.roots if root.root == nested] == [True]


def test_an_object_that_a_root_and_its_nested_root_wait_for_is_counted_once() -> None:
    waits = (Wait(pod("a"), "not ready"),)
    graph = ROOT._replace(group="nvidia.com", kind="DynamoGraphDeployment")
    report = compose([Plan(ROOT, pending=waits, parent=graph), Plan(graph, pending=(*waits, Wait(pod("b"), "not ready")))], replica_of)

    assert text_of(report).endswith("No changes: 2 pending.")


DENIED = Violation("p/deny", Enforcement.DENY, "no")
WARNED = Violation("p/warn", Enforcement.WARN, "careful", ROOT)
AUDITED = Violation("p/audit", Enforcement.AUDIT, "noted")


def judged(*violations: Violation, notes: tuple[str, ...] = ()) -> Report:
    """A report of one operation about which policies say this."""
    return replace(report_of(operation(Verb.DELETE, pod("simple-0-worker-aaaaa"))), judgement=Judgement(violations, notes))


def lines(report: Report, *, verbose: bool = False) -> list[str]:
    """The report as text, up to the first workload."""
    listed = [line.text for line in text(report, verbose=verbose)]
    return listed[: listed.index("default/simple: update")]


def test_what_denies_comes_first_and_what_is_only_recorded_not_at_all() -> None:
    waived = replace(DENIED, rule="p/waived", waived="agreed"), replace(AUDITED, rule="p/other", waived="agreed")

    assert lines(judged(AUDITED, WARNED, DENIED, *waived, notes=("p/x is ignored",))) == [
        "denied by p/deny: no",
        "warned by p/warn (PodCliqueSet/default/simple): careful",
        "waived p/waived: no (reason: agreed)",
        "note: p/x is ignored",
    ]


def test_only_open_violations_that_deny_deny() -> None:
    assert judged(DENIED).denied
    assert not judged(WARNED, AUDITED, replace(DENIED, waived="agreed")).denied


def test_many_violations_are_counted_unless_everything_is_wanted() -> None:
    report = judged(*(replace(WARNED, rule=f"p/{number}") for number in range(MOST + 3)))

    assert lines(report)[-1] == "… and 3 more like these; -v shows all"
    assert (len(lines(report)), len(lines(report, verbose=True))) == (MOST + 1, MOST + 3)


@pytest.mark.parametrize("nasty", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_is_in_it_is_harmless(nasty: str) -> None:
    about = ResourceId("grove.io", "PodCliqueSet", nasty, nasty)
    violation = Violation(f"p/{nasty}", Enforcement.DENY, nasty, about)
    report = judged(violation, replace(violation, waived=nasty), notes=(nasty,))

    shown = lines(report)
    assert len(shown) == 3
    assert all(line.isprintable() and len(line) < 2_000 for line in shown)
    assert all(character.isprintable() or character == "\n" for character in printed(document(report)))
    page = html(report, START)
    assert page.isascii() and "<script" not in page and "<img" not in page
