"""The architecture as a test: which layer and folder may import which, what must be pure, and which file alone imports which library."""

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
ROOTS = ("engine", "resources", "providers", "cmd", "sandbox/src")
SOURCE_ROOTS = {"enginectl": "cmd", "initc": "cmd", "grove_sandbox": "sandbox/src"}
"""Package -> the folder it lies in, which is no part of its name."""
SANDBOX = "sandbox/src/grove_sandbox"
FACADE = f"{SANDBOX}/product"
"""The only folder of the sandbox that imports the product: one file."""
LONGEST_FILE = 450

# Layer: its folder (the longest match wins) -> the layers that it may import, besides itself.
LAYERS: dict[str, tuple[str, ...]] = {
    "engine": (),
    "engine/runtime": ("engine",),
    "resources": ("engine",),
    "providers/fabrics": ("engine", "resources"),
    "providers/schedulers": ("engine", "resources"),
    "providers": ("engine", "engine/runtime", "resources", "providers/fabrics", "providers/schedulers"),
    "cmd/enginectl": ("engine", "engine/runtime", "resources", "providers", "providers/fabrics", "providers/schedulers"),
    "cmd/initc": (),
    # The product does not import the sandbox, a distribution of its own; of the sandbox only the façade imports the product.
    SANDBOX: (FACADE,),
    FACADE: ("engine", "engine/runtime", "resources", "providers", "providers/fabrics", "cmd/enginectl"),
}

TOP = ""
"""The files that lie in a parent itself and in none of its folders."""

# Parent -> each of its folders -> the folders of the same parent that it may import. Every folder of a parent is listed.
FOLDERS: dict[str, dict[str, tuple[str, ...]]] = {
    "engine": {
        "forecast": (TOP,),
        "report": (TOP, "forecast"),
        "approval": (TOP, "forecast", "report"),
        "runtime": (TOP, "report", "approval"),
    },
    "engine/report": {
        "diagram": (TOP,),
        "html": (TOP, "diagram"),
        "markdown": (TOP,),
    },
    "resources": {
        "base": (),
        "schema": ("base",),
        "ports": ("base", "schema"),
        "model": ("base", "schema", "ports"),
        "placement": ("base",),
        "dynamo": ("base", "schema", "ports"),
        "admission": ("base", "schema", "ports", "model", "dynamo"),
        "lifecycle": ("base", "ports", "model"),
        "domains": ("base", "ports", "model"),
        "status": ("base", "ports", "model", "lifecycle"),
        "children": ("base", "ports", "model", "admission", "lifecycle", "domains", "status"),
        "blueprints": ("base", "schema", "ports", "model", "dynamo", "admission", "lifecycle", "domains", "status", "children"),
        "reports": ("base", "schema", "ports", "model", "placement", "dynamo", "lifecycle", "domains", "status", "children"),
        "cluster_model": ("base", "ports", "model", "placement", "status"),
        "preview": (TOP, "base", "ports", "model", "placement", "admission", "domains", "cluster_model"),
        "install": (TOP, "base", "schema", "ports", "admission", "children"),
        "plan_policies": ("base", "schema"),
    },
    "resources/dynamo": {
        "model": (),
        "backends": ("model",),
        "versions": ("model", "backends"),
        "pods": ("model", "backends", "versions"),
        "objects": ("model", "pods"),
    },
    "providers": {
        "fabrics": (),
        "schedulers": (),
        "kubernetes": (),
        "http": (),
        "certificates": (TOP, "http"),
        "metrics": (TOP, "kubernetes"),
        "plan_policies": (),
        "profiling": ("kubernetes",),
        "tracing": (),
    },
    SANDBOX: {
        "product": (),
        "types": ("product",),
        "installation": ("product",),
        "apply": ("product", "types"),
        "tables": ("product", "types"),
        "kinds": ("product", "types"),
        "api": ("product", "types", "apply", "kinds"),
        "http": ("product", "types", "kinds", "tables", "api"),
        "clients": ("product", "types", "kinds", "api"),
        "actors": ("product", "types", "installation"),
        "driver": ("product", "types", "installation", "actors"),
        "commands": (TOP, "product", "installation", "api", "actors"),
    },
    "cmd/enginectl": {
        "base": (),
        "wiring": ("base",),
        "input": ("base", "wiring"),
        "output": ("base", "wiring"),
        "serving": ("base", "wiring", "input", "output"),
        "actions": ("base", "wiring", "input", "output", "serving"),
        "commands": ("base", "wiring", "input", "actions"),
    },
}

