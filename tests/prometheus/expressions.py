"""Expressions: the PromQL in the alerts and the dashboard, and the metrics that it names."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from grove_sandbox.clock import VirtualClock
from providers.metrics.families import FAMILIES
from providers.metrics.metrics import EngineMetrics
from tests.test_layout import ROOT

RULES = ROOT / "deploy" / "prometheus" / "rules.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "engine.json"

ASIDE = re.compile(r"\"[^\"]*\"|\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|without|group_left|ignoring)\s*\([^)]*\)")
"""What names no metric: strings, matchers, ranges and lists of labels."""
WORD = re.compile(r"[a-z_][a-z0-9_]*(?!\s*\()\b")
KEYWORDS = frozenset({"and", "or", "unless", "by", "on", "without", "bool", "sum", "min", "max", "count"})


def alerts() -> list[dict[str, Any]]:
    """The alerts of the PrometheusRule."""
    return [rule for group in yaml.load(RULES.read_text(), yaml.CSafeLoader)["spec"]["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    """The panels of the dashboard, rows included."""
    listed: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return listed


def of_panels() -> Iterator[tuple[str, str]]:
    """The title of a panel and each of its expressions, with Grafana's variables replaced."""
    for panel in panels():
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m").replace("$job", ".*")


def metrics_in(expression: str) -> set[str]:
    """The names of the metrics in an expression."""
    return set(WORD.findall(ASIDE.sub(" ", expression))) - KEYWORDS


def series() -> set[str]:
    """The names that an expression may use."""
    names = {
        sample
        for family in EngineMetrics(VirtualClock()).registry.collect()
        for sample in ({family.name, f"{family.name}_total"} if family.type == "counter" else {family.name})
    }
    histograms = {f"{family.name}_{end}" for family in FAMILIES if family.type == "histogram" for end in ("bucket", "sum", "count")}
    return names | histograms | {family.name for family in FAMILIES}
