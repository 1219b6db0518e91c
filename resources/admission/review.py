"""Review: converts an AdmissionReview (v1) to a `Request`, and a `Decision` to the AdmissionReview that answers it.

The input is not trusted: every field is validated before it is used, and the depth is limited.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from engine.errors import InputError
from engine.ids import ResourceId
from engine.report.printable import clipped, printable
from engine.resource import Body
from resources.admission.request import Act, Decision, Request
from resources.schema.issues import ErrorType, Issue, shown

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

MAX_BYTES: Final = 8 << 20
"""The largest size of a review: it has the object twice, and an API server takes objects of at most 3 MiB."""
MAX_DEPTH: Final = 100
"""The largest number of nested lists and objects in a review."""
MAX_CAUSES: Final = 1000
"""The largest number of causes in one answer; further ones are only counted."""
MAX_NAME: Final = 253
"""The largest number of characters of an object's name in a message."""

CAUSES: Final[Mapping[ErrorType, str]] = {
    ErrorType.UNKNOWN: "FieldValueInvalid",
    ErrorType.MALFORMED: "FieldValueTypeInvalid",
    ErrorType.REQUIRED: "FieldValueRequired",
    ErrorType.INVALID: "FieldValueInvalid",
    ErrorType.UNSUPPORTED: "FieldValueNotSupported",
    ErrorType.DUPLICATE: "FieldValueDuplicate",
    ErrorType.NOT_FOUND: "FieldValueNotFound",
    ErrorType.FORBIDDEN: "FieldValueForbidden",
    ErrorType.TOO_LONG: "FieldValueTooLong",
}
"""Kubernetes' cause for each type of error."""

REQUIRED: Final[Mapping[Act, tuple[str, ...]]] = {Act.CREATE: ("object",), Act.UPDATE: ("object", "oldObject")}
"""The fields of a request that the API server always sends, by operation."""

Decide = Callable[[Request], Decision]


class MalformedReview(InputError):
    """A document that is not a valid AdmissionReview. `uid` is empty if the document has none: then it cannot be answered."""

    def __init__(self, message: str, uid: str = "") -> None:
        super().__init__(message)
        self.uid = uid


def answered(document: Any, decide: Decide) -> dict[str, Any]:
    """The AdmissionReview that answers a document: with the decision, or with an error if the document is malformed.

    Raises `MalformedReview` if the document has no uid.
    """
    uid = uid_of(document)
    try:
        request = request_of(document)
    except MalformedReview as error:
        return error_answer(uid, str(error))
    return answer(uid, request, decide(request))


def uid_of(document: Any) -> str:
    """The uid of a review, which its answer must have as well. Raises `MalformedReview` if there is none."""
    request = document.get("request") if isinstance(document, Mapping) else None
    if not isinstance(request, Mapping):
        raise MalformedReview(f"not an {KIND} with a request, but {shown(document)}")
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid:
        fault = f"must be text that is not empty, got {shown(uid)}" if "uid" in request else "is missing"
        raise MalformedReview(f"request.uid: {fault}")
    return uid


def request_of(document: Any) -> Request:
    """The request in a review. Raises `MalformedReview` with what is wrong with it."""
    uid = uid_of(document)
    for field, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(field) != expected:
            raise MalformedReview(f'{field}: must be "{expected}", got {shown(document.get(field))}', uid)
    if is_deeper(document, MAX_DEPTH):
        raise MalformedReview(f"nested deeper than {MAX_DEPTH} levels", uid)
    return _Reader(document["request"], uid).request()


