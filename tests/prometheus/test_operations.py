"""docs/operations.md, the alerts and the dashboard speak of metrics and log events that there are, and of all of them."""

import ast
import re
from collections.abc import Iterator

import pytest

from engine.operation import Outcome
from engine.runtime.lease import DISABLED
from grove_sandbox.clock import VirtualClock
from providers.metrics.families import FAMILIES
from providers.metrics.metrics import EngineMetrics
from tests.prometheus.expressions import alerts, metrics_in, of_panels, panels, series
from tests.test_docs import anchors
from tests.test_layout import PRODUCT, ROOT

PAGE = ROOT / "docs" / "operations.md"
LEVELS = frozenset({"debug", "info", "warning", "error"})
FROM_LIBRARY = ("process_", "python_")


def rows(columns: int) -> list[list[str]]:
    """The rows of the tables with that many columns, without the marks of code."""
    lines = (line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `"))
    return [[cell.strip().strip("`") for cell in cells] for cells in lines if len(cells) == columns]


def documented() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Metric -> type, labels and meaning, as the page says."""
    types = {"counter", "gauge", "histogram"}
    return {name: (type, tuple(re.findall(r"\w+", labels)), meaning) for name, type, labels, meaning in rows(4) if type in types}


def test_the_page_describes_every_metric_as_it_is() -> None:
    ours = {name: entry for name, entry in documented().items() if not name.startswith(FROM_LIBRARY)}

    assert ours == {family.name: (family.type, family.labels, family.help) for family in FAMILIES}


def test_the_page_names_the_metrics_of_the_library_too() -> None:
    collected = {
        f"{metric.name}_total" if metric.type == "counter" else metric.name
        for metric in EngineMetrics(VirtualClock()).registry.collect()
        if metric.name.startswith(FROM_LIBRARY)
    }

    assert {name for name in documented() if name.startswith(FROM_LIBRARY)} == collected


def test_every_family_is_in_the_registry_and_no_other_of_ours() -> None:
    names = {metric.name for metric in EngineMetrics(VirtualClock()).registry.collect() if not metric.name.startswith(FROM_LIBRARY)}

    assert names == {family.name.removesuffix("_total") for family in FAMILIES}


def events() -> Iterator[tuple[str, str]]:
    """Level and event of every line that the product logs."""
    for source in PRODUCT:
        if source.path.startswith("sandbox/src/grove_sandbox/"):
            continue
        for node in source.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS and node.args:
                event = node.args[0]
                if "log" in ast.unparse(node.func.value).lower() and isinstance(event, ast.Constant):
                    yield node.func.attr, str(event.value)


HANGS = ("error", "the work hangs: this process ends")
"""Logged in a thread of its own, whose arguments it is."""


def test_the_page_lists_every_log_event_with_its_level() -> None:
    listed = {(level, event) for event, level, _, _ in rows(4) if level in LEVELS}

    expected = {*events(), ("warning", DISABLED), ("debug", Outcome.CONFLICT), ("debug", Outcome.SKIPPED), HANGS}
    # `ConfigurationReload._log_all` passes on the event that it is given.
    assert listed == expected | {("warning", "configuration"), ("warning", "configuration refused, the previous one stays in use")}


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_is_complete_and_has_its_runbook(alert: dict[str, dict[str, str]]) -> None:
    name, annotations = str(alert["alert"]), alert["annotations"]

    assert annotations["runbook_url"] == f"docs/operations.md#{name.lower()}"
    assert name.lower() in anchors(PAGE)
    assert annotations["summary"].rstrip().endswith(".")
    assert annotations["description"].rstrip().endswith(".")
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert metrics_in(str(alert["expr"])) <= series()


def test_every_runbook_has_its_alert_and_says_its_severity() -> None:
    sections = dict(re.findall(r"^### (Engine\w+)\n\n(\w+)\.", PAGE.read_text(), re.MULTILINE))

    assert sections == {alert["alert"]: alert["labels"]["severity"] for alert in alerts()}


@pytest.mark.parametrize(("title", "expression"), list(of_panels()))
def test_a_panel_shows_metrics_that_there_are(title: str, expression: str) -> None:
    named = metrics_in(expression)

    assert named
    assert named <= series()


def test_the_dashboard_shows_every_metric_of_ours() -> None:
    shown = {name for _, expression in of_panels() for name in metrics_in(expression)}
    names = {re.sub("_(bucket|sum|count)$", "", name) for name in shown}

    only_in_alerts = {"engine_last_pass_timestamp_seconds", "controller_runtime_reconcile_errors_total"}
    assert {family.name for family in FAMILIES} - names == only_in_alerts


def test_the_panels_of_the_dashboard_have_numbers_of_their_own_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in panels()]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels())
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len(ids) == len(set(ids))
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
