"""What a program reads of a plan."""

import json

from engine.ids import Owner, ResourceId
from engine.operation import BoundOwner, Create, Expect, Unknown
from engine.plan import Wait
from engine.report.json import document, printed
from engine.resource import NOW
from engine.verb import Verb
from tests.engine.report.plans import ROOT, change, operation, patch, pod, report_of

SECRET = ResourceId("", "Secret", "default", "simple-token")


def secret_body() -> dict[str, object]:
    """A Secret with data, and the copy of it that kubectl keeps."""
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": '{"data": {"token": "aHVzaA=="}}'}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t", "annotations": annotations}, "data": {"token": "aHVzaA=="}}


def test_the_document_is_versioned_and_complete() -> None:
    created = operation(
        Verb.CREATE, pod("simple-0-a-x7k2q"), body={"kind": "Pod", "metadata": {"name": "simple-0-a-x7k2q"}}, after=frozenset({"b", "a"})
    )
    deleted = operation(Verb.DELETE, pod("simple-1-a-b2b2b"), expect=Expect("u1", "7"), intended=False)

    answer = document(report_of(created, deleted))

    assert (answer["version"], answer["summary"]["create"], answer["summary"]["delete"]) == (2, 1, 1)
    first, second = answer["roots"][0]["operations"]
    assert (first["verb"], first["expect"], first["intended"]) == ("delete", {"uid": "u1", "resourceVersion": "7"}, False)
    assert (second["manifest"], second["after"]) == ({"kind": "Pod", "metadata": {"name": "simple-0-a-x7k2q"}}, ["a", "b"])


def test_later_blocked_and_pending_objects_are_listed_and_counted_apart() -> None:
    deferred = (Wait(ROOT, "paused"), Wait(pod("a"), "its name is taken", blocked=True), Wait(pod("b"), "its name is taken", blocked=True))
    answer = document(report_of(deferred=deferred, pending=(Wait(pod("c"), "not ready"),)))

    assert {key: answer["summary"][key] for key in ("later", "blocked", "pending")} == {"later": 1, "blocked": 2, "pending": 1}
    (root,) = answer["roots"]
    simple = {"group": "grove.io", "kind": "PodCliqueSet", "namespace": "default", "name": "simple"}
    assert root["later"] == [{"object": simple, "why": "paused", "reason": None, "until": None}]
    assert [[wait["object"]["name"] for wait in root[key]] for key in ("blocked", "pending")] == [["a", "b"], ["c"]]


def test_an_internal_error_is_reported_with_its_root_and_is_no_problem_of_the_user() -> None:
    report = report_of(error=KeyError("x"))
    (root,) = document(report)["roots"]

    assert root["error"] == "internal error: KeyError: 'x'; nothing is changed for this root; please report it"
    assert (root["problems"], root["operations"], report.faulty) == ([], [], True)
    assert document(report_of())["roots"][0]["error"] is None


def test_the_time_of_writing_is_shown_as_a_mark() -> None:
    written = operation(
        Verb.STATUS,
        ROOT,
        changes=(
            change("status.since", None, NOW),
            change("status.conditions", None, [{"type": "Ready", "lastTransitionTime": NOW}]),
            change("status.old", [{"type": "Ready", "at": "2026-01-01T00:00:00Z"}], [{"type": "Ready", "at": NOW}]),
        ),
    )

    (shown,) = json.loads(printed(document(report_of(written))))["roots"][0]["operations"]

    assert [entry["new"] for entry in shown["changes"]] == [
        "(time of writing)",
        [{"type": "Ready", "lastTransitionTime": "(time of writing)"}],
        "(time of writing)",
    ]


def test_owners_that_the_plan_itself_creates_have_text_for_a_uid() -> None:
    owner = Owner(ROOT, "grove.io/v1alpha1")
    created = Create(
        pod("p"), "why", change("a", 1, 2).cause, manifest={"metadata": {"name": "p"}}, owners=(BoundOwner(owner, Unknown(ROOT)),)
    )

    manifest = document(report_of(created))["roots"][0]["operations"][0]["manifest"]

    assert manifest["metadata"]["ownerReferences"][0]["uid"] == "(uid of PodCliqueSet/default/simple)"


def test_secret_values_are_masked_and_that_they_changed_is_shown() -> None:
    created = operation(Verb.CREATE, SECRET, body=secret_body())
    patched = patch(SECRET, change("data.token", "aHVzaA==", "b3RoZXI="), change("metadata.labels.a", "1", "2"))

    answer = printed(document(report_of(created, patched)))

    assert "aHVzaA==" not in answer and "b3RoZXI=" not in answer
    lines = {
        entry["path"]: (entry["old"], entry["new"])
        for operation in json.loads(answer)["roots"][0]["operations"]
        for entry in operation["changes"]
    }
    assert lines == {"data.token": ("(masked)", "(masked, another value)"), "metadata.labels.a": ("1", "2")}


def test_nothing_in_the_document_controls_a_terminal_and_a_program_reads_it_unchanged() -> None:
    evil = "\x1b[2J \u202e \u009b31m \U000e0041 \u2028"

    answer = printed({"name": evil})

    assert answer.isascii() and "\x1b" not in answer
    assert json.loads(answer) == {"name": evil}


def test_the_document_does_not_depend_on_the_order_of_the_plan() -> None:
    operations = [operation(Verb.CREATE, pod(f"simple-{i}-a")) for i in range(12)]

    assert printed(document(report_of(*operations))) == printed(document(report_of(*reversed(operations))))