class _Reader:
    """Reads one request, field by field."""

    def __init__(self, fields: Mapping[str, Any], uid: str) -> None:
        self._fields = fields
        self._uid = uid

    def request(self) -> Request:
        """The request. Raises `MalformedReview`."""
        act = self._act()
        body, old = self._object("object"), self._object("oldObject")
        for field in REQUIRED.get(act, ()):
            if self._fields.get(field) is None:
                raise MalformedReview(f"request.{field}: is missing", self._uid)
        kind = self._map(self._fields, "kind", "request")
        if not kind:
            raise MalformedReview("request.kind: is missing", self._uid)
        metadata = (body or old or {}).get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        id = ResourceId(
            self._text(kind, "group", "request.kind"),
            self._text(kind, "kind", "request.kind"),
            self._text(self._fields, "namespace", "request") or _text_or_empty(metadata.get("namespace")),
            self._text(self._fields, "name", "request") or _text_or_empty(metadata.get("name")),
        )
        user_info = self._map(self._fields, "userInfo", "request")
        user = self._text(user_info, "username", "request.userInfo")
        subresource = self._text(self._fields, "subResource", "request")
        resource = self._text(self._map(self._fields, "resource", "request"), "resource", "request.resource")
        return Request(act, id, None if act is Act.DELETE else body, old, user, subresource, resource, user_info)

    def _act(self) -> Act:
        operation = self._fields.get("operation")
        if operation not in tuple(Act):
            raise MalformedReview(f"request.operation: must be one of {', '.join(Act)}, got {shown(operation)}", self._uid)
        return Act(operation)

    def _object(self, field: str) -> Body | None:
        return None if self._fields.get(field) is None else self._map(self._fields, field, "request")

    def _map(self, holder: Mapping[str, Any], field: str, path: str) -> Mapping[str, Any]:
        value = holder.get(field)
        if value is not None and not isinstance(value, Mapping):
            raise MalformedReview(f"{path}.{field}: must be an object, got {shown(value)}", self._uid)
        return value or {}

    def _text(self, holder: Mapping[str, Any], field: str, path: str) -> str:
        value = holder.get(field)
        if value is not None and not isinstance(value, str):
            raise MalformedReview(f"{path}.{field}: must be a string, got {shown(value)}", self._uid)
        return value or ""


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested more than `levels` deep."""
    entries = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return levels < 0 or any(is_deeper(entry, levels - 1) for entry in entries)


def answer(uid: str, request: Request, decision: Decision) -> dict[str, Any]:
    """The AdmissionReview for a decision; its patch turns `request.body` into `decision.body`."""
    if not decision.allowed:
        return _review(uid, False, decision.all_warnings, status=refusal(request.id, decision))
    operations = json_patch(request.body, decision.body) if request.body is not None and decision.body is not None else []
    patch = {"patchType": "JSONPatch", "patch": base64.b64encode(orjson.dumps(operations, default=_as_dict)).decode()} if operations else {}
    return _review(uid, True, decision.all_warnings, **patch)


def error_answer(uid: str, message: str) -> dict[str, Any]:
    """The AdmissionReview that answers a malformed one."""
    return _review(uid, False, status=_status(400, "BadRequest", message))


def refusal(id: ResourceId, decision: Decision) -> dict[str, Any]:
    """The Status of a denied request: 403 for a denial, else 422 with a cause for each issue and all issues in the message."""
    details = {"name": id.name, "group": id.group, "kind": id.kind}
    printable_details: dict[str, Any] = {key: printable(value) for key, value in details.items() if value}
    if decision.denial:
        return _status(403, "Forbidden", printable(decision.denial), printable_details)
    causes = [{"reason": CAUSES[issue.type], "message": issue.detail, "field": issue.field} for issue in decision.issues[:MAX_CAUSES]]
    return _status(422, "Invalid", f"{_subject(id)} is invalid: {aggregate(decision.issues)}", {**printable_details, "causes": causes})


def aggregate(issues: Iterable[Issue]) -> str:
    """The texts of all issues, each once, separated by commas; several are in brackets, as in an API server's message."""
    texts = list(dict.fromkeys(map(str, issues)))
    more = [f"and {len(texts) - MAX_CAUSES} more"] if len(texts) > MAX_CAUSES else []
    return texts[0] if len(texts) == 1 else f"[{', '.join([*texts[:MAX_CAUSES], *more])}]"


def _subject(id: ResourceId) -> str:
    kind = f"{id.kind}.{id.group}" if id.group else id.kind
    return f"{printable(kind)} {json.dumps(clipped(id.name, MAX_NAME), ensure_ascii=False)}"


def _status(code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    more = {"details": dict(details)} if details else {}
    return {"metadata": {}, "status": "Failure", "message": message, "reason": reason, **more, "code": code}


def _review(uid: str, allowed: bool, warnings: Iterable[str] = (), **more: Any) -> dict[str, Any]:
    texts = list(dict.fromkeys(map(printable, warnings)))
    response = {"uid": uid, "allowed": allowed, **more, **({"warnings": texts} if texts else {})}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _as_dict(value: Any) -> Any:
    """Mappings other than `dict`, which orjson does not serialize."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


PatchOperation = dict[str, Any]
"""One operation of a patch."""


def json_patch(old: Any, new: Any, path: str = "") -> list[PatchOperation]:
    """The operations that turn `old` into `new`; empty if they are equal. `path` is the JSON pointer of both."""
    return list(_operations(old, new, path))


def _operations(old: Any, new: Any, path: str) -> Iterator[PatchOperation]:
    if old is new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _map_operations(old, new, path)
    elif _is_list(old) and _is_list(new):
        yield from _list_operations(old, new, path)
    elif not same(old, new):
        yield {"op": "replace", "path": path, "value": new}


def _map_operations(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[PatchOperation]:
    for key in old:
        if key not in new:
            yield {"op": "remove", "path": _pointer(path, key)}
    for key, value in new.items():
        if key in old:
            yield from _operations(old[key], value, _pointer(path, key))
        else:
            yield {"op": "add", "path": _pointer(path, key), "value": value}


def _list_operations(old: Sequence[Any], new: Sequence[Any], path: str) -> Iterator[PatchOperation]:
    """The common prefix and suffix are kept; entries between them are paired by index, the rest is added or removed."""
    shorter = min(len(old), len(new))
    begin = next((index for index in range(shorter) if not same(old[index], new[index])), shorter)
    end = next((index for index in range(shorter - begin) if not same(old[-1 - index], new[-1 - index])), shorter - begin)
    for index in range(begin, shorter - end):
        yield from _operations(old[index], new[index], _pointer(path, index))
    for index in range(len(old) - end - 1, shorter - end - 1, -1):
        # From the end, because a removal shifts the indices of all later entries.
        yield {"op": "remove", "path": _pointer(path, index)}
    for index in range(shorter - end, len(new) - end):
        yield {"op": "add", "path": _pointer(path, index), "value": new[index]}


def same(left: Any, right: Any) -> bool:
    """Whether two documents are the same JSON. Unlike in Python, `true` is not 1; unlike for `engine.diff.same`, 1 is not 1.0."""
    if left is right:
        return True
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if _is_list(left) and _is_list(right):
        return len(left) == len(right) and all(map(same, left, right))
    return (type(left) is type(right) or isinstance(left, str)) and bool(left == right)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _pointer(path: str, key: str | int) -> str:
    """The JSON pointer of an entry."""
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
