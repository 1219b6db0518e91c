"""What a reader sees of a plan."""

from datetime import UTC, datetime

import pytest

from engine.ids import ResourceId
from engine.operation import Cause
from engine.plan import Objection, Plan, Wait
from engine.report.model import Report, compose
from engine.report.text import ROWS, text
from engine.verb import Verb
from tests.engine.report.plans import ROOT, change, operation, patch, pod, replica_of, report_of


def told(report: Report, verbose: bool = False) -> str:
    """The whole text."""
    return "\n".join(line.text for line in text(report, verbose=verbose))


def test_every_verb_has_its_mark_and_its_word_and_every_operation_its_reason_and_cause() -> None:
    service = ResourceId("", "Service", "default", "simple-0")
    report = report_of(
        operation(Verb.CREATE, pod("simple-0-a-x7k2q"), "seat 0 is empty"),
        patch(service, change("spec.clusterIP", "10.0.0.1", "None", Cause.DRIFT), why="somebody edited it"),
        operation(Verb.DELETE, pod("simple-1-a-b2b2b"), "replicas 2 → 1"),
        operation(Verb.REPLACE, ResourceId("", "Secret", "default", "simple-token"), "its type cannot change"),
        operation(
            Verb.RELEASE, ResourceId("grove.io", "PodClique", "default", "simple-1-a"), "its pods are gone", body={"finalizers": ["ours"]}
        ),
        operation(Verb.STATUS, ROOT, "a replica became ready"),
    )

    assert (
        told(report)
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
  + create   Pod/simple-0-a-x7k2q  seat 0 is empty (intent)
Plan: 1 to create, 1 to patch, 1 to replace, 1 to release, 1 to delete, 1 to update in status."""
    )


def test_a_hold_and_a_wait_say_why_and_until_when() -> None:
    until = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    report = report_of(
        deferred=(Wait(pod("simple-0-a-b2b2b"), "not every Pod could be seen"),),
        pending=(Wait(pod("simple-0-a-x7k2q"), "not ready", until),),
    )

    assert (
        told(report)
        == """\
PodCliqueSet/default/simple
  ? held     Pod/simple-0-a-b2b2b  not every Pod could be seen
  · waits    Pod/simple-0-a-x7k2q  not ready (until 2026-01-02T03:04:05Z)
No operations: 1 held; 1 waiting for the cluster."""
    )


def test_a_world_as_desired_says_so_in_one_line() -> None:
    assert told(report_of()) == "No operations."


def test_a_delete_that_nobody_asked_for_says_so() -> None:
    assert "(intent, nobody asked for it)" in told(report_of(operation(Verb.DELETE, pod("simple-0-a-b2b2b"), intended=False)))


def test_refusals_and_faults_stand_before_what_would_be_done() -> None:
    plan = Plan(
        ROOT,
        (operation(Verb.CREATE, pod("simple-0-a-x7k2q")),),
        objections=(Objection("budget", "too many"),),
        problems=("no such clique",),
    )
    report = compose([plan], replica_of, objections=(Objection("refuse-to-wipe", "no root at all"),), incomplete={"Pod": "403"})

    assert [line.text for line in text(report)][:5] == [
        "denied by refuse-to-wipe: no root at all",
        "incomplete: not every Pod could be seen (403); none of them is deleted",
        "PodCliqueSet/default/simple",
        "  denied by budget: too many",
        "  problem: no such clique",
    ]


def test_five_hundred_replicas_fit_on_a_screen() -> None:
    pods = [operation(Verb.CREATE, pod(f"simple-{i}-a-{seat}"), f"seat of replica {i}") for i in range(500) for seat in ("b2b2b", "x7k2q")]
    services = [operation(Verb.CREATE, ResourceId("", "Service", "default", f"simple-{i}")) for i in range(500)]
    doomed = operation(Verb.DELETE, pod("simple-7-a-zzzzz"), "it failed")

    assert (
        told(report_of(*pods, *services, doomed))
        == """\
PodCliqueSet/default/simple
  - delete   Pod/simple-7-a-zzzzz           it failed (intent)
  + create   Pod/simple-{0..499}-a-* ×1000  seat of replica {0..499} (intent)
  + create   Service/simple-{0..499} ×500   it is asked for (intent)
Plan: 1500 to create, 1 to delete."""
    )


def test_operations_are_alike_only_when_their_changes_are() -> None:
    rolled = [patch(pod(f"simple-{i}-a-b2b2b"), change("spec.image", "app:1", "app:2")) for i in range(50)]
    odd = patch(pod("simple-50-a-b2b2b"), change("spec.image", "app:1", "evil"))

    assert told(report_of(*rolled, odd)).splitlines()[1:-1] == [
        "  ~ patch    Pod/simple-{0..49}-a-* ×50  the template changed (intent)",
        "      e.g. simple-0-a-b2b2b",
        '      spec.image: "app:1" → "app:2"',
        "  ~ patch    Pod/simple-50-a-b2b2b       the template changed (intent)",
        '      spec.image: "app:1" → "evil"',
    ]


def test_of_long_values_the_part_is_shown_in_which_they_differ() -> None:
    long = "--flag=" + "x" * 300

    (line,) = [line.text for line in text(report_of(patch(pod("p"), change("spec.args", f"{long}1", f"{long}2")))) if "→" in line.text]

    assert line == '      spec.args: "…{0}1" → "…{0}2"'.format("x" * 24).replace('"…', "…")


def test_verbose_lists_everything() -> None:
    pods = [operation(Verb.CREATE, pod(f"simple-{i}-a-b2b2b")) for i in range(ROWS * 2)]

    assert told(report_of(*pods), verbose=True).count("+ create") == ROWS * 2


def test_a_thousand_roots_are_cut_and_the_rest_counted_with_the_deletes_told_first() -> None:
    plans = [
        Plan(ROOT._replace(name=f"set-{i}"), (operation(Verb.DELETE if i == 900 else Verb.CREATE, pod(f"set-{i}-a")),)) for i in range(1000)
    ]
    lines = [line.text for line in text(compose(plans, replica_of))]

    assert lines[0] == "PodCliqueSet/default/set-900"
    assert len(lines) < ROWS + 5
    assert lines[-2].startswith("… and ") and lines[-1] == "Plan: 999 to create, 1 to delete."


@pytest.mark.parametrize("poison", ["\x1b[2J", "\u202e", "\u009b31m", "\r", "\n", "\u2028", "\u200b"])
def test_nothing_from_the_cluster_reaches_the_terminal_raw(poison: str) -> None:
    evil = f"a{poison}b"
    report = compose(
        [
            Plan(
                ROOT._replace(name=evil),
                (
                    patch(pod(evil), change(f"metadata.annotations.{evil}", evil, evil + "!"), why=evil),
                    operation(Verb.RELEASE, pod(evil), evil, body={"finalizers": [evil]}),
                ),
                deferred=(Wait(pod(evil), evil),),
                pending=(Wait(pod(evil), evil),),
                objections=(Objection("budget", evil),),
                problems=(evil,),
                notes=(evil,),
            )
        ],
        lambda _root, _child: evil,
        objections=(Objection("wipe", evil),),
        incomplete={"Pod": evil},
    )

    assert all(poison not in line.text for line in text(report))
    assert all(poison not in line.text for line in text(report, verbose=True))
