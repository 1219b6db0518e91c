"""What a person reads of a plan."""

from datetime import UTC, datetime

import pytest

from engine.ids import ResourceId
from engine.operation import Cause, Operation
from engine.plan import Objection, Plan, Wait
from engine.report.model import NEW_ROOT, Report, compose
from engine.report.text import ROWS, text
from engine.resource import NOW
from engine.verb import Verb
from tests.engine.report.plans import ROOT, change, operation, patch, pod, replica_of, report_of


def text_of(report: Report, verbose: bool = False) -> str:
    """The whole text of a report."""
    return "\n".join(line.text for line in text(report, verbose=verbose))


def test_every_verb_has_its_mark_and_its_word_and_every_operation_its_reason_and_cause() -> None:
    service = ResourceId("", "Service", "default", "simple-0")
    report = report_of(
        operation(Verb.CREATE, pod("simple-0-a-x7k2q"), "pod 0 is missing"),
        patch(service, change("spec.clusterIP", "10.0.0.1", "None", Cause.DRIFT), why="somebody edited it"),
        operation(Verb.DELETE, pod("simple-1-a-b2b2b"), "replicas 2 → 1"),
        operation(Verb.REPLACE, ResourceId("", "Secret", "default", "simple-token"), "its type cannot change"),
        operation(
            Verb.RELEASE, ResourceId("grove.io", "PodClique", "default", "simple-1-a"), "its pods are gone", body={"finalizers": ["ours"]}
        ),
        operation(Verb.STATUS, ROOT, "a replica became ready"),
    )

    assert (
        text_of(report)
        == """\
PodCliqueSet/default/simple
  replica 1
  - delete   Pod/simple-1-a-b2b2b  replicas 2 → 1 (intent)
  ⊘ release  PodClique/simple-1-a  its pods are gone (intent)
      finalizers: ours
  ± replace  Secret/simple-token  its type cannot change (intent)
  ~ status   PodCliqueSet/simple  a replica became ready (intent)
  replica 0
  ~ patch    Service/simple-0      somebody edited it (drift)
      spec.clusterIP: "10.0.0.1" → "None"
  + create   Pod/simple-0-a-x7k2q  pod 0 is missing (intent)
Plan: 1 to create, 1 to patch, 1 to replace, 1 to release, 1 to delete, 1 to update in status."""
    )


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
PodCliqueSet/default/simple
  ? later    Pod/simple-0-b-b2b2b  replica 1 is updated first
  ? later    Pod/simple-0-c-b2b2b  replica 1 is updated first
  ! blocked  Pod/simple-0-a-b2b2b  Pod objects could not be listed completely
  · pending  Pod/simple-0-a-x7k2q  not ready (until 2026-01-02T03:04:05Z)
No operations: 2 later, 1 blocked, 1 pending."""
    )


def test_a_plan_without_anything_is_one_line() -> None:
    assert text_of(report_of()) == "No operations."


def test_an_unintended_delete_says_so() -> None:
    assert "(intent, unintended)" in text_of(report_of(operation(Verb.DELETE, pod("simple-0-a-b2b2b"), intended=False)))


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
        "PodCliqueSet/default/simple",
        "  denied by budget: too many",
        "  internal error: KeyError: 'x'; nothing is changed for this root; please report it",
        "  problem: no such clique",
    ]


def test_five_hundred_replicas_fit_on_a_screen() -> None:
    pods = [
        operation(Verb.CREATE, pod(f"simple-{i}-a-{suffix}"), f"pod of replica {i}") for i in range(500) for suffix in ("b2b2b", "x7k2q")
    ]
    services = [operation(Verb.CREATE, ResourceId("", "Service", "default", f"simple-{i}")) for i in range(500)]
    deleted = operation(Verb.DELETE, pod("simple-7-a-zzzzz"), "it failed")

    assert (
        text_of(report_of(*pods, *services, deleted))
        == """\
PodCliqueSet/default/simple
  - delete   Pod/simple-7-a-zzzzz           it failed (intent)
  + create   Pod/simple-{0..499}-a-* ×1000  pod of replica {0..499} (intent)
  + create   Service/simple-{0..499} ×500   its template has changed (intent)
Plan: 1500 to create, 1 to delete."""
    )


def test_operations_are_alike_only_when_their_changes_are() -> None:
    rolled = [patch(pod(f"simple-{i}-a-b2b2b"), change("spec.image", "app:1", "app:2")) for i in range(50)]
    odd = patch(pod("simple-50-a-b2b2b"), change("spec.image", "app:1", "evil"))

    assert text_of(report_of(*rolled, odd)).splitlines()[1:-1] == [
        "  ~ patch    Pod/simple-{0..49}-a-* ×50  the template changed (intent)",
        "      e.g. simple-0-a-b2b2b",
        '      spec.image: "app:1" → "app:2"',
        "  ~ patch    Pod/simple-50-a-b2b2b       the template changed (intent)",
        '      spec.image: "app:1" → "evil"',
    ]


def test_long_values_are_shown_from_where_they_differ() -> None:
    long = "--flag=" + "x" * 300

    (line,) = [line.text for line in text(report_of(patch(pod("p"), change("spec.args", f"{long}1", f"{long}2")))) if "→" in line.text]

    assert line == '      spec.args: "…{0}1" → "…{0}2"'.format("x" * 24).replace('"…', "…")


def test_verbose_lists_everything() -> None:
    pods = [operation(Verb.CREATE, pod(f"simple-{i}-a-b2b2b")) for i in range(ROWS * 2)]

    assert text_of(report_of(*pods), verbose=True).count("+ create") == ROWS * 2


def test_a_thousand_roots_are_cut_and_the_rest_counted_with_the_deletes_first() -> None:
    plans = [
        Plan(ROOT._replace(name=f"set-{i}"), (operation(Verb.DELETE if i == 900 else Verb.CREATE, pod(f"set-{i}-a")),)) for i in range(1000)
    ]
    lines = [line.text for line in text(compose(plans, replica_of))]

    assert lines[0] == "PodCliqueSet/default/set-900"
    assert len(lines) < ROWS + 5
    assert lines[-2].startswith("… and ") and lines[-1] == "Plan: 999 to create, 1 to delete."


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


def test_the_time_of_writing_is_shown_as_a_mark_also_in_groups() -> None:
    def status(number: int) -> Operation:
        changes = (change("status.conditions", None, [{"type": "Ready", "lastTransitionTime": NOW}]),)
        return operation(Verb.STATUS, pod(f"simple-{number}-a"), "its status is out of date", changes=changes)

    lines = text_of(report_of(*map(status, range(50)))).splitlines()

    assert lines[1:4] == [
        "  ~ status   Pod/simple-{0..49}-a ×50  its status is out of date (intent)",
        "      e.g. simple-0-a",
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
    report = compose([Plan(ROOT, pending=waits), Plan(ROOT._replace(name="b"), pending=(*waits, Wait(pod("b"), "not ready")))], replica_of)

    assert text_of(report).endswith("No operations: 2 pending.")
