"""The command line and the page of the benchmarks on real control planes."""

import argparse
import json
from pathlib import Path

import pytest

from benchmarks.cluster.__main__ import CRDS, Contender, contenders, named
from benchmarks.cluster.figures import Figures
from benchmarks.cluster.requests import counted
from benchmarks.cluster.table import BARE, ENGINE, markdown, summary
from benchmarks.cluster.workloads import WORKLOADS
from tests.controlplane.cluster import AUDITED


def figures(subject: str, seconds: float, writes: int) -> Figures:
    return Figures("b1", subject, "up", {"all ready": seconds}, writes, {}, 0, 5.25, 100.0)


def test_another_operator_is_beside_the_engine_with_its_ratio_to_the_bare_client() -> None:
    page = markdown([figures(ENGINE, 12.0, 3_506), figures(BARE, 10.0, 4_504), figures("other", 30.0, 10_900)])

    head, _, _, row = page.splitlines()
    assert head.endswith("| peak memory | other |")
    assert row.startswith("| **1.20** | up | 12.0 s | 10.0 s | 3,506 | 4,504 |")
    assert row.endswith("| 30.0 s (3.00 x bare), 10,900 writes, 5.2 s CPU, 100 MiB |")


def test_the_first_page_has_a_row_for_each_workload_once_all_are_measured() -> None:
    def measured(workload: str, subject: str, phase: str, seconds: float) -> Figures:
        return Figures(workload, subject, phase, {"done": seconds}, 3_506, {}, 0, 5.25, 100.0)

    phases = {"b2": ("up", "250 → 500", "500 → 250", "250 → 0", "delete"), "b4": ("up", "update", "delete")}
    figures = [measured(name, ENGINE, each, 12.0) for name in WORKLOADS for each in phases.get(name, ("up", "delete"))]
    figures += [measured(name, BARE, each, 10.0) for name in ("b1", "b2") for each in ("up", "250 → 500", "250 → 0")]

    rows = summary(figures).splitlines()[2:]

    assert len(rows) == 5
    assert rows[0].endswith("| 12.0 s (1.20 ×) |  | 12.0 s | 3,506 | 5.2 s | 100 MiB |")
    assert rows[1].endswith("| 12.0 s (1.20 ×) | 250 → 500: 12.0 s (1.20 ×) | 12.0 s (1.20 ×) | 3,506 | 5.2 s | 100 MiB |")
    assert "| 12.0 s | update: 12.0 s | 12.0 s |" in rows[3]
    assert not summary([each for each in figures if each.workload != "b5"])


def test_each_operator_has_its_own_definitions_or_ours() -> None:
    operators = [named("one=one-operator --config a=b"), named("two=two-operator")]

    assert contenders(operators, [named("one=definitions")]) == {
        "one": Contender("one-operator --config a=b", [Path("definitions")]),
        "two": Contender("two-operator", [CRDS]),
    }


@pytest.mark.parametrize("text", ["one", "=command", "one= "])
def test_an_operator_has_a_name_and_a_command(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="NAME=VALUE is expected"):
        named(text)


def test_names_that_mean_nothing_or_something_else_are_refused() -> None:
    with pytest.raises(SystemExit, match="there is no --operator two=COMMAND"):
        contenders([named("one=command")], [named("two=definitions")])
    with pytest.raises(SystemExit, match="the name of what is measured anyway"):
        contenders([named("engine=command")], [])


@pytest.mark.parametrize(("group", "writes"), [(AUDITED, 1), ("system:masters", 0)])
def test_a_kubelet_that_removes_a_pod_is_not_counted_as_the_operator(group: str, writes: int) -> None:
    removal = {"stage": "ResponseComplete", "verb": "delete", "user": {"groups": [group]}, "objectRef": {"resource": "pods"}}

    assert counted([json.dumps(removal).encode()]).writes == writes
