"""Open sockets: a test that leaves a socket to the collector fails itself, not a later test in which the collector happens to run."""

import gc
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
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


def left_open(url: str) -> list[str]:
    """The sockets of this process that are open to the server with that URL, on loopback."""
    peer = (urlsplit(url).hostname, urlsplit(url).port)
    return [repr(each) for each in _open() if _peer(each) == peer]


def _peer(opened: socket.socket) -> Any:
    """The address of the other end; None if there is none."""
    try:
        return opened.getpeername()
    except OSError:
        return None


def _open() -> set[socket.socket]:
    # Threads of servers open sockets meanwhile: this copies the references before it goes through them.
    sockets = (reference() for reference in _OPENED.valuerefs())
    return {each for each in sockets if each is not None and each.fileno() >= 0}
