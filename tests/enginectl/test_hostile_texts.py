"""Texts that others write into objects (nodes, pods, Events, conditions, images) take over nothing that shows them."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from engine.ids import Kind
from grove_sandbox.registry import ACTORS
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster

TEXT = "\x1b]0;taken\x07\x1b[2J\u202e\r\n<script>taken()</script><img src=x onerror=taken()>|[taken](http://127.0.0.1:9/)![c](d) `b`\n# x"
"""What others write wherever an API server takes any text."""
UNSAFE = frozenset("\x1b\x07\u202e\r")
PASSED = {"status": "False", "message": TEXT, "lastTransitionTime": "2026-01-01T00:00:00Z"}
OF_POD = {"type": TEXT, "reason": TEXT, **PASSED}
PLACED = {**OF_POD, "type": "PodScheduled", "status": "True"}
ENDED = {"terminated": {"reason": TEXT, "exitCode": 1}}
MAIN = {"name": "main", "image": TEXT, "imageID": TEXT, "ready": False, "restartCount": 3}
OF_PODS = (
    {"phase": "Pending", "conditions": [{**PLACED, "status": "False"}, OF_POD]},
    {"phase": "Running", "conditions": [PLACED], "containerStatuses": [{**MAIN, "state": {"waiting": {"reason": TEXT, "message": TEXT}}}]},
    {
        "phase": "Failed",
        "reason": TEXT,
        "message": TEXT,
        "containerStatuses": [{**MAIN, "state": ENDED}],
    },
)
ERROR = {"code": TEXT, "description": TEXT, "observedAt": "2026-01-01T00:00:00Z"}


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster with a set, where everybody else writes such texts."""
    with cluster(tmp_path, [actor for actor in ACTORS if actor not in ("scheduler", "kubelet")]) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        body = podcliqueset("web", clique("worker", len(OF_PODS), pod_spec={"containers": [{"name": "main", "image": TEXT}]}))
        body["metadata"]["annotations"] = {"example.com/note": TEXT}
        file = tmp_path / "web.json"
        file.write_text(json.dumps(body))
        engine("sync", "-f", file, "--no-wait")
        client = box.cluster.client("user")

        def report(kind: Kind, name: str, status: dict[str, Any]) -> None:
            box.portal.call(lambda: client.patch(kind, "default", name, {"status": status}, subresource="status"))

        pods = box.names(kinds.POD)
        for name, status in zip(pods, OF_PODS, strict=True):
            report(kinds.POD, name, status)
            about = {"kind": "Pod", "namespace": "default", "name": name}
            event = {"involvedObject": about, "reason": TEXT, "message": TEXT, "type": "Warning", "source": {"component": TEXT}}
            box.create(kinds.EVENT, {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"}, **event})
        report(kinds.PODGANG, "web-0", {"phase": "Pending", "conditions": [{"type": "Scheduled", "reason": "NoRoom", **PASSED}]})
        report(kinds.PODCLIQUESET, "web", {"conditions": [{"type": "Other", "reason": "Other", **PASSED}], "lastErrors": [ERROR]})
        yield box


class Elements(HTMLParser):
    """The names and attributes of the elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.found.update([tag, *(name for name, _ in attrs)])


def without_code(markdown: str) -> str:
    """What is no code of a comment."""
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", re.sub(r"(?ms)^ *~~~+diff$.*?^ *~~~+$", "", markdown))


def test_no_report_is_taken_over_by_what_others_write(hostile: Box, engine: Engine, tmp_path: Path) -> None:
    page, comment, edited = tmp_path / "plan.html", tmp_path / "plan.md", tmp_path / "edited.json"
    edited.write_text((tmp_path / "web.json").read_text().replace("taken()", "edited()"))
    reports = [word for name in (f"html={page}", f"markdown={comment}") for word in ("--report", name)]
    names = ("pcs/web", "podgang/web-0", *(f"pod/{name}" for name in hostile.names(kinds.POD)))
    commands: list[tuple[str | Path, ...]] = [
        ("diff", "-v", "-f", edited, *reports),
        ("status", "-v"),
        *(("why", name) for name in names),
        ("sync", "--no-wait", "-v"),
    ]

    for words in commands:
        answer = engine(*words)
        shown = answer.out + answer.err
        assert not UNSAFE & set(shown), words
        assert r"\x1b]0;taken\x07" in shown, words

    assert "taken" in page.read_text() and "taken" in comment.read_text()
    assert not {"img", "onerror"} & Elements(page.read_text()).found
    assert not UNSAFE & set(page.read_text() + comment.read_text())
    assert "taken" not in without_code(comment.read_text())
