"""Paging: a list that is read in pages of one revision."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

from engine.errors import Expired
from engine.ids import Kind
from providers.kubernetes.wire import JSON, HttpRequest, ListPage, Send, collection, query

T = TypeVar("T")

ReadPage = Callable[[bytes, Kind], ListPage[T]]

PAGE_SIZE = "500"
"""Objects of a page, as client-go lists them; the value of `limit`."""


async def list_all(
    send: Send, read: ReadPage[T], kind: Kind, namespace: str, labels: str, fields: str, *, accept: str = JSON
) -> tuple[list[T], str]:
    """All objects of the kind, each as `read` returns it, and the revision of the list. `accept`: the form to ask for."""
    try:
        return await _list_in_pages(send, read, kind, namespace, labels, fields, PAGE_SIZE, accept)
    except Expired:
        # The server no longer has the revision of the first page: read everything in one page.
        return await _list_in_pages(send, read, kind, namespace, labels, fields, "", accept)


async def _list_in_pages(
    send: Send, read: ReadPage[T], kind: Kind, namespace: str, labels: str, fields: str, limit: str, accept: str
) -> tuple[list[T], str]:
    items: list[T] = []
    revision = ""
    async with aclosing(each_page(send, read, kind, namespace, labels, fields, limit, accept)) as pages:
        async for page in pages:
            items.extend(page.items)
            revision = page.revision
    return items, revision


async def each_page(
    send: Send,
    read: ReadPage[T],
    kind: Kind,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    limit: str = PAGE_SIZE,
    accept: str = JSON,
) -> AsyncGenerator[ListPage[T]]:
    """One page after the other. Raises `Expired` if the server no longer has the revision of the first page. Use `aclosing`."""
    path, token = collection(kind, namespace), ""
    while True:
        parameters = query(labelSelector=labels, fieldSelector=fields, limit=limit, continue_=token)
        page = read((await send(HttpRequest("GET", path + parameters, accept=accept))).content, kind)
        yield page
        token = page.continue_token
        if not token:
            return
