"""What a program reads of a plan."""

import json

from engine.ids import Owner, ResourceId
from engine.operation import BoundOwner, Expect, Operation, Unknown
from engine.plan import Wait
from engine.report.json import document, printed
from engine.verb import Verb
from tests.engine.report.plans import ROOT, change, operation, patch, pod, report_of

SECRET = ResourceId("", "Secret", "default", "simple-token")


def secret_body() -> dict[str, object]:
    """A Secret with something to hide, and the copy that kubectl keeps of it."""
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": '{"data": {"token": "aHVzaA=="}}'}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t", "annotations": annotations}, "data": {"token": "aHVzaA=="}}


def test_the_document_is_versioned_and_complete() -> None:
    created = operation(
        Verb.CREATE, pod("simple-0-a-x7k2q"), body={"kind": "Pod", "metadata": {"name": "simple-0-a-x7k2q"}}, after=frozenset({"b", "a"})
    )
    deleted = operation(Verb.DELETE, pod("simple-1-a-b2b2b"), expect=Expect("u1", "7"), intended=False)

    answer = document(report_of(created, deleted, deferred=(Wait(ROOT, "paused"),)))

    assert (answer["version"], answer["summary"]["create"], answer["summary"]["delete"], answer["summary"]["held"]) == (1, 1, 1, 1)
    first, second = answer["roots"][0]["operations"]
    assert (first["verb"], first["expect"], first["asked"]) == ("delete", {"uid": "u1", "resourceVersion": "7"}, False)
    assert (second["manifest"], second["after"]) == ({"kind": "Pod", "metadata": {"name": "simple-0-a-x7k2q"}}, ["a", "b"])
    assert answer["roots"][0]["held"] == [
        {"object": {"group": "grove.io", "kind": "PodCliqueSet", "namespace": "default", "name": "simple"}, "why": "paused", "until": None}
    ]


def test_owners_that_the_plan_itself_makes_have_words_for_a_uid() -> None:
    owner = Owner(ROOT, "grove.io/v1alpha1")
    created = Operation(
        Verb.CREATE, pod("p"), "why", change("a", 1, 2).cause, {"metadata": {"name": "p"}}, (BoundOwner(owner, Unknown(ROOT)),)
    )

    manifest = document(report_of(created))["roots"][0]["operations"][0]["manifest"]

    assert manifest["metadata"]["ownerReferences"][0]["uid"] == "(uid of PodCliqueSet/default/simple)"


def test_no_secret_is_told_but_that_it_changed_is() -> None:
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


def test_a_terminal_obeys_nothing_in_the_document_and_a_program_reads_it_unchanged() -> None:
    evil = "\x1b[2J \u202e \u009b31m \U000e0041 \u2028"

    answer = printed({"name": evil})

    assert answer.isascii() and "\x1b" not in answer
    assert json.loads(answer) == {"name": evil}


def test_the_order_of_the_plan_does_not_show() -> None:
    operations = [operation(Verb.CREATE, pod(f"simple-{i}-a")) for i in range(12)]

    assert printed(document(report_of(*operations))) == printed(document(report_of(*reversed(operations))))
