"""Api: an in-memory Kubernetes API, verb by verb; it knows nothing of HTTP.

One event loop, no threads, no awaiting: a verb either happens whole or raises `StatusError`. Objects are immutable once
stored: answers share them, and nobody changes what an answer holds.
"""

from collections.abc import Mapping
from typing import Any

from engine.runtime.clock import Clock
from providers.sandbox.request import Answer, Deletion, Page, PatchHow, Request, Selection
from providers.sandbox.served import Catalogue
from providers.sandbox.watching import Watch


class Api:
    """The whole API. `history` is how many events of each resource watches and paged lists can look back."""

    def __init__(self, clock: Clock, *, history: int = 10_000) -> None:
        self.clock = clock
        self.catalogue = Catalogue()
        self.history = history

    def create(self, request: Request, body: Mapping[str, Any]) -> Answer:
        """POST to a collection (`request.name` empty), or to a subresource of one object: binding, eviction, token."""
        raise NotImplementedError

    def get(self, request: Request) -> Answer:
        """GET one object or its subresource (status, scale)."""
        raise NotImplementedError

    def list(self, request: Request, selection: Selection = Selection()) -> Page:
        """GET a collection."""
        raise NotImplementedError

    def replace(self, request: Request, body: Mapping[str, Any]) -> Answer:
        """PUT an object, its status, its scale, or a namespace's finalizers (finalize). 201 where PUT creates."""
        raise NotImplementedError

    def patch(self, request: Request, body: Any, how: PatchHow) -> Answer:
        """PATCH an object or a subresource; 201 where an apply patch creates."""
        raise NotImplementedError

    def delete(self, request: Request, deletion: Deletion = Deletion()) -> Answer:
        """DELETE one object: 200 with a Status when it is gone, 200 (or 202) with the object while it lingers."""
        raise NotImplementedError

    def delete_collection(self, request: Request, selection: Selection = Selection(), deletion: Deletion = Deletion()) -> Page:
        """DELETE every object that the selection picks; the page holds them."""
        raise NotImplementedError

    def watch(self, request: Request, selection: Selection = Selection()) -> Watch:
        """A stream of events: `async with api.watch(...) as watch: async for event in watch: ...`.

        Refusals that the server answers with an HTTP code raise here; those inside the stream come as an `ERROR` event.
        """
        raise NotImplementedError
