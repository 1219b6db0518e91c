"""Api: the verbs of an in-memory Kubernetes API, independent of HTTP.

No verb awaits: it either takes effect completely or raises `StatusError`. Stored objects are immutable and shared by answers, which
must not be changed.
"""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

from msgspec.structs import replace

from grove_sandbox.api import conversion, creating, deleting, listing, scale, subresources, updating
from grove_sandbox.api.core import Admission, Core, Validation
from grove_sandbox.api.request import DEFAULT_DELETION, EVERYTHING, Answer, Deletion, Item, Page, Request, Selection, answer
from grove_sandbox.api.store import Stored
from grove_sandbox.api.watching import Watch
from grove_sandbox.apply import patches, strategic
from grove_sandbox.kinds.served import Catalogue, no_such_subresource
from grove_sandbox.product import Body, Clock, Kind, PatchType, merge_patch
from grove_sandbox.types import causes, status

_LONGEST_MANAGER = 128
FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class Api:
    """The whole API. `history`: how many changes of each resource are kept for watches and paged lists; `seed`: makes uids and generated
    names reproducible; `gangs`: whether kube-scheduler's kinds for gangs are served; `admission` and `validation`: the plugins that every
    write passes."""

    def __init__(
        self,
        clock: Clock,
        *,
        history: int = 10_000,
        seed: int | None = None,
        gangs: bool = False,
        admission: tuple[Admission, ...] = (),
        validation: tuple[Validation, ...] = (),
    ) -> None:
        self.core = Core(clock, history=history, seed=seed, gangs=gangs, admission=admission, validation=validation)
        namespaces = self.catalogue.find("", "v1", "namespaces")
        for name in FIRST_NAMESPACES:
            self.create(Request(namespaces, manager="sandbox"), {"metadata": {"name": name}})

    def fork(self, clock: Clock) -> "Api":
        """A second API whose state equals this one's, on another clock, and changes independently of it. It has no watches."""
        forked = copy(self)
        forked.core = self.core.fork(clock)
        return forked

    @property
    def clock(self) -> Clock:
        """The clock of all times in objects."""
        return self.core.clock

    @property
    def catalogue(self) -> Catalogue:
        """The served kinds."""
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
        body, encoded = conversion.converted(request.served, stored)
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

    def patch(self, request: Request, body: Any, type_: PatchType) -> Answer:
        """PATCH an object or a subresource; 201 where an apply patch creates."""
        _check_manager(request, "PatchOptions")
        self._check_subresource(request)
        if type_ == "strategic" and request.served.custom:
            accepted = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
            message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
            raise status.unsupported_media_type(message)
        if request.subresource == "scale":
            return self._scaled(request, lambda current: _patched(request, current, body, type_))
        if type_ == "apply":
            return updating.apply(self.core, request, body)
        return updating.change(self.core, request, lambda live: _patched(request, live, body, type_))

    def delete(self, request: Request, deletion: Deletion = DEFAULT_DELETION) -> Answer:
        """DELETE one object: a Status (of some kinds, the object) once it is removed, the object while it is being deleted."""
        return deleting.delete(self.core, request, deletion)

    def delete_collection(self, request: Request, selection: Selection = EVERYTHING, deletion: Deletion = DEFAULT_DELETION) -> Page:
        """DELETE the selected objects. Returns them."""
        page = self.list(request, selection)
        items = tuple(self._delete_item(request, item, deletion) for item in page.items)
        return Page(request.served, items, self.revision if items else page.revision)

    def watch(self, request: Request, selection: Selection = EVERYTHING) -> Watch:
        """A stream of events: `async with api.watch(...) as watch: async for event in watch: ...`.

        Raises refusals that have an HTTP code; a refusal within the stream is an `ERROR` event.
        """
        return watch(self.core, request, selection)

    def _delete_item(self, request: Request, item: Item, deletion: Deletion) -> Item:
        metadata = item.body["metadata"]
        deleting.delete(self.core, replace(request, namespace=metadata.get("namespace", ""), name=metadata["name"]), deletion)
        return item

    def _scaled(self, request: Request, edit: Callable[[Body], Any]) -> Answer:
        current = scale.shown(request.served, conversion.converted(request.served, self.core.stored(request))[0])
        edited = edit(current)
        done = updating.change(self.core, request, lambda _: scale.changed(self.core, request, edited))
        return answer(done.code, scale.shown(request.served, done.body), done.warnings)

    def _check_subresource(self, request: Request) -> None:
        if request.subresource and request.subresource not in request.served.subresources:
            raise no_such_subresource(request.served, request.name)


def _check_manager(request: Request, options: str) -> None:
    """Raises 422 for a field manager whose name is too long."""
    if len(request.manager.encode()) > _LONGEST_MANAGER:
        fault = causes.too_long("fieldManager", _LONGEST_MANAGER)
        raise status.invalid(Kind("meta.k8s.io", "v1", options, ""), "", [fault])


def _patched(request: Request, live: Body, patch: Any, type_: PatchType) -> Any:
    """The live body after a patch. Raises 400 or 422 for a patch that cannot be applied."""
    if type_ == "json":
        try:
            return patches.patched(live, patch)
        except patches.PatchFault as fault:
            message = "the server rejected our request due to an error in our request"
            raise status.StatusError(422, "Invalid", message, details={}) from fault
    if not isinstance(patch, Mapping):
        raise patches.undecoded(patch, "map[string]interface {}", **({"prefix": ""} if type_ == "strategic" else {}))
    return merge_patch(live, patch) if type_ == "merge" else strategic.merged(live, patch, request.served.shape)


def watch(core: Core, request: Request, selection: Selection) -> Watch:
    """A watch from the revision of the selection on; without one, or at 0, it begins with the existing objects."""
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
        lambda stored: conversion.converted(served, stored),
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
        stream.begin_with([stored for stored in present if selector.matches(stored.body)], mark=selection.initial_events is True)
    return stream
