"""Paging: a list asked for in parts that all belong to one revision."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from engine.errors import Expired
from engine.ids import Kind
from providers.kubernetes.wire import Answer, Page, Request, collection, query

T = TypeVar("T")

Send = Callable[[Request], Awaitable[Answer]]
Read = Callable[[bytes, Kind], Page[T]]

AT_ONCE = "500"
"""Objects to a page."""


async def listed(send: Send, read: Read[T], kind: Kind, namespace: str, labels: str, fields: str) -> tuple[list[T], str]:
    """Every object of the kind, and the revision at which they were all there."""
    try:
        return await _pages(send, read, kind, namespace, labels, fields, AT_ONCE)
    except Expired:
        # While we turned the pages so much was written that the first one's revision is forgotten: all in one piece, then.
        return await _pages(send, read, kind, namespace, labels, fields, "")


async def _pages(send: Send, read: Read[T], kind: Kind, namespace: str, labels: str, fields: str, limit: str) -> tuple[list[T], str]:
    items: list[T] = []
    path, rest = collection(kind, namespace), ""
    while True:
        asked = query(labelSelector=labels, fieldSelector=fields, limit=limit, continue_=rest)
        page = read((await send(Request("GET", path + asked))).content, kind)
        items.extend(page.items)
        rest = page.rest
        if not rest:
            return items, page.revision
