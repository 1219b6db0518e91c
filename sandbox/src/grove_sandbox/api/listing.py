"""Listing: pages of a collection at one revision, and the tokens that continue them."""

import base64
from bisect import bisect_right
from collections.abc import Mapping

import orjson

from grove_sandbox.api import conversion, selectors
from grove_sandbox.api.core import Core
from grove_sandbox.api.request import Item, Page, Request, Selection
from grove_sandbox.api.selectors import Selector
from grove_sandbox.api.store import Collection, Stored, key_of
from grove_sandbox.kinds.served import Served
from grove_sandbox.product import Kind
from grove_sandbox.types import causes, status


def list_page(core: Core, request: Request, selection: Selection) -> Page:
    """One page. Raises 400 for invalid options, 410 for a token whose revision is forgotten, 504 for a future revision."""
    selector = selector_of(request, selection)
    check_options(selection)
    collection = core.collection(request)
    if selection.token:
        revision, start = _read_token(selection.token)
        objects, keys = _as_of(core, collection, request.namespace, revision)
    else:
        revision, start = _revision(core, selection), ""
        objects, keys = _exact(core, collection, request, selection, revision)
    keys = _named(keys, request, selection) if selector.tests else keys
    return _page(request.served, objects, keys, start, revision, selector, selection)


_LIST_OPTIONS = Kind("meta.k8s.io", "v1", "ListOptions", "")
_MATCHES = ("Exact", "NotOlderThan")


def check_options(selection: Selection) -> None:
    """Raises 400 or 422 for options that contradict one another."""
    if selection.token and selection.revision:
        raise status.bad_request("specifying resource version is not allowed when using continue")
    field = "resourceVersionMatch"
    if selection.initial_events is not None and selection.match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise status.invalid(_LIST_OPTIONS, "", [causes.forbidden(field, detail)])
    if selection.match and not selection.revision and selection.initial_events is None:
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise status.invalid(_LIST_OPTIONS, "", [causes.forbidden(field, detail)])
    if selection.match and selection.match not in _MATCHES:
        raise status.invalid(_LIST_OPTIONS, "", [causes.unsupported(field, selection.match, (*_MATCHES, ""))])


def selector_of(request: Request, selection: Selection) -> Selector:
    """The selector of a list or a watch."""
    return selectors.selector(request.served, selection.labels, selection.fields)


def _named(keys: list[str], request: Request, selection: Selection) -> list[str]:
    """The keys, reduced to one if the field selector is for one name in one namespace."""
    name = selectors.wants_name(selection.fields)
    if not name or (request.served.kind.namespaced and not request.namespace):
        return keys
    key = key_of(request.namespace, name)
    at = bisect_right(keys, key)
    return [key] if at and keys[at - 1] == key else []


def _revision(core: Core, selection: Selection) -> int:
    if selection.revision in ("", "0"):
        return core.store.revision
    try:
        revision = read_revision(selection.revision)
    except status.StatusError as fault:
        raise status.bad_request(f"invalid resource version: {fault.message}") from None
    if revision > core.store.revision:
        raise too_large(revision, core.store.revision)
    return revision if selection.match == "Exact" else core.store.revision


def read_revision(text: str) -> int:
    """A resourceVersion as a number. Raises 400."""
    try:
        return int(text)
    except ValueError:
        message = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise status.StatusError(500, "", message) from None


def too_large(revision: int, current: int) -> status.StatusError:
    """504: the revision is in the future."""
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1}
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    return status.StatusError(504, "Timeout", message, details=details, retry_after=1)


def _exact(
    core: Core, collection: Collection, request: Request, selection: Selection, revision: int
) -> tuple[Mapping[str, Stored], list[str]]:
    if selection.match == "Exact" and revision != core.store.revision:
        return _as_of(core, collection, request.namespace, revision)
    return collection.objects, collection.keys(request.namespace)


def _as_of(core: Core, collection: Collection, namespace: str, revision: int) -> tuple[Mapping[str, Stored], list[str]]:
    if revision < collection.forgotten:
        raise status.expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
            "continue parameter."
        )
    objects = collection.as_of(revision)
    prefix = f"{namespace}/" if namespace else ""
    return objects, sorted(key for key in objects if key.startswith(prefix))


def _page(
    served: Served,
    objects: Mapping[str, Stored],
    keys: list[str],
    start: str,
    revision: int,
    selector: Selector,
    selection: Selection,
) -> Page:
    items: list[Item] = []
    at = bisect_right(keys, start) if start else 0
    limit = selection.limit or len(keys)
    while at < len(keys) and len(items) < limit:
        stored = objects[keys[at]]
        if not selector.tests or selector.matches(stored.body):
            items.append(Item(*conversion.converted(served, stored)))
        at += 1
    left = len(keys) - at
    if not left:
        return Page(served, tuple(items), str(revision))
    remaining = None if selector.tests else left
    return Page(served, tuple(items), str(revision), _token(revision, keys[at - 1]), remaining)


def _token(revision: int, last: str) -> str:
    return base64.urlsafe_b64encode(orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": last})).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    try:
        read = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(read["rv"]), str(read["start"])
    except (ValueError, KeyError, TypeError):
        raise status.bad_request("invalid continue token: continue key is not valid: it is none of ours") from None
