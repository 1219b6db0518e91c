"""Options: the query parameters and DeleteOptions of a request, with the error messages of the server."""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import parse_qs

from grove_sandbox.api.request import Deletion, Selection, Strictness
from grove_sandbox.product import Kind, PatchType
from grove_sandbox.types import go_format
from grove_sandbox.types.status import Cause, StatusError, bad_request, invalid

Query = Mapping[str, list[str]]

_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("", "0", "f", "F", "FALSE", "false", "False")
_STRICTNESS = ("Ignore", "Strict", "Warn")
_PROPAGATION = ("Foreground", "Background", "Orphan")


def parse(query: bytes) -> Query:
    """The values of a query by name."""
    return parse_qs(query.decode("latin-1"), keep_blank_values=True)


def text(query: Query, name: str) -> str:
    """The first value of that name, or an empty text."""
    return query.get(name, [""])[0]


def flag(query: Query, name: str) -> bool | None:
    """A boolean; None if it is not set. Raises 400 for another value."""
    if name not in query:
        return None
    value = text(query, name)
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise bad_request(f"strconv.ParseBool: parsing {_quoted(value)}: invalid syntax")


def number(query: Query, name: str) -> int | None:
    """An integer; None if it is not set. Raises 400 for another value."""
    value = text(query, name)
    if not value:
        return None
    try:
        return int(value)
    except ValueError:
        raise bad_request(f"strconv.ParseInt: parsing {_quoted(value)}: invalid syntax") from None


def watching(query: Query) -> bool:
    """Whether a GET of a collection is a watch."""
    return bool(flag(query, "watch"))


def selection(query: Query) -> Selection:
    """The options of a list or watch. Raises 400."""
    timeout = number(query, "timeoutSeconds")
    return Selection(
        labels=text(query, "labelSelector"),
        fields=text(query, "fieldSelector"),
        limit=number(query, "limit") or 0,
        token=text(query, "continue"),
        revision=text(query, "resourceVersion"),
        match=text(query, "resourceVersionMatch"),
        timeout=float(timeout) if timeout else None,
        bookmarks=bool(flag(query, "allowWatchBookmarks")),
        initial_events=flag(query, "sendInitialEvents"),
    )


def dry_run(values: list[str], options: str) -> bool:
    """Whether the request is a dry run. Raises 422 for a value other than `All`."""
    if any(value != "All" for value in values):
        given = " ".join(_quoted(value) for value in values)
        raise _unsupported(options, "dryRun", f"[{given}]", ("All",))
    return bool(values)


def validation(query: Query, options: str) -> Strictness:
    """`fieldValidation`; the default is Warn. Raises 422."""
    value = text(query, "fieldValidation")
    if value and value not in _STRICTNESS:
        raise _unsupported(options, "fieldValidation", _quoted(value), ("", *_STRICTNESS))
    return cast(Strictness, value or "Warn")


def check_patch(query: Query, type_: PatchType) -> None:
    """Raises 422 for an apply patch without a field manager, and for `force` on another patch."""
    if type_ == "apply" and not text(query, "fieldManager"):
        raise _wrong("PatchOptions", Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager"))
    if type_ != "apply" and flag(query, "force") is not None:
        raise _wrong("PatchOptions", Cause("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force"))


_DELETE_OPTIONS: Mapping[str, tuple[Any, str]] = {
    "dryRun": (list, "[]string"),
    "gracePeriodSeconds": (int, "int64"),
    "orphanDependents": (bool, "bool"),
    "preconditions": (Mapping, "v1.Preconditions"),
    "propagationPolicy": (str, "v1.DeletionPropagation"),
}
_PRECONDITIONS: Mapping[str, tuple[Any, str]] = {"resourceVersion": (str, "string"), "uid": (str, "types.UID")}


def check_deletion(body: Mapping[str, Any], path: str = "") -> None:
    """Raises 400 for DeleteOptions of a wrong type."""
    _check_types(body, _DELETE_OPTIONS, f"DeleteOptions.{path}")
    _check_types(body.get("preconditions") or {}, _PRECONDITIONS, f"Preconditions.{path}preconditions.")
    for value in body.get("dryRun") or ():
        if not isinstance(value, str):
            raise _mistyped(value, f"DeleteOptions.{path}dryRun", "string")


def _check_types(body: Mapping[str, Any], types: Mapping[str, tuple[Any, str]], owner: str) -> None:
    for key, (type_, name) in types.items():
        value = body.get(key)
        if value is not None and (not isinstance(value, type_) or (type_ is int and isinstance(value, bool))):
            raise _mistyped(value, f"{owner}{key}", name)


def _mistyped(value: Any, field: str, type_: str) -> StatusError:
    return bad_request(go_format.unmarshal_fault(value, field, type_))


def deletion(query: Query, body: Mapping[str, Any]) -> Deletion:
    """The options of a delete: from DeleteOptions or, where these do not set them, from the query. Raises 400 or 422."""
    grace = body.get("gracePeriodSeconds")
    if grace is None:
        grace = number(query, "gracePeriodSeconds")
    propagation = body.get("propagationPolicy") or text(query, "propagationPolicy")
    if not propagation and body.get("orphanDependents") is not None:
        propagation = "Orphan" if body["orphanDependents"] else "Background"
    if propagation and propagation not in _PROPAGATION:
        raise _unsupported("DeleteOptions", "propagationPolicy", _quoted(str(propagation)), (*_PROPAGATION, "nil"))
    expected = body.get("preconditions") or {}
    return Deletion(grace=grace, propagation=propagation, uid=expected.get("uid"), revision=expected.get("resourceVersion"))


def _unsupported(options: str, field: str, given: str, supported: tuple[str, ...]) -> StatusError:
    known = ", ".join(_quoted(each) for each in supported)
    return _wrong(options, Cause("FieldValueNotSupported", f"Unsupported value: {given}: supported values: {known}", field))


def _wrong(options: str, cause: Cause) -> StatusError:
    return invalid(Kind("meta.k8s.io", "v1", options, options), "", (cause,))


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
