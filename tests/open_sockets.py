"""Open sockets: a test that leaves a socket to the collector fails itself, not a later test in which the collector happens to run."""

import gc
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import pytest

_OPENED: WeakValueDictionary[int, socket.socket] = WeakValueDictionary()


@pytest.fixture(scope="session", autouse=True)
def _sockets_are_noted() -> Iterator[None]:
    """Note every socket of this process."""
    opened = socket.socket.__init__

    def noted(self: socket.socket, *words: Any, **options: Any) -> None:
        opened(self, *words, **options)
        _OPENED[id(self)] = self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "__init__", noted)
        yield


@pytest.fixture(autouse=True)
def no_unclosed_sockets(_sockets_are_noted: None) -> Iterator[None]:
    """Every socket that a test opens is closed, or still in use, at its end."""
    with collected_if_open():
        yield


@contextmanager
def collected_if_open() -> Iterator[None]:
    """Run the collector after the block if sockets of the block are open: Python warns of those that nothing refers to.

    A collection is far too expensive for every test; hardly any leaves a socket open.
    """
    before = _open()
    yield
    if _open() - before:
        gc.collect()


def unclosed(work: Callable[[], object]) -> list[str]:
    """What Python says of the sockets and transports that are neither closed nor in use when the work has ended."""
    gc.collect()
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        work()
        gc.collect()
    return [str(each.message) for each in reported if each.category is ResourceWarning]


def _open() -> set[socket.socket]:
    # Threads of servers open sockets meanwhile: this copies the references before it goes through them.
    sockets = (reference() for reference in _OPENED.valuerefs())
    return {each for each in sockets if each is not None and each.fileno() >= 0}
