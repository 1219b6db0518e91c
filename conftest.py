"""What every test may ask for, and what none may touch."""

import gc
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import settings

MANY_COLLECTIONS = 200
"""So many collections of young objects since the last one of all: some hundred megabytes of garbage may have come together."""

pytest_plugins = ["tests.controlplane.fixtures", "tests.open_sockets"]
pytest.register_assert_rewrite("tests.reliability.trial")

# How long an example may take says more about the references on the machine than about the code.
# The same cases are generated every time, so that a change is judged by what it changes; `make laws` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("new", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("CASES", "same"))


FILES = pytest.StashKey[dict[Path, int]]()
"""The files of tests that several processes collect, with their places in the order of all.

Each process gets a quarter of that order, if there are four: a part of every folder, and it begins with another folder than the others do.
So tests that wait run beside tests that compute, from the beginning to the end.
"""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Stop the cyclic collector while tests are collected: rewriting asserts makes millions of objects, and hardly any garbage.

    Each of several processes begins to collect at another file: the one that comes to a file first rewrites its asserts, the others read
    the result.
    """
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    if worker and (files := files_of(session.config.args)):
        number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
        session.config.args = list(map(str, _turned(files, number, count)))
        shares = [_turned(files[index::count], index, count) for index in range(count)]
        session.config.stash[FILES] = {file: place for place, file in enumerate(chain.from_iterable(shares))}


def _turned(files: list[Path], index: int, count: int) -> list[Path]:
    """The files in their order, from another one on for each of `count` indices; those before it come last."""
    first = len(files) * index // count
    return files[first:] + files[:first]


def files_of(arguments: list[str]) -> list[Path]:
    """The files of tests in these folders, in the order in which pytest collects them; none if one of these is not a folder."""
    folders = list(map(Path, arguments))
    if not all(folder.is_dir() for folder in folders):
        return []
    files = (file for folder in folders for file in sorted(folder.rglob("test_*.py"), key=lambda file: file.parts))
    return [Path(name) for name in dict.fromkeys(map(os.path.abspath, files))]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every process has the tests in the same order, wherever it began to collect."""
    if places := config.stash.get(FILES, None):
        items.sort(key=lambda item: places[item.path])


def pytest_collection_finish() -> None:
    """Start the cyclic collector, without the objects that exist now: modules and tests, which stay until the process ends.

    It runs rarely: laws make many objects and hardly any cycles.
    """
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Collect what the last tests leave behind. The rest stays until the process ends: pytest and Python would look at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The engine runs on asyncio alone: its transport does."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def no_cluster_but_ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test finds the way to a cluster of whoever runs it."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("KUBECONFIG", raising=False)
        environment.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        environment.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True)
def little_garbage() -> Iterator[None]:
    """Collects what tests leave behind: commands let the collector look at all objects hardly ever, which is for processes that end.

    What exists then, between two tests, stays until the process ends, e.g. modules that a test has imported: no later run looks at it.
    """
    yield
    if gc.get_count()[2] > MANY_COLLECTIONS:
        gc.collect()
        gc.freeze()
