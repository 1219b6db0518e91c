"""Drawings of plans and of desired objects: which boxes and arrows there are, and that names mean nothing to those who draw."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from engine.graph import graph, part
from engine.ids import Owner, ResourceId
from engine.plan import Plan, Wait
from engine.report.diagram.languages import MAX_ARROWS, MAX_CHARACTERS, dot, label, mermaid, quoted
from engine.report.diagram.model import MOST, Diagram, Relation, of_graph, of_report, of_root
from engine.report.html.drawing import MAX_DIAGRAMS, svg
from engine.report.model import compose
from engine.resource import Drop, Hold, Resource, Want
from tests.browser import needs_chromium, open_browser
from tests.engine.report.hostile import HOSTILE
from tests.engine.report.plans import ROOT, pod, replica_of, report_of
from tests.engine.report.test_html import hostile_report, plan_of_size, replicas
from tests.engine.report.test_markdown import MARKUP


def resource(id: ResourceId, *after: ResourceId, owner: ResourceId | None = None) -> Want:
    """A desired object."""
    owners = (Owner(owner, "v1"),) if owner else ()
    return Want(id, "why", owners, frozenset(after), body={"metadata": {}})


def desired(*resources: Resource) -> Diagram:
    """The diagram of these objects of the root."""
    return of_graph(ROOT, graph([part("all", resources)]))


def shown(diagram: Diagram) -> set[tuple[str, str, str]]:
    """Names of the boxes at the ends of each arrow, with the relation."""
    return {(first.name, second.name, str(relation)) for (first, second), relation in diagram.arrows.items()}


def test_arrows_lead_from_owners_and_from_what_is_created_first() -> None:
    service, worker = pod("service"), pod("worker")

    diagram = desired(resource(ROOT), resource(service, owner=ROOT), resource(worker, service, ROOT, owner=ROOT))

    assert shown(diagram) == {("simple", "service", "owner"), ("simple", "worker", "owner"), ("service", "worker", "after")}
    assert [box.column for box in diagram.boxes] == [0, 1, 2]


def test_an_arrow_that_follows_from_others_is_left_out_unless_it_leads_from_an_owner() -> None:
    a, b, c = pod("a"), pod("b"), pod("c")

    assert shown(desired(resource(a), resource(b, a), resource(c, a, b))) == {("a", "b", "after"), ("b", "c", "after")}
    assert ("a", "c", "owner") in shown(desired(resource(a), resource(b, a), resource(c, b, owner=a)))


def test_what_is_dropped_is_not_drawn_and_what_is_held_back_says_so() -> None:
    diagram = desired(resource(pod("a")), Hold(pod("b"), "why"), Drop(pod("c"), "why"))

    assert {(box.name, box.word) for box in diagram.boxes} == {("a", ""), ("b", "later")}


@pytest.mark.parametrize(("count", "boxes"), [(24, 24), (25, 1)])
def test_objects_that_are_alike_share_a_box_if_there_are_many(count: int, boxes: int) -> None:
    diagram = desired(*(resource(pod(f"x-{number}")) for number in range(count)))

    assert len(diagram.boxes) == boxes
    assert sum(len(box.names) for box in diagram.boxes) == count


def test_objects_that_are_not_alike_share_one_by_kind_if_there_are_very_many() -> None:
    names = [f"{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(MOST + 1)]

    (box,) = desired(*(resource(pod(name)) for name in names)).boxes

    assert (box.title, box.name) == ("Pod ×81", "aa, …")


def test_a_plan_is_drawn_with_what_happens() -> None:
    report = report_of(*replicas(30), deferred=(Wait(pod("late"), "later"), Wait(pod("taken"), "taken", blocked=True)))

    (diagram,) = of_report(report)

    assert {(box.word, box.kind, len(box.names)) for box in diagram.boxes} == {
        ("create", "PodClique", 30),
        ("create", "Pod", 60),
        ("later", "Pod", 1),
        ("blocked", "Pod", 1),
    }
    assert set(diagram.arrows.values()) == {Relation.AFTER}
    assert of_report(report_of()) == []


def test_graphviz_gets_a_cluster_for_each_root_with_boxes_and_arrows() -> None:
    assert dot([desired(resource(ROOT), resource(pod("a"), owner=ROOT), resource(pod("b"), pod("a")))]) == (
        'digraph engine {\n  rankdir=LR;\n  node [shape=box, fontname="sans-serif"];\n'
        '  subgraph cluster_0 {\n    label="PodCliqueSet/default/simple";\n'
        '    n0_0 [label="PodCliqueSet\\nsimple"];\n    n0_1 [label="Pod\\na"];\n    n0_2 [label="Pod\\nb"];\n'
        "    n0_0 -> n0_1;\n    n0_1 -> n0_2 [style=dashed];\n  }\n}\n"
    )


def test_mermaid_gets_a_subgraph_for_each_root_with_boxes_and_arrows() -> None:
    assert mermaid([desired(resource(ROOT), resource(pod("a"), owner=ROOT), resource(pod("b"), pod("a")))]) == (
        'flowchart LR\n  subgraph s0["PodCliqueSet/default/simple"]\n'
        '    n0_0["PodCliqueSet<br/>simple"]\n    n0_1["Pod<br/>a"]\n    n0_2["Pod<br/>b"]\n  end\n'
        "  n0_0 --> n0_1\n  n0_1 -.-> n0_2\n"
    )
    assert ":::create" in mermaid(of_report(report_of(*replicas(1))))


@pytest.mark.parametrize("text", [*HOSTILE, *MARKUP, '"]; click n0 "javascript:alert(1)"', "%%{init: {}}%%", "end"])
def test_hostile_names_mean_nothing(text: str) -> None:
    drawn = desired(resource(pod(text)), resource(pod(f"{text}2"), pod(text)))

    assert re.fullmatch(r'"(?:[^"\\\n]|\\["\\]|\\n(?=))*"', quoted(text))
    assert re.fullmatch(r'"[\w ./:,+*×…(){}?-]*"', label(text))
    for line in dot([drawn]).splitlines():
        assert re.fullmatch(r'[ \w{}\[\]=;>.-]*|.*\[?(?:label|shape)=(?:"(?:[^"\\]|\\.)*"|box, fontname="sans-serif")[\];]+', line)
    for line in mermaid([drawn]).splitlines():
        assert re.fullmatch(r'[ \w.>-]*|  subgraph s0\["[^"]*"\]|    n0_\d\["[^"<>]*<br/>[^"<>]*"\]', line)


def test_a_drawing_is_one_file_without_scripts_that_loads_nothing() -> None:
    text = svg([of_root(root) for root in hostile_report().roots])
    tree = ET.fromstring(text)

    tags = {each.tag.removeprefix("{http://www.w3.org/2000/svg}") for each in tree.iter()}
    assert tags <= {"svg", "style", "g", "text", "title", "rect", "path", "marker"}
    assert not any(name.startswith("on") or "href" in name for each in tree.iter() for name in each.attrib)
    assert text.isascii()
    assert text == svg([of_root(root) for root in hostile_report().roots])


def test_long_names_of_one_set_are_told_apart_by_their_end() -> None:
    names = [f"a-long-name-of-a-set-0-model-{number}-{role}" for number in range(2) for role in ("leader", "worker")]
    diagram = desired(*(resource(pod(name)) for name in names))

    lines = {each.text or "" for each in ET.fromstring(svg([diagram])).iter("{http://www.w3.org/2000/svg}text")}
    assert {line for line in lines if line.startswith("a-long")} == {f"a-long-name-o…{end[-13:]}" for end in names}


def test_the_size_of_drawings_is_bounded_and_the_rest_is_counted() -> None:
    diagrams = [of_root(compose([plan_of_size(number, 400)], replica_of).roots[0]) for number in range(3)] * 50

    chart, file = mermaid(diagrams * 20), svg(diagrams)

    assert len(chart) <= MAX_CHARACTERS + 20_000 and chart.count("->") <= MAX_ARROWS
    assert re.search(r"\d+ more workloads: too many to draw", chart)
    assert f"{150 - MAX_DIAGRAMS} more workloads: too many to draw" in file


def test_nothing_to_draw_is_an_empty_drawing() -> None:
    assert mermaid([]) == "flowchart LR\n"
    assert ET.fromstring(svg([])).tag.endswith("svg")
    assert of_root(compose([Plan(ROOT)], replica_of).roots[0]).boxes == ()


@needs_chromium
def test_a_browser_shows_a_drawing_and_does_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "graph.svg"
    file.write_text(svg([of_root(root) for root in hostile_report().roots]))

    with open_browser() as browser:
        browser.open(file.as_uri())

        assert browser.events == [f"request: {file.as_uri()}"]
        assert browser.evaluate("document.documentElement.querySelectorAll('rect').length") > len(HOSTILE)
