"""Libraries are used by their public names, and left as they are. The exceptions are listed, each with its reason."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.test_layout import PRODUCT, Rule, Source, layer_of_import

# File -> what it does with the internals of a library, and why.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "cmd/enginectl/entry.py": {"os._exit": "documented: ends a process without what Python does at the end of one"},
    "cmd/enginectl/main.py": {
        "sys.stdout": "documented: where the interpreter writes to when it ends",
        "sys.stderr": "documented: where the interpreter writes to when it ends",
    },
    "cmd/enginectl/wiring/leases.py": {"os._exit": "documented: ends a process of which other threads hang"},
    "engine/runtime/optional_imports.py": {"sys.modules": "documented: a module that is None there cannot be imported"},
    "providers/kubernetes/connection_pool.py": {"SSLProtocol.max_size": "asyncio has no option for the buffer of a TLS connection"},
    "providers/profiling/profiler.py": {"sys._current_frames": "documented: the stacks of all threads"},
    "resources/schema/wire.py": {"sys.modules": "documented: the module of a class, whose source is read"},
}
PRIVATE = re.compile(r"_[^\W_]\w*")
DOCUMENTED = frozenset({"_asdict", "_fields", "_make", "_replace"})
"""The public attributes of a named tuple."""


def uses_public_names(source: Source) -> Iterator[tuple[int, str]]:
    """A private name is used in the file that defines it, and on `self` also in subclasses of the product."""
    for line, name in source.imports:
        if any(PRIVATE.fullmatch(part) for part in name.split(".")):
            yield line, f"imports {name}, which is private"
    own = private_names(source)
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr):
            known = own | names_of_the_product() if ast.unparse(node.value) in ("self", "super()") else own
            if node.attr not in known | DOCUMENTED and not is_exception(source, used := ast.unparse(node)):
                yield node.lineno, f"uses {used}, which is private to another module"


def leaves_libraries_as_they_are(source: Source) -> Iterator[tuple[int, str]]:
    """No attribute of a library is replaced, and no module in `sys.modules`."""
    names = {part for _, name in source.imports if not layer_of_import(name) for part in (name.split(".")[0], name.split(".")[-1])}
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            changed = ast.unparse(node.args[0])
        elif isinstance(node, ast.Attribute) and (isinstance(node.ctx, ast.Store | ast.Del) or is_table_of_modules(node)):
            changed = ast.unparse(node)
        else:
            continue
        if changed.partition(".")[0] in names and not is_exception(source, changed):
            yield node.lineno, f"changes {changed}, which belongs to a library"


def is_table_of_modules(node: ast.Attribute) -> bool:
    """Whether it is `sys.modules`."""
    return node.attr == "modules" and isinstance(node.value, ast.Name) and node.value.id == "sys"


def is_exception(source: Source, used: str) -> bool:
    """Whether the file is listed with that."""
    return used in EXCEPTIONS.get(source.path, ())


@cache
def names_of_the_product() -> frozenset[str]:
    """The private names that any file of the product defines."""
    return frozenset[str]().union(*map(private_names, PRODUCT))


def private_names(source: Source) -> frozenset[str]:
    """The private names that a file defines: functions, classes, variables, and attributes of `self`."""
    found: set[str] = set()
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            found.add(node.attr)
    return frozenset(name for name in found if PRIVATE.fullmatch(name))


@pytest.mark.parametrize("rule", [uses_public_names, leaves_libraries_as_they_are], ids=lambda rule: rule.__name__)
def test_every_file_of_the_product(rule: Rule) -> None:
    violations = [f"{source.path}:{line}: {what}" for source in PRODUCT for line, what in rule(source)]

    assert violations == []


def test_every_exception_is_needed() -> None:
    texts = {source.path: source.text for source in PRODUCT}

    assert [(path, used) for path, listed in EXCEPTIONS.items() for used in listed if used not in texts[path]] == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (uses_public_names, "from kr8s._api import Api"),
        (uses_public_names, "import httpx._main"),
        (uses_public_names, "def late():\n    from engine.planner import _kept"),
        (uses_public_names, "def digest(auth):\n    return auth._insecure_skip_tls_verify"),
        (uses_public_names, "class Pool(Connector):\n    def close(self):\n        self._waiters_of_aiohttp.clear()"),
        (leaves_libraries_as_they_are, "import kr8s\nkr8s.objects.Pod = None"),
        (leaves_libraries_as_they_are, "import kr8s\nsetattr(kr8s.objects, 'Pod', None)"),
        (leaves_libraries_as_they_are, "from aiohttp import hdrs\nhdrs.ACCEPT = ''"),
        (leaves_libraries_as_they_are, "import sys\nsys.modules.setdefault('httpx', None)"),
    ],
)
def test_a_violation_is_found(rule: Rule, text: str) -> None:
    assert list(rule(Source("providers/kubernetes/api.py", text))) != []


@pytest.mark.parametrize(
    "text",
    [
        "class Span:\n    def __init__(self, other):\n        self._end = other._end",
        "def renamed(id):\n    return id._replace(name='x')",
        "from pathlib import Path\ndef moved(value):\n    value.path = Path()",
    ],
)
def test_what_is_allowed_passes(text: str) -> None:
    source = Source("engine/span.py", text)

    assert [*uses_public_names(source), *leaves_libraries_as_they_are(source)] == []
