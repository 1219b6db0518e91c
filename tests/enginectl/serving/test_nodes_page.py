"""The page of nodes of `engine run --ui`: what `engine top` prints, read when the page is asked for."""

from pathlib import Path

import pytest

from engine.ids import ResourceId
from enginectl.output.node_table import Top
from enginectl.serving.nodes_page import nodes_page
from grove_sandbox.http.faults import InjectedFault
from resources.ports.checks import Diagnosis
from resources.reports.node_table import READY, UNKNOWN, NodeRow, NodeTable, Occupant
from tests.browser import Browser, browser, needs_chromium
from tests.engine.report.hostile import HOSTILE, LONG
from tests.engine.report.test_html import Document
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.serving.test_endpoints import Installed, installed, running
from tests.enginectl.serving.test_pages import get, standing_by, until
from tests.enginectl.test_waiting_gangs import box, waiting

__all__ = ["box", "browser", "installed", "waiting"]  # Fixtures.


def words(text: str) -> str:
    """What can be read of a page."""
    return Document(text).text


def test_it_shows_what_top_prints_and_nodes_are_listed_for_this_request_only(
    waiting: None, box: Box, installed: Installed, engine: Engine
) -> None:
    box.inject(InjectedFault("answer", verb="list", resource="nodes", code=403, times=2))  # One for the gangs, one for the table.
    with running(box, installed, "--ui") as process:
        process.logged("leading")
        until(installed, "/", "default/second")
        refused = words(get(installed, "/top")[1])
        shown, overview = words(get(installed, "/top?refresh=5")[1]), get(installed, "/")[1]
        of_set = words(get(installed, "/top?namespace=default&name=first")[1])
        printed = engine("top")
        box.deny(verb="list", resource="nodes")
        status, denied, _ = get(installed, "/top")

    total = next(line for line in printed.out.splitlines() if line.startswith("total")).removeprefix("total").strip()
    assert total == "1 NVLink clique, 4 nodes, 12 of 16 GPUs, 4 free" and total in shown
    assert shown.count("4 of 4 0 ready default/first-0 (a 1)") == 3 and "0 of 4 4 ready" in shown
    assert "default/PodGang second-0: 0 of its minimum of 3 pods are on nodes, 1 of the other 3 has room" in shown
    assert "on the full nodes is gang default/first-0 (3 pods)" in shown and "do: free or add nodes, or ask for less" in shown
    assert "12 of 12 GPUs, 0 free, 1 other node" in of_set and "second-0" not in of_set
    assert 'href="/top"' in overview
    assert "racks, GPUs and free room are not known" in refused, "Somebody had listed nodes before the page was asked for."
    assert status == 200
    assert "racks, GPUs and free room are not known: you may not list nodes" in words(denied)
    assert "3 nodes, 12 GPUs requested by sets" in words(denied) and "4 of ?" in words(denied)


def test_a_process_that_has_no_plan_yet_says_who_leads(box: Box, installed: Installed, tmp_path: Path) -> None:
    with standing_by(box, installed, tmp_path) as standby:
        status, text, _ = get(standby, "/top")

    assert status == 503 and text.startswith("this process does not lead")


def hostile_top(rows: int = 1) -> Top:
    """Nodes and gangs with names that somebody else may have written."""
    nodes = tuple(
        NodeRow(text, text, text, state, 8, 4, (Occupant(text, text, text, text, 1, 4),), text)
        for text in HOSTILE
        for state in (READY, UNKNOWN, text)
        for _ in range(rows)
    )
    about = ResourceId("", "PodGang", "default", HOSTILE[0])
    waiting = tuple(Diagnosis(about, text, text, text) for text in HOSTILE)
    return Top(NodeTable(nodes, HOSTILE[0]), waiting, HOSTILE, {HOSTILE[0]: HOSTILE[1]})


def test_hostile_names_stay_text_and_the_size_is_bounded() -> None:
    source = nodes_page(hostile_top(), None, HOSTILE[0], HOSTILE[1])
    document = Document(source)

    assert not any(name.startswith("on") or name in ("style", "src") for _, attributes in document.tags for name in attributes)
    assert not {"script", "img"} & {tag for tag, _ in document.tags}
    assert {str(attributes["href"]).split("/")[1][:4] for tag, attributes in document.tags if tag == "a"} <= {"", "sets", "top"}
    assert source.isascii() and LONG[:5000] not in source
    assert "<script>document.title" in document.text
    large = nodes_page(hostile_top(200), None, "", "")
    assert len(large) < 3_000_000 and "more nodes; engine top -o json has them all" in large


@needs_chromium
@pytest.mark.parametrize("width", [400, 1000])
def test_it_is_no_wider_than_the_window_and_runs_nothing(browser: Browser, tmp_path: Path, width: int) -> None:
    file = tmp_path / "nodes.html"
    file.write_text(nodes_page(hostile_top(), None, "default", "first"))

    browser.open(file.as_uri(), width=width)

    assert browser.events == [f"request: {file.as_uri()}"]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
