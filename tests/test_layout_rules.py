"""The rules of `tests/test_layout.py`, held against small files that break them, and against some that do not."""

import pytest

from tests.test_layout import (
    LONGEST_FILE,
    RULES,
    Rule,
    Source,
    circle,
    copies_values_as_structs,
    folder_circle,
    hides_no_import,
    imports_libraries_at_their_door,
    imports_only_folders_below,
    imports_only_layers_below,
    inputs_import_no_outputs,
    is_pure,
    is_short,
    reads_no_clock,
)


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (imports_only_layers_below, "engine/planner.py", "from resources.base.names import pod_name"),
        (imports_only_layers_below, "engine/planner.py", "from engine.runtime.clock import Clock"),
        (imports_only_layers_below, "engine/planner.py", "from engine import runtime"),
        (imports_only_layers_below, "engine/runtime/loop.py", "import resources.blueprints.root"),
        (imports_only_layers_below, "resources/children/pod.py", "def late():\n    import engine.runtime.cache"),
        (imports_only_layers_below, "resources/children/pod.py", "from providers.registry import FABRICS"),
        (imports_only_layers_below, "providers/fabrics/nvlink.py", "from providers.kubernetes.client import connect"),
        (imports_only_layers_below, "sandbox/src/grove_sandbox/api/verbs.py", "import enginectl.main"),
        (imports_only_layers_below, "cmd/initc/wait.py", "from engine.ids import Kind"),
        (imports_only_folders_below, "resources/base/names.py", "from resources.model.view import View"),
        (imports_only_folders_below, "resources/model/view.py", "from resources import settings"),
        (imports_only_folders_below, "resources/attic/old.py", "x = 1"),
        (imports_only_folders_below, "engine/forecast/simulation.py", "from engine.report.text import lines"),
        (imports_only_folders_below, "providers/http/server.py", "from providers.key_pair import KeyPair"),
        (imports_only_folders_below, "sandbox/src/grove_sandbox/kinds/pod.py", "from grove_sandbox.api.store import Store"),
        (imports_only_layers_below, "sandbox/src/grove_sandbox/process.py", "from engine.ids import Kind"),
        (imports_only_layers_below, "cmd/enginectl/main.py", "def late():\n    from grove_sandbox.process import sandbox"),
        (inputs_import_no_outputs, "engine/observed.py", "from engine.operation import Operation"),
        (is_pure, "engine/tick.py", "async def tick(): ..."),
        (is_pure, "engine/tick.py", "import os"),
        (is_pure, "resources/lifecycle/termination.py", "from random import choice"),
        (is_pure, "resources/children/pod.py", "import os.path as p"),
        (is_pure, "resources/children/pod.py", "import logging"),
        (is_pure, "providers/schedulers/kai.py", "def gangs(path):\n    return open(path)"),
        (imports_libraries_at_their_door, "sandbox/src/grove_sandbox/actors.py", "import kr8s"),
        (imports_libraries_at_their_door, "engine/planner.py", "from deepdiff import DeepDiff"),
        (imports_libraries_at_their_door, "resources/plan_policies/judge.py", "from cel_expr_python import cel"),
        (imports_libraries_at_their_door, "sandbox/src/grove_sandbox/api/store.py", "from google.protobuf import descriptor_pool"),
        (imports_libraries_at_their_door, "engine/runtime/session.py", "import typer"),
        (imports_libraries_at_their_door, "engine/runtime/loop.py", "from time import monotonic"),
        (reads_no_clock, "engine/runtime/loop.py", "import datetime as dt\nnow = dt.datetime.now(dt.UTC)"),
        (reads_no_clock, "resources/children/pod.py", "from datetime import date\ntoday = date.today()"),
        (reads_no_clock, "sandbox/src/grove_sandbox/kubelet.py", "import anyio\nasync def run():\n    await anyio.sleep(1)"),
        (hides_no_import, "engine/planner.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import engine.tick"),
        (hides_no_import, "engine/planner.py", "import typing as t\nif t.TYPE_CHECKING:\n    import engine.tick"),
        (copies_values_as_structs, "resources/children/pod.py", "from dataclasses import dataclass, replace"),
        (is_short, "tests/engine/test_planner.py", "x = 1\n" * (LONGEST_FILE + 1)),
    ],
)
def test_a_violation_is_found(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(path, text))) != []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("engine/planner.py", "from datetime import UTC, datetime, timedelta\nepoch = datetime.fromtimestamp(0, UTC)"),
        ("engine/leaves.py", "from deepdiff import DeepDiff"),
        ("providers/plan_policies/cel.py", "from google.protobuf import descriptor_pool"),
        ("engine/runtime/clock.py", "import time, anyio, datetime\nnow = datetime.datetime.now(datetime.UTC)"),
        ("engine/runtime/loop.py", "from engine.tick import tick\nasync def run(clock):\n    await clock.sleep(clock.now())"),
        ("resources/children/pod.py", "from engine.graph import Graph\nfrom resources.model.view import View"),
        ("providers/registry.py", "from providers.fabrics import nvlink"),
        ("providers/kubernetes/client.py", "import aiohttp, kr8s, anyio\nasync def yield_once():\n    await anyio.sleep(0)"),
        ("cmd/enginectl/main.py", "import typer\nfrom providers.registry import CLUSTERS\nfrom enginectl.wiring.wiring import wire"),
        ("tests/providers/test_client.py", "import time, kr8s"),
        ("sandbox/src/grove_sandbox/product/__init__.py", "from engine.ids import Kind\nfrom enginectl.base import terminal"),
        ("sandbox/src/grove_sandbox/process.py", "from grove_sandbox.product import Kind"),
    ],
)
def test_what_is_allowed_passes(path: str, text: str) -> None:
    assert [(rule.__name__, violation) for rule in RULES for violation in rule(Source(path, text))] == []


def test_a_circle_of_folders_is_found_where_no_files_make_one() -> None:
    names = Source("resources/base/names.py", "from resources.model.view import View")
    view = Source("resources/model/view.py", "from engine.ids import Kind")
    topology = Source("resources/model/topology.py", "from resources.base.kinds import POD")
    kinds = Source("resources/base/kinds.py", "from engine.ids import Kind")

    assert circle([names, view, topology, kinds]) == []
    assert set(folder_circle([names, view, topology, kinds])) == {"resources/base", "resources/model"}


def test_a_circle_is_found_even_inside_a_function() -> None:
    plan = Source("engine/planner.py", "from engine.graph import Graph")
    graph = Source("engine/graph.py", "def late():\n    from engine import planner")

    assert set(circle([plan, graph])) == {"engine.planner", "engine.graph"}