# The inputs of the pure function import none of its outputs.
INPUTS = ("engine/ids.py", "engine/resource.py", "engine/observed.py", "engine/answer.py", "engine/graph.py", "engine/memo.py")
OUTPUTS = (
    "engine.plan",
    "engine.planner",
    "engine.resource_plan",
    "engine.operation",
    "engine.event",
    "engine.diff",
    "engine.tick",
)

# Layers whose functions depend on their arguments alone: no clock, no randomness, no await, no I/O.
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
    "cel_expr_python": ("providers/plan_policies/",),
    "cryptography": (f"{SANDBOX}/http/", "providers/key_pair.py", "providers/certificates/"),
    "deepdiff": ("engine/leaves.py",),
    "google": ("providers/plan_policies/",),
    "h11": ("providers/http/",),
    "httpx": ("providers/kubernetes/",),
    "jsonpath": (f"{SANDBOX}/tables/",),
    "jsonschema_rs": (f"{SANDBOX}/",),
    "kr8s": ("providers/kubernetes/",),
    "opentelemetry": ("providers/tracing/",),
    "prometheus_client": ("providers/metrics/",),
    "starlette": (f"{SANDBOX}/",),
    "subprocess": ("cmd/enginectl/input/kustomize.py", "providers/plan_policies/process.py", f"{SANDBOX}/commands/detached.py"),
    "time": ("engine/runtime/clock.py",),
    "typer": ("cmd/", f"{SANDBOX}/commands/"),
    "uvicorn": (f"{SANDBOX}/",),
}
CLOCK = "engine/runtime/clock.py"
CLOCK_READERS = re.compile(r"(^|\.)(datetime|date)\.(now|today|utcnow)$|^(anyio|asyncio)\.sleep$")

