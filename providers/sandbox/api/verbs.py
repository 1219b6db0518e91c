"""Api: an in-memory Kubernetes API, verb by verb; it knows nothing of HTTP.

One event loop, no threads, no awaiting: a verb either happens whole or raises `StatusError`. Objects are immutable once
stored: answers share them, and nobody changes what an answer holds.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from engine.ids import Kind
from engine.runtime.clock import Clock
from providers.sandbox.api import creating, deleting, faces, listing, scale, subresources, updating
from providers.sandbox.api.core import Admission, Core, Validation
from providers.sandbox.api.request import EVERYTHING, PLAINLY, Answer, Deletion, Item, Page, PatchHow, Request, Selection, answer
from providers.sandbox.api.store import Stored
from providers.sandbox.api.watching import Watch
from providers.sandbox.apply import patches, strategic
from providers.sandbox.kinds.served import Catalogue, no_such_subresource
from providers.sandbox.types import causes, status

Body = Mapping[str, Any]
_LONGEST_MANAGER = 128
FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class Api:
    """The whole API. `history` is how many events of each resource watches and paged lists can look back; `seed` fixes uids and
    generated names; before every write `admission` is asked in turn, and `validation` about what has come of that."""

    def __init__(
        self,
        clock: Clock,
        *,
        history: int = 10_000,
        seed: int | None = None,
        admission: tuple[Admission, ...] = (),
        validation: tuple[Validation, ...] = (),
    ) -> None:
        self.core = Core(clock, history=history, seed=seed, admission=admission, validation=validation)
        namespaces = self.catalogue.find("", "v1", "namespaces")
        for name in FIRST_NAMESPACES:
            self.create(Request(namespaces, manager="sandbox"), {"metadata": {"name": name}})

    @property
    def clock(self) -> Clock:
        """The clock that times are told by."""
        return self.core.clock

    @property
    def catalogue(self) -> Catalogue:
        """What is served."""
        return self.core.catalogue

    @property
    def revision(self) -> str:
        """The resourceVersion of the latest write."""
        return str(self.core.store.revision)

    def create(self, request: Request, body: Body) -> Answer:
        """POST to a collection (`request.name` empty), or to a subresource of one object: binding, eviction, token."""
        _check_manager(request, "CreateOptions")
        if request.subresource:
            return subresources.post(self.core, request, body)
        return creating.create(self.core, request, body)

    def get(self, request: Request) -> Answer:
        """GET one object or its subresource (status, scale)."""
        self._check_subresource(request)
        stored = self.core.stored(request)
        body, encoded = faces.shown(request.served, stored)
        if request.subresource == "scale":
            return answer(200, scale.shown(request.served, body))
        return Answer(200, body, encoded)

    def list(self, request: Request, selection: Selection = EVERYTHING) -> Page:
        """GET a collection."""
        return listing.list_page(self.core, request, selection)

    def replace(self, request: Request, body: Body) -> Answer:
        """PUT an object, its status, its scale, or a namespace's finalizers (finalize). 201 where PUT creates."""
        _check_manager(request, "UpdateOptions")
        self._check_subresource(request)
        if request.subresource == "scale":
            return self._scaled(request, lambda _: body)
        return updating.put(self.core, request, body)

    def patch(self, request: Request, body: Any, how: PatchHow) -> Answer:
        """PATCH an object or a subresource; 201 where an apply patch creates."""
        _check_manager(request, "PatchOptions")
        self._check_subresource(request)
        if how == "strategic" and request.served.custom:
            accepted = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
            message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
            raise status.unsupported_media_type(message)
        if request.subresource == "scale":
            return self._scaled(request, lambda shown: _patched(request, shown, body, how))
        if how == "apply":
            return updating.apply(self.core, request, body)
        return updating.change(self.core, request, lambda live: _patched(request, live, body, how))

    def delete(self, request: Request, deletion: Deletion = PLAINLY) -> Answer:
        """DELETE one object: 200 with a Status (or the object, for some kinds) when it is gone, the object while it lingers."""
        return deleting.delete(self.core, request, deletion)

    def delete_collection(self, request: Request, selection: Selection = EVERYTHING, deletion: Deletion = PLAINLY) -> Page:
        """DELETE every object that the selection picks; the page holds them."""
        page = self.list(request, selection)
        items = tuple(self._delete_item(request, item, deletion) for item in page.items)
        return Page(request.served, items, self.revision if items else page.revision)

    def watch(self, request: Request, selection: Selection = EVERYTHING) -> Watch:
        """A stream of events: `async with api.watch(...) as watch: async for event in watch: ...`.

        Refusals that the server answers with an HTTP code raise here; those inside the stream come as an `ERROR` event.
        """
        return watch(self.core, request, selection)

    def _delete_item(self, request: Request, item: Item, deletion: Deletion) -> Item:
        metadata = item.body["metadata"]
        one = replace(request, namespace=metadata.get("namespace", ""), name=metadata["name"])
        deleting.delete(self.core, one, deletion)
        return item

    def _scaled(self, request: Request, make: Callable[[Body], Any]) -> Answer:
        shown = scale.shown(request.served, faces.shown(request.served, self.core.stored(request))[0])
        wanted = make(shown)
        done = updating.change(self.core, request, lambda _: scale.changed(self.core, request, wanted))
        return answer(done.code, scale.shown(request.served, done.body), done.warnings)

    def _check_subresource(self, request: Request) -> None:
        if request.subresource and request.subresource not in request.served.subresources:
            raise no_such_subresource(request.served, request.name)


def _check_manager(request: Request, options: str) -> None:
    """Raises 422 for a manager's name that is too long to remember."""
    if len(request.manager.encode()) > _LONGEST_MANAGER:
        found = [causes.too_long("fieldManager", _LONGEST_MANAGER)]
        raise status.invalid(Kind("meta.k8s.io", "v1", options, ""), "", found)


def _patched(request: Request, live: Body, patch: Any, how: PatchHow) -> Any:
    """The live body after a patch. Raises 400 or 422 where the patch makes no sense."""
    if how == "json":
        try:
            return patches.patched(live, patch)
        except patches.PatchFault as fault:
            message = "the server rejected our request due to an error in our request"
            raise status.StatusError(422, "Invalid", message, details={}) from fault
    if not isinstance(patch, Mapping):
        raise patches.undecoded(patch, "map[string]interface {}", **({"prefix": ""} if how == "strategic" else {}))
    return patches.merged(live, patch) if how == "merge" else strategic.merged(live, patch, request.served.shape)


def watch(core: Core, request: Request, selection: Selection) -> Watch:
    """Open a watch at the revision that the selection names: none or 0 begins with the objects that are there."""
    selector = listing.selector_of(request, selection)
    listing.check_options(selection)
    collection = core.collection(request)
    from_start = selection.revision in ("", "0") or selection.initial_events is True
    since = core.store.revision if from_start else listing.read_revision(selection.revision)
    served = request.served
    stream = Watch(
        core.store,
        collection,
        selector,
        request.namespace,
        lambda stored: faces.shown(served, stored),
        served.kind.api_version,
        served.kind.name,
        since=max(since, collection.forgotten),
        timeout=selection.timeout,
        bookmarks=selection.bookmarks,
    )
    if since < collection.forgotten:
        stream.fail(status.expired(f"too old resource version: {since} ({collection.forgotten})"))
    elif from_start and selection.initial_events is not False:
        present: list[Stored] = [collection.objects[key] for key in collection.keys(request.namespace)]
        stream.begin_with([one for one in present if selector.matches(one.body)], mark=selection.initial_events is True)
    return stream
