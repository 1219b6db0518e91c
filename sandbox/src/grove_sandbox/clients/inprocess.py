"""InProcessClient: the engine's `Client` for the in-memory API, without HTTP.

Returned objects are shared with the store and must not be changed. Objects that are sent are copied.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import orjson
from msgspec.structs import replace

from grove_sandbox.api.request import Deletion, Request, Selection
from grove_sandbox.api.verbs import Api
from grove_sandbox.kinds.served import Served
from grove_sandbox.product import Body, Kind, Listing, PatchType, error_of_status
from grove_sandbox.types.status import StatusError


class InProcessClient:
    """A `Client` of an `Api`. `field_manager` is the manager of its writes."""

    def __init__(self, api: Api, field_manager: str = "engine", *, dry_run: bool = False) -> None:
        """`dry_run`: every write is checked and none is stored."""
        self._api = api
        self._manager = field_manager
        self._dry_run = dry_run

    def trying(self) -> "InProcessClient":
        """A client of the same `Api` whose writes are dry runs."""
        return InProcessClient(self._api, self._manager, dry_run=True)

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        """Every object of the kind, in a namespace or in all."""
        with _translated():
            page = self._api.list(self._request(kind, namespace), Selection(labels=labels, fields=fields))
        return Listing([_object(item.body) for item in page.items], page.revision)

    async def watch(
        self, kind: Kind, namespace: str = "", *, since: str, labels: str = "", fields: str = "", on_open: Callable[[], None] | None = None
    ) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        """The events after revision `since`. Raises `Expired` if that is forgotten."""
        selection = Selection(labels=labels, fields=fields, revision=since)
        with _translated():
            watch = self._api.watch(self._request(kind, namespace), selection)
        async with watch:
            if on_open is not None:
                on_open()
            async for event in watch:
                if event.type == "ERROR":
                    raise error_of_status(event.body)
                yield event.type, _object(event.body)

    async def get(self, kind: Kind, namespace: str, name: str, *, subresource: str = "") -> dict[str, Any]:
        """One object, or one subresource of it."""
        with _translated():
            return _object(self._api.get(self._request(kind, namespace, name, subresource)).body)

    async def create(self, kind: Kind, namespace: str, body: Body, *, name: str = "", subresource: str = "") -> dict[str, Any]:
        """POST to the collection, or to a subresource of one object."""
        with _translated():
            return _object(self._api.create(self._request(kind, namespace, name, subresource), _copied(body)).body)

    async def replace(self, kind: Kind, namespace: str, name: str, body: Body, *, subresource: str = "") -> dict[str, Any]:
        """PUT, bound to the resourceVersion in the body if there is one."""
        with _translated():
            return _object(self._api.replace(self._request(kind, namespace, name, subresource), _copied(body)).body)

    async def patch(
        self, kind: Kind, namespace: str, name: str, body: Any, *, how: PatchType = "merge", subresource: str = "", force: bool = False
    ) -> dict[str, Any]:
        """PATCH of the given type."""
        request = replace(self._request(kind, namespace, name, subresource), force=force)
        with _translated():
            return _object(self._api.patch(request, _copied(body), how).body)

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str = "", revision: str = "", propagation: str = "", grace: int | None = None
    ) -> dict[str, Any]:
        """DELETE with preconditions."""
        deletion = Deletion(grace, propagation, uid or None, revision or None)
        with _translated():
            return _object(self._api.delete(self._request(kind, namespace, name), deletion).body)

    async def kinds(self) -> Sequence[Kind]:
        """The served kinds, each once, in its preferred version."""
        return [served.kind for served in self._api.catalogue if served.preferred]

    def _request(self, kind: Kind, namespace: str, name: str = "", subresource: str = "") -> Request:
        served: Served = self._api.catalogue.find(kind.group, kind.version, kind.plural)
        return Request(served, namespace if kind.namespaced else "", name, subresource, self._manager, dry_run=self._dry_run)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except StatusError as refusal:
        raise error_of_status(refusal.body, refusal.code, str(refusal.retry_after or "")) from None


def _object(body: Mapping[str, Any]) -> dict[str, Any]:
    return cast(dict[str, Any], body)


def _copied(body: Any) -> Any:
    """The body as it would arrive over HTTP: tuples are lists, and every mapping is a dict."""
    return orjson.loads(orjson.dumps(body, default=dict))
