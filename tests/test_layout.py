"""The architecture is a test: who may import whom, what must stay pure, and which file is the one door to which library."""

import ast
import cmd
import os
import pdb
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOTS = ("engine", "resources", "providers", "cmd")
TALLEST = 450

# Band: the folder it lives in (the longest match wins) -> the bands it may look at, besides itself.
BANDS: dict[str, tuple[str, ...]] = {
    "engine": (),
    "engine/runtime": ("engine",),
    "resources": ("engine",),
    "providers/fabrics": ("engine", "resources"),
    "providers/schedulers": ("engine", "resources"),
    "providers": ("engine", "engine/runtime", "resources", "providers/fabrics", "providers/schedulers"),
    "cmd/enginectl": ("engine", "engine/runtime", "resources", "providers", "providers/fabrics", "providers/schedulers"),
    "cmd/initc": (),
}

# Here an answer depends on the arguments alone: no clock, no chance, no waiting, no outside.
PURE = ("engine", "resources", "providers/fabrics", "providers/schedulers")
IMPURE_MODULES = frozenset(
    "aiohttp anyio asyncio http logging multiprocessing os pathlib queue random secrets select shutil signal socket ssl"
    " structlog subprocess tempfile threading time uuid".split()
)
IMPURE_CALLS = frozenset({"open", "input", "print", "breakpoint"})
WAITING = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)

# Library: the only places of the product that may import it.
DOORS: dict[str, tuple[str, ...]] = {
    "aiohttp": ("providers/kubernetes/",),
    "cryptography": ("engine/runtime/certs.py", "providers/sandbox/"),
    "deepdiff": ("engine/diff.py",),
    "httpx": ("providers/kubernetes/",),
    "jsonschema_rs": ("providers/sandbox/", "resources/admission/"),
    "kr8s": ("providers/kubernetes/",),
    "starlette": ("engine/runtime/http.py", "engine/runtime/webhook.py", "providers/sandbox/"),
    "time": ("engine/runtime/clock.py",),
    "typer": ("cmd/",),
    "uvicorn": ("engine/runtime/http.py", "providers/sandbox/"),
}
CLOCK = "engine/runtime/clock.py"
CLOCK_READERS = re.compile(r"(^|\.)(datetime|date)\.(now|today|utcnow)$|^(anyio|asyncio)\.sleep$")

