"""`/debug/plan` and the pages of `engine run --ui`, as a program and as a person with a browser see them."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from enginectl.serving.page import HEADERS
from resources.base.kinds import PODCLIQUESET, SERVICE
from tests.browser import Browser, browser, needs_chromium
from tests.builders import clique, podcliqueset
from tests.engine.report.test_html import Document
from tests.enginectl.box import Box
from tests.enginectl.serving.test_endpoints import Installed, installed, running
from tests.providers.http.talking import HOST
from tests.stories.refusing import Quota
from tests.waiting import PATIENCE
from tests.waiting import until as eventually

__all__ = ["browser", "installed"]  # Fixtures.

RACKS = podcliqueset("racks", clique("worker", 2), replicas=2)
PAGES = ("/", "/sets/default/racks")
HOSTILE = "<script>document.title='taken over'</script>\u202e\"><img src=x onerror=alert(1)>"


def get(installed: Installed, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
    """Status, text and headers of a path on the port of the metrics."""
    request = urllib.request.Request(f"http://{HOST}:{installed.ports['metrics']}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


def until(installed: Installed, path: str, expected: str) -> str:
    """The text of a path, once it contains what is expected."""
    eventually(lambda: expected in get(installed, path)[1], lambda: get(installed, path)[1][-2000:])
    return get(installed, path)[1]


@contextmanager
def standing_by(box: Box, installed: Installed, tmp_path: Path) -> Iterator[Installed]:
    """A process with pages that does not lead, because another one does."""
    other = tmp_path / "other"
    other.mkdir()
    standby = Installed(other)
    with running(box, installed) as leader:
        leader.logged("leading")
        with running(box, standby, "--ui") as follower:
            follower.logged_as(lambda line: "lease" in str(line.get("event", "")))
            yield standby


def test_the_pending_plan_is_that_of_diff_with_when_it_was_made(box: Box, installed: Installed, engine: Any) -> None:
    box.deny(verb="create", resource="services")
    with running(box, installed) as process:
        process.logged("leading")
        box.create(PODCLIQUESET, RACKS)
        shown = json.loads(until(installed, "/debug/plan", "racks-0"))
        narrowed = json.loads(get(installed, "/debug/plan?namespace=default&name=other")[1])
        page = get(installed, "/")

    assert (shown["kind"], shown["version"]) == ("Diff", 2)
    assert shown["pass"].keys() == {"at", "tookSeconds", "leads", "executing", "lastError"}
    assert shown["pass"]["leads"] is True
    assert {root["root"]["name"] for root in shown["roots"]} == {"racks"}
    assert narrowed["roots"] == []
    assert page[0] == 404  # Pages are served with --ui only.


def test_a_forecast_is_made_for_the_request_that_asks_for_it_with_the_quotas_and_nodes_of_the_moment(
    box: Box, installed: Installed
) -> None:
    box.portal.call(lambda: Quota(box.cluster.api, 1))
    box.deny(verb="create", resource="pods")
    with running(box, installed, "--ui") as process:
        process.logged("leading")
        box.create(PODCLIQUESET, RACKS)
        plain = json.loads(until(installed, "/debug/plan", "Pod"))
        foreseen = json.loads(get(installed, "/debug/plan?forecast=true")[1])
        pages = {path: [get(installed, f"{path}{query}")[1] for query in ("", "?forecast=true&refresh=30")] for path in PAGES}
        box.deny(verb="list", resource="nodes")
        unchecked = json.loads(get(installed, "/debug/plan?forecast=true")[1])
        unchecked_pages = [get(installed, f"{path}?forecast=true")[1] for path in PAGES]

    assert "it allows 1 more pods" in json.dumps(foreseen)
    assert not plain.get("forecast")
    assert foreseen["pass"]["leads"] and "ROOM" in foreseen["forecast"]["assumptions"]
    assert "ROOM" not in unchecked["forecast"]["assumptions"]
    assert "you may not list nodes" in json.dumps(unchecked["forecast"])
    for path, (without, with_forecast) in pages.items():
        assert f'<a href="{path}?forecast=true#plan">forecast</a>' in without
        assert not any(text in without for text in ("it allows 1 more pods", "What follows", "This assumes"))
        for text in ("it allows 1 more pods", "In all: ", "STUCK"):
            assert text in with_forecast
        assert '"refresh"' not in with_forecast, "A forecast is made on request, not every few seconds."
    assert all("you may not list nodes" in page for page in unchecked_pages)


def test_a_replica_that_does_not_lead_says_who_does(box: Box, installed: Installed, tmp_path: Path) -> None:
    with standing_by(box, installed, tmp_path) as standby:
        status, text, _ = get(standby, "/debug/plan")
        page = get(standby, "/")

    assert status == 503
    assert re.fullmatch(r"this process does not lead, so it makes no plan; the lease is held by process \d+ on .*\n", text)
    assert page[0] == 200 and "this process does not lead" in page[1]


def test_a_name_that_was_pointed_to_the_loopback_address_shows_nothing(box: Box, installed: Installed) -> None:
    with running(box, installed, "--ui") as process:
        process.logged("leading")
        rebound = [get(installed, path, Host="evil.example")[0] for path in ("/", "/debug/plan", "/sets/default/racks")]
        forwarded = get(installed, "/debug/plan", **{"X-Forwarded-For": "192.0.2.1"})
        metrics = get(installed, "/metrics", Host="evil.example")

    assert rebound == [403, 403, 403]
    assert forwarded[0] == 403
    assert metrics[0] == 200


def test_pages_can_only_be_read_and_say_so_to_browsers(box: Box, installed: Installed) -> None:
    with running(box, installed, "--ui") as process:
        process.logged("leading")
        until(installed, "/", "PodCliqueSets: none")
        _, text, headers = get(installed, "/?refresh=1")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://{HOST}:{installed.ports['metrics']}/", b"x", timeout=PATIENCE)
        refused.value.close()
        missing = get(installed, "/sets/default/nobody")

    assert HEADERS.items() <= headers.items()
    assert "Set-Cookie" not in headers
    assert ("meta", {"http-equiv": "refresh", "content": "5"}) in Document(text).tags
    assert refused.value.code == 405
    assert missing[:2] == (404, "there is no such set\n")


def test_the_overview_begins_with_what_is_stalled_and_under_way(full_box: Box, installed: Installed) -> None:
    taken = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "taken-0"}, "spec": {"clusterIP": "None"}}
    full_box.create(SERVICE, taken)
    with running(full_box, installed, "--ui") as process:
        process.logged("leading")
        full_box.create(PODCLIQUESET, podcliqueset("taken", clique("worker", 1)))
        full_box.create(PODCLIQUESET, RACKS)
        until(installed, "/", "engine: 1 stalled")
        shown = Document(until(installed, "/", "1 Reconciling")).text
        of_set = Document(get(installed, "/sets/default/taken")[1]).text

    glance = shown[shown.index("At a glance") : shown.index("PodCliqueSets")]
    assert "Sets 1 Stalled , 1 Reconciling Stalled" in glance
    assert re.search(
        "Stalled default/taken NameConflict: Service/default/taken-0: .*Pods 0 of [0-9]+ pods ready, 0 of [0-9]+ gangs running", glance
    )
    assert "Operations no failure among the last operations" in glance and "Watched kinds all fresh" in glance
    assert shown.index("default/taken Stalled NameConflict blocked") < shown.index("default/racks Reconciling ")
    assert "Stalled NameConflict: Service/default/taken-0: " in of_set


BROKEN_HEADERS = """[...document.querySelectorAll("th[scope=col]")].flatMap(header => {
    const text = header.firstChild, range = document.createRange();
    return [...text.data.matchAll(/\\S+/g)].filter(word => {
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        return range.getClientRects().length > 1;
    }).map(word => word[0]);
})"""
"""The words of headers that a page breaks within."""


@needs_chromium
def test_a_person_sees_sets_gangs_operations_and_what_is_not_settled_and_why(
    full_box: Box, installed: Installed, browser: Browser, tmp_path: Path
) -> None:
    hostile = podcliqueset("hostile", clique("worker", 1))
    hostile["metadata"]["annotations"] = {"grove.io/mnnvl-group": HOSTILE, "nvidia.com/x": HOSTILE}
    with running(full_box, installed, "--ui") as process:
        process.logged("leading")
        full_box.create(PODCLIQUESET, RACKS)
        full_box.create(PODCLIQUESET, hostile)
        until(installed, "/", ">done<")
        base = f"http://{HOST}:{installed.ports['metrics']}"
        browser.open(f"{base}/")
        overview, events = browser.evaluate("document.body.innerText"), list(browser.events)
        browser.screenshot(tmp_path / "overview.png")
        browser.open(f"{base}/", width=400)
        broken = browser.evaluate(BROKEN_HEADERS)
        browser.open(f"{base}/?forecast=true")
        foreseen, foreseen_events = browser.evaluate("document.body.innerText"), list(browser.events)
        browser.screenshot(tmp_path / "forecast.png")
        browser.open(f"{base}/sets/default/racks", width=400)
        of_set, width = browser.evaluate("document.body.innerText"), browser.evaluate("document.documentElement.scrollWidth")
        browser.screenshot(tmp_path / "set.png")
        browser.open(f"{base}/sets/default/hostile")
        title = browser.evaluate("document.title")

    assert events == [f"request: {base}/"]
    assert foreseen_events == [f"request: {base}/?forecast=true"]
    assert "what follows" not in overview and "what the next pass does, and what follows" in foreseen
    assert browser.events == [f"request: {base}/sets/default/hostile"]
    assert title == "default/hostile"
    assert broken == []
    assert "default/racks" in overview and "pending" in overview and "PodClique" in overview
    assert "+ create" in overview and "done" in overview
    assert "racks-0" in of_set and "Pending" in of_set and "0 of 4 pods ready" in of_set
    assert width <= 400