TEXT_SUFFIXES = frozenset({".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".json", ".go", ".sh", ".mod", ""})
GENERATED = frozenset({".git", ".venv", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "build", "dist"})


@dataclass(frozen=True)
class Source:
    """One Python file: its path from the project's root, and its text."""

    path: str
    text: str

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of its syntax tree."""
        return tuple(ast.walk(ast.parse(self.text)))

    @property
    def module(self) -> str:
        """The name it is imported by; source roots are no part of it."""
        dotted = self.path.removeprefix("cmd/").removeprefix("sandbox/src/").removesuffix(".py").replace("/", ".")
        return dotted.removesuffix(".__init__")

    @property
    def layer(self) -> str:
        """The innermost layer that contains it, or empty."""
        return max((layer for layer in LAYERS if self.path.startswith(f"{layer}/")), key=len, default="")

    @cached_property
    def imports(self) -> tuple[tuple[int, str], ...]:
        """Each imported name with its line: `from a import b` is `a.b`, since the syntax does not say whether `b` is a module."""
        found: list[tuple[int, str]] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(node.lineno, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found += [(node.lineno, f"{node.module or ''}.{alias.name}") for alias in node.names]
        return tuple(found)


Rule = Callable[[Source], Iterator[tuple[int, str]]]


def imports_only_layers_below(source: Source) -> Iterator[tuple[int, str]]:
    """Imports between layers point one way."""
    if not source.layer:
        return
    allowed = {source.layer, *LAYERS[source.layer]}
    for line, name in source.imports:
        target = layer_of_import(name)
        if target and target not in allowed:
            yield line, f"{source.layer} must not import {target} ({name})"


def imports_only_folders_below(source: Source) -> Iterator[tuple[int, str]]:
    """Imports between the folders of a parent point one way. Only folders that list `TOP` import the files at its top."""
    for parent, allowed in FOLDERS.items():
        folder = folder_of(parent, source.path)
        if not folder:
            continue
        if folder not in allowed:
            yield 1, f"is in {parent}/{folder}, which FOLDERS does not list"
            continue
        for line, name in source.imports:
            target = folder_of(parent, path_of_import(name))
            if target is not None and target != folder and target not in allowed[folder]:
                yield line, f"{parent}/{folder} must not import {f'{parent}/{target}'.rstrip('/')} ({name})"


def inputs_import_no_outputs(source: Source) -> Iterator[tuple[int, str]]:
    """The modules of inputs import no module of outputs."""
    if source.path in INPUTS:
        for line, name in source.imports:
            if ".".join(name.split(".")[:2]) in OUTPUTS:
                yield line, f"an input imports an output ({name})"


def is_pure(source: Source) -> Iterator[tuple[int, str]]:
    """A pure layer awaits nothing, imports no impure module and calls no impure builtin."""
    if source.layer not in PURE:
        return
    for line, name in source.imports:
        if name.split(".")[0] in IMPURE_MODULES:
            yield line, f"imports {name} in a pure file"
    for node in source.nodes:
        if isinstance(node, WAITING):
            yield node.lineno, "awaits in a pure file"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield node.lineno, f"calls {node.func.id}() in a pure file"


def imports_libraries_at_their_door(source: Source) -> Iterator[tuple[int, str]]:
    """A library that may be replaced one day is imported in one place."""
    for line, name in source.imports:
        doors = DOORS.get(name.split(".")[0])
        if source.layer and doors and not source.path.startswith(doors):
            yield line, f"imports {name}, whose door is {' or '.join(doors)}"


def reads_no_clock(source: Source) -> Iterator[tuple[int, str]]:
    """Time is an argument; only the clock module reads it."""
    if not source.layer or source.path == CLOCK:
        return
    for node in source.nodes:
        if isinstance(node, ast.Call) and CLOCK_READERS.search(called := ast.unparse(node.func)):
            if called.endswith(".sleep") and ast.unparse(node.args[0]) == "0":
                continue  # yields to other tasks, and takes no time
            yield node.lineno, f"calls {called}() instead of being handed a Clock"


def hides_no_import(source: Source) -> Iterator[tuple[int, str]]:
    """An import for type checking counts like any other."""
    for node in source.nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name.endswith("TYPE_CHECKING"):
                yield node.lineno, "hides an import behind a TYPE_CHECKING"


def copies_values_as_structs(source: Source) -> Iterator[tuple[int, str]]:
    """Values are Structs, for which the functions of `dataclasses` do not work; type checkers do not notice."""
    for line, name in source.imports:
        if source.layer and name in ("dataclasses.replace", "dataclasses.asdict", "dataclasses.astuple"):
            yield line, f"imports {name} instead of the one in msgspec.structs"


def is_short(source: Source) -> Iterator[tuple[int, str]]:
    """A file has at most `LONGEST_FILE` lines."""
    length = source.text.count("\n")
    if length > LONGEST_FILE:
        yield LONGEST_FILE, f"has {length} lines, more than {LONGEST_FILE}: split it by its nouns"


RULES: tuple[Rule, ...] = (
    imports_only_layers_below,
    imports_only_folders_below,
    inputs_import_no_outputs,
    is_pure,
    imports_libraries_at_their_door,
    reads_no_clock,
    hides_no_import,
    copies_values_as_structs,
    is_short,
)


def path_of_import(name: str) -> str:
    """The path of an imported name from the project's root; meaningless for names that are not ours."""
    parts = name.split(".")
    return "/".join([SOURCE_ROOTS[parts[0]], *parts] if parts[0] in SOURCE_ROOTS else parts)


def layer_of_import(name: str) -> str:
    """The layer that an imported name belongs to, or empty for what is not ours."""
    path = path_of_import(name)
    return max((layer for layer in LAYERS if f"{path}/".startswith(f"{layer}/")), key=len, default="")


def folder_of(parent: str, path: str) -> str | None:
    """The folder of a parent that contains a path, empty for files at its top, None outside of it."""
    if not path.startswith(f"{parent}/"):
        return None
    first, _, rest = path.removeprefix(f"{parent}/").partition("/")
    return first if rest.endswith(".py") or (ROOT / parent / first).is_dir() else ""


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


def folder_circle(sources: Iterable[Source]) -> list[str]:
    """Folders of the product that import one another in a circle, or none. A file belongs to its innermost folder."""
    folders = {source.path.rpartition("/")[0] for source in sources}
    arrows: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        home = source.path.rpartition("/")[0]
        for _, name in source.imports:
            path = path_of_import(name)
            target = max((folder for folder in folders if f"{path}/".startswith(f"{folder}/")), key=len, default=home)
            if target != home:
                arrows[home].add(target)
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def files() -> Iterator[Path]:
    """Every text file of the project that is not generated."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - GENERATED)
        yield from (Path(folder, name) for name in sorted(names) if Path(name).suffix in TEXT_SUFFIXES)


def python_sources() -> list[Source]:
    """Every Python file of the project, tests and benchmarks too."""
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in files() if path.suffix == ".py"]


SOURCES = python_sources()
PRODUCT = [source for source in SOURCES if source.layer]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_file(rule: Rule) -> None:
    violations = [f"{source.path}:{line}: {what}" for source in SOURCES for line, what in rule(source)]

    assert violations == []


def test_every_file_of_the_product_belongs_to_a_layer() -> None:
    outside = [source.path for source in SOURCES if source.path.startswith(tuple(f"{root}/" for root in ROOTS)) and not source.layer]

    assert outside == []


def test_no_modules_import_one_another_in_a_circle() -> None:
    assert circle(PRODUCT) == []


def test_no_folders_import_one_another_in_a_circle() -> None:
    assert folder_circle(PRODUCT) == []


@pytest.mark.parametrize("parent", FOLDERS)
def test_every_folder_is_listed(parent: str) -> None:
    """A folder in which only compiled files are left, of sources that have moved, does not count."""
    there = {path.name for path in (ROOT / parent).iterdir() if path.is_dir() and path.name not in GENERATED and any(path.rglob("*.py"))}

    assert set(FOLDERS[parent]) == there


@pytest.mark.parametrize(("parent", "tests"), [("resources", "tests/resources"), (SANDBOX, "sandbox/tests")])
def test_the_tests_of_a_folder_lie_in_a_folder_of_its_name(parent: str, tests: str) -> None:
    allowed = {path.name for path in (ROOT / tests).iterdir() if path.is_dir() and path.name not in GENERATED}

    assert allowed <= set(FOLDERS[parent])


def test_every_door_exists() -> None:
    doors = [door for doors in DOORS.values() for door in doors]

    assert [door for door in doors if not (ROOT / door).exists()] == []


def test_cmd_is_a_source_root_and_leaves_the_standard_library_its_name() -> None:
    assert not (ROOT / "cmd" / "__init__.py").exists()
    assert issubclass(pdb.Pdb, cmd.Cmd)


def test_the_sandbox_imports_the_product_in_one_file() -> None:
    assert [path.name for path in (ROOT / FACADE).rglob("*.py")] == ["__init__.py"]


@pytest.mark.parametrize("root", ["engine", "resources", "providers", "cmd/enginectl", "cmd/initc", SANDBOX])
def test_every_package_says_that_it_is_typed(root: str) -> None:
    assert (ROOT / root / "py.typed").exists()