# A path of the machine, or of the registry, that a file happened to be written with; `mpiuser` lives in an image of an example.
WORKPLACE = re.compile(
    r"(?<![\w.$}])/(?:home(?!/mpiuser/)|root|Users|work|workspace)/\w|\.{2}/shared\b"
    r"|https?://[^\s/]*(?:pypi|pythonhosted|npmjs|golang|debian|maven)"
)
WRITTEN = frozenset({".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".json", ".go", ".sh", ".mod", ""})
NOT_OURS = frozenset({".git", ".venv", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "build", "dist"})


@dataclass(frozen=True)
class Source:
    """One Python file: where it lies, seen from the project's root, and what it says."""

    path: str
    text: str

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of its syntax tree."""
        return tuple(ast.walk(ast.parse(self.text)))

    @property
    def module(self) -> str:
        """The name it is imported by; `cmd/` is a source root and no part of it."""
        dotted = self.path.removeprefix("cmd/").removesuffix(".py").replace("/", ".")
        return dotted.removesuffix(".__init__")

    @property
    def band(self) -> str:
        """The band whose folder holds it most closely, or empty."""
        return max((band for band in BANDS if self.path.startswith(f"{band}/")), key=len, default="")

    @cached_property
    def imports(self) -> tuple[tuple[int, str], ...]:
        """Each imported name with its line: `from a import b` is `a.b`, for who reads it cannot tell whether `b` is a module."""
        found: list[tuple[int, str]] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(node.lineno, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found += [(node.lineno, f"{node.module or ''}.{alias.name}") for alias in node.names]
        return tuple(found)


Rule = Callable[[Source], Iterator[tuple[int, str]]]


def looks_at_no_band_it_may_not(source: Source) -> Iterator[tuple[int, str]]:
    """Arrows between the bands point one way."""
    if not source.band:
        return
    allowed = {source.band, *BANDS[source.band]}
    for line, name in source.imports:
        target = band_of_import(name)
        if target and target not in allowed:
            yield line, f"{source.band} must not look at {target} ({name})"


def stays_pure(source: Source) -> Iterator[tuple[int, str]]:
    """In the pure bands nothing waits, and nothing comes from anywhere but the arguments."""
    if source.band not in PURE:
        return
    for line, name in source.imports:
        if name.split(".")[0] in IMPURE_MODULES:
            yield line, f"imports {name} in a pure file"
    for node in source.nodes:
        if isinstance(node, WAITING):
            yield node.lineno, "waits in a pure file"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield node.lineno, f"calls {node.func.id}() in a pure file"


def goes_through_the_one_door(source: Source) -> Iterator[tuple[int, str]]:
    """A library that we might want to change one day is imported in one place."""
    for line, name in source.imports:
        doors = DOORS.get(name.split(".")[0])
        if source.band and doors and not source.path.startswith(doors):
            yield line, f"imports {name}, whose door is {' or '.join(doors)}"


def asks_no_clock(source: Source) -> Iterator[tuple[int, str]]:
    """Time is an argument; only the clock knows it."""
    if not source.band or source.path == CLOCK:
        return
    for node in source.nodes:
        if isinstance(node, ast.Call) and CLOCK_READERS.search(called := ast.unparse(node.func)):
            if called.endswith(".sleep") and ast.unparse(node.args[0]) == "0":
                continue  # gives way to other tasks, and takes no time
            yield node.lineno, f"calls {called}() instead of being handed a Clock"


def hides_no_arrow(source: Source) -> Iterator[tuple[int, str]]:
    """An import for a type's sake is an arrow like any other."""
    for node in source.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).endswith("TYPE_CHECKING"):
            yield node.lineno, "hides an import behind a TYPE_CHECKING"


def is_of_one_noun(source: Source) -> Iterator[tuple[int, str]]:
    """A file that outgrows its noun is two files."""
    tall = source.text.count("\n")
    if tall > TALLEST:
        yield TALLEST, f"has {tall} lines, more than {TALLEST}: which two nouns is it?"


RULES: tuple[Rule, ...] = (
    looks_at_no_band_it_may_not,
    stays_pure,
    goes_through_the_one_door,
    asks_no_clock,
    hides_no_arrow,
    is_of_one_noun,
)


def band_of_import(name: str) -> str:
    """The band that an imported name belongs to, or empty for what is not ours."""
    parts = name.split(".")
    path = "/".join(["cmd", *parts] if parts[0] in {"enginectl", "initc"} else parts)
    return max((band for band in BANDS if f"{path}/".startswith(f"{band}/")), key=len, default="")


def circle(sources: Iterable[Source]) -> list[str]:
    """Modules that import one another in a circle, or none."""
    by_module = {source.module: source for source in sources}
    arrows: dict[str, set[str]] = defaultdict(set)
    for module, source in by_module.items():
        for _, name in source.imports:
            target = name if name in by_module else name.rpartition(".")[0]
            if target in by_module and target != module:
                arrows[module].add(target)
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def mentions_of_the_workplace(text: str) -> list[str]:
    """Paths and hosts of the place where the text was written."""
    return [match.group() for match in WORKPLACE.finditer(text)]


def files() -> Iterator[Path]:
    """Every text file of the project that somebody wrote."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - NOT_OURS)
        yield from (Path(folder, name) for name in sorted(names) if Path(name).suffix in WRITTEN)


def python_files() -> list[Source]:
    """Every Python file of the project, tests and benchmarks too."""
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in files() if path.suffix == ".py"]


SOURCES = python_files()
PRODUCT = [source for source in SOURCES if source.band]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_file(rule: Rule) -> None:
    breaches = [f"{source.path}:{line}: {what}" for source in SOURCES for line, what in rule(source)]

    assert breaches == []


def test_every_file_of_the_product_belongs_to_a_band() -> None:
    strays = [source.path for source in SOURCES if source.path.startswith(tuple(f"{root}/" for root in ROOTS)) and not source.band]

    assert strays == []


def test_no_modules_import_one_another_in_a_circle() -> None:
    assert circle(PRODUCT) == []


def test_the_project_does_not_tell_where_it_was_written() -> None:
    told = {str(path.relative_to(ROOT)): said for path in files() if (said := mentions_of_the_workplace(path.read_text("utf-8")))}

    assert told == {}


def test_cmd_is_a_source_root_and_leaves_the_standard_library_its_name() -> None:
    assert not (ROOT / "cmd" / "__init__.py").exists()
    assert issubclass(pdb.Pdb, cmd.Cmd)


@pytest.mark.parametrize("root", ROOTS[:-1])
def test_every_package_says_that_it_is_typed(root: str) -> None:
    assert (ROOT / root / "py.typed").exists()


# The rules themselves, held against small files that break them.


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (looks_at_no_band_it_may_not, "engine/planner.py", "from resources.base.names import pod_name"),
        (looks_at_no_band_it_may_not, "engine/planner.py", "from engine.runtime.clock import Clock"),
        (looks_at_no_band_it_may_not, "engine/planner.py", "from engine import runtime"),
        (looks_at_no_band_it_may_not, "engine/runtime/loop.py", "import resources.blueprints.parts"),
        (looks_at_no_band_it_may_not, "resources/children/pod.py", "def late():\n    import engine.runtime.cache"),
        (looks_at_no_band_it_may_not, "resources/children/pod.py", "from providers.registry import FABRICS"),
        (looks_at_no_band_it_may_not, "providers/fabrics/nvlink.py", "from providers.kubernetes.client import connect"),
        (looks_at_no_band_it_may_not, "providers/sandbox/api/verbs.py", "import enginectl.main"),
        (looks_at_no_band_it_may_not, "cmd/initc/wait.py", "from engine.ids import Kind"),
        (stays_pure, "engine/tick.py", "async def tick(): ..."),
        (stays_pure, "engine/tick.py", "import os"),
        (stays_pure, "resources/policies/termination.py", "from random import choice"),
        (stays_pure, "resources/children/pod.py", "import os.path as p"),
        (stays_pure, "resources/children/pod.py", "import logging"),
        (stays_pure, "providers/schedulers/kai.py", "def gangs(path):\n    return open(path)"),
        (goes_through_the_one_door, "providers/sandbox/actors.py", "import kr8s"),
        (goes_through_the_one_door, "engine/planner.py", "from deepdiff import DeepDiff"),
        (goes_through_the_one_door, "engine/runtime/session.py", "import typer"),
        (goes_through_the_one_door, "engine/runtime/loop.py", "from time import monotonic"),
        (asks_no_clock, "engine/runtime/loop.py", "import datetime as dt\nnow = dt.datetime.now(dt.UTC)"),
        (asks_no_clock, "resources/children/pod.py", "from datetime import date\ntoday = date.today()"),
        (asks_no_clock, "providers/sandbox/kubelet.py", "import anyio\nasync def run():\n    await anyio.sleep(1)"),
        (hides_no_arrow, "engine/planner.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import engine.tick"),
        (hides_no_arrow, "engine/planner.py", "import typing as t\nif t.TYPE_CHECKING:\n    import engine.tick"),
        (is_of_one_noun, "tests/engine/test_planner.py", "x = 1\n" * (TALLEST + 1)),
    ],
)
def test_a_breach_is_seen(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(path, text))) != []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("engine/planner.py", "from datetime import UTC, datetime, timedelta\nepoch = datetime.fromtimestamp(0, UTC)"),
        ("engine/diff.py", "from deepdiff import DeepDiff"),
        ("engine/runtime/clock.py", "import time, anyio, datetime\nnow = datetime.datetime.now(datetime.UTC)"),
        ("engine/runtime/loop.py", "from engine.tick import tick\nasync def run(clock):\n    await clock.sleep(clock.now())"),
        ("resources/children/pod.py", "from engine.graph import Graph\nfrom resources.model.view import View"),
        ("providers/registry.py", "from providers.fabrics import nvlink"),
        ("providers/kubernetes/client.py", "import aiohttp, kr8s, anyio\nasync def yield_once():\n    await anyio.sleep(0)"),
        ("cmd/enginectl/main.py", "import typer\nfrom providers.registry import CLUSTERS\nfrom enginectl.wiring import wire"),
        ("tests/providers/test_client.py", "import time, kr8s"),
    ],
)
def test_what_is_allowed_passes(path: str, text: str) -> None:
    assert [(rule.__name__, breach) for rule in RULES for breach in rule(Source(path, text))] == []


def test_a_circle_is_seen_even_inside_a_function() -> None:
    plan = Source("engine/planner.py", "from engine.graph import Graph")
    graph = Source("engine/graph.py", "def late():\n    from engine import planner")

    assert set(circle([plan, graph])) == {"engine.planner", "engine.graph"}


# A bar splits what must not stand in this file either.
@pytest.mark.parametrize("place", ["/ho|me/someone/notes", "see ..|/shared/notes", "https://files.py|pi.example/simple", "/wo|rk/main"])
def test_a_mention_of_the_workplace_is_seen(place: str) -> None:
    assert mentions_of_the_workplace(place.replace("|", "")) != []


def test_paths_of_a_cluster_are_no_mention_of_the_workplace() -> None:
    assert mentions_of_the_workplace("/api/v1/pods /etc/ssl/certs ./tests/controlplane/build ${HOME}/work/x https://kubernetes.io") == []
