"""Review: an AdmissionReview of Kubernetes (v1) in, the AdmissionReview that answers it out; whoever carries them.

What comes in is a stranger's: every field is looked at before it is used, and depth is bounded. Nothing here decides anything.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson

from engine.errors import InputError
from engine.ids import ResourceId
from engine.report.printable import clipped, printable
from engine.resource import Body
from resources.admission.json_patch import json_patch
from resources.admission.request import Act, Decision, Request
from resources.schema.issues import Fault, Issue, shown

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

LARGEST: Final = 8 << 20
"""Bytes of a review that are worth reading: it holds an object twice, and no API server takes one of more than three mebibytes."""
DEEPEST: Final = 100
MOST: Final = 1000
"""Causes told of one object; what is beyond is counted."""
LONGEST_NAME: Final = 253

CAUSES: Final[Mapping[Fault, str]] = {
    Fault.UNKNOWN: "FieldValueInvalid",
    Fault.MALFORMED: "FieldValueTypeInvalid",
    Fault.REQUIRED: "FieldValueRequired",
    Fault.INVALID: "FieldValueInvalid",
    Fault.UNSUPPORTED: "FieldValueNotSupported",
    Fault.DUPLICATE: "FieldValueDuplicate",
    Fault.NOT_FOUND: "FieldValueNotFound",
    Fault.FORBIDDEN: "FieldValueForbidden",
    Fault.TOO_LONG: "FieldValueTooLong",
}
"""Kubernetes' word for the cause that each sort of fault is."""

NEEDS: Final[Mapping[Act, tuple[str, ...]]] = {Act.CREATE: ("object",), Act.UPDATE: ("object", "oldObject")}
"""What the API server always sends along."""

Judge = Callable[[Request], Decision]


class Misread(InputError):
    """A document that is no question, or none that can be answered with more than that. `uid` is empty where nobody waits for an answer."""

    def __init__(self, message: str, uid: str = "") -> None:
        super().__init__(message)
        self.uid = uid


def answered(document: Any, judge: Judge) -> dict[str, Any]:
    """The answer to a review; to a question that makes no sense, what is wrong with it. Raises `Misread` where there is no uid."""
    uid = uid_of(document)
    try:
        asked = question(document)
    except Misread as fault:
        return misunderstood(uid, str(fault))
    return answer(uid, asked, judge(asked))


def uid_of(document: Any) -> str:
    """The uid that an answer is to bear. Raises `Misread` where there is none."""
    request = document.get("request") if isinstance(document, Mapping) else None
    if not isinstance(request, Mapping):
        raise Misread(f"not an {KIND} with a request, but {shown(document)}")
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid:
        raise Misread(f"request.uid: must be text that is not empty, got {shown(uid)}" if "uid" in request else "request.uid: is missing")
    return uid


def question(document: Any) -> Request:
    """What a review asks. Raises `Misread` with what is wrong with it."""
    uid = uid_of(document)
    for field, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(field) != expected:
            raise Misread(f'{field}: must be "{expected}", got {shown(document.get(field))}', uid)
    if deeper(document, DEEPEST):
        raise Misread(f"nested deeper than {DEEPEST} levels", uid)
    return _Reading(document["request"], uid).request()


class _Reading:
    """The reading of one request, field by field."""

    def __init__(self, asked: Mapping[str, Any], uid: str) -> None:
        self._asked = asked
        self._uid = uid

    def request(self) -> Request:
        """All of it."""
        act = self._act()
        body, old = self._object("object"), self._object("oldObject")
        for field in NEEDS.get(act, ()):
            if self._asked.get(field) is None:
                raise Misread(f"request.{field}: is missing", self._uid)
        kind = self._map(self._asked, "kind", "request")
        if not kind:
            raise Misread("request.kind: is missing", self._uid)
        metadata = (body or old or {}).get("metadata")
        said = metadata if isinstance(metadata, Mapping) else {}
        id = ResourceId(
            self._text(kind, "group", "request.kind"),
            self._text(kind, "kind", "request.kind"),
            self._text(self._asked, "namespace", "request") or _word(said.get("namespace")),
            self._text(self._asked, "name", "request") or _word(said.get("name")),
        )
        user = self._text(self._map(self._asked, "userInfo", "request"), "username", "request.userInfo")
        subresource = self._text(self._asked, "subResource", "request")
        return Request(act, id, None if act is Act.DELETE else body, old, user, subresource)

    def _act(self) -> Act:
        found = self._asked.get("operation")
        if found not in tuple(Act):
            raise Misread(f"request.operation: must be one of {', '.join(Act)}, got {shown(found)}", self._uid)
        return Act(found)

    def _object(self, field: str) -> Body | None:
        return None if self._asked.get(field) is None else self._map(self._asked, field, "request")

    def _map(self, holder: Mapping[str, Any], field: str, path: str) -> Mapping[str, Any]:
        found = holder.get(field)
        if found is not None and not isinstance(found, Mapping):
            raise Misread(f"{path}.{field}: must be an object, got {shown(found)}", self._uid)
        return found or {}

    def _text(self, holder: Mapping[str, Any], field: str, path: str) -> str:
        found = holder.get(field)
        if found is not None and not isinstance(found, str):
            raise Misread(f"{path}.{field}: must be a string, got {shown(found)}", self._uid)
        return found or ""


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def deeper(value: Any, levels: int) -> bool:
    """Whether the value has more levels than that."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return levels < 0 or any(deeper(below, levels - 1) for below in inner)


def answer(uid: str, request: Request, decision: Decision) -> dict[str, Any]:
    """A decision as the API server reads it."""
    if not decision.allowed:
        return _review(uid, False, decision.warnings, status=refusal(request.id, decision))
    steps = json_patch(request.body, decision.body) if request.body is not None and decision.body is not None else []
    patch = {"patchType": "JSONPatch", "patch": base64.b64encode(orjson.dumps(steps, default=_plain)).decode()} if steps else {}
    return _review(uid, True, decision.warnings, **patch)


def misunderstood(uid: str, message: str) -> dict[str, Any]:
    """The answer to a question that makes no sense."""
    return _review(uid, False, status=_status(400, "BadRequest", message))


def refusal(id: ResourceId, decision: Decision) -> dict[str, Any]:
    """The Status of a decision against a request: whose fault it is, every field that is wrong, and all of it in one message."""
    details = {"name": id.name, "group": id.group, "kind": id.kind}
    named: dict[str, Any] = {key: printable(value) for key, value in details.items() if value}
    if decision.denial:
        return _status(403, "Forbidden", printable(decision.denial), named)
    causes = [{"reason": CAUSES[issue.kind], "message": issue.complaint, "field": issue.field} for issue in decision.issues[:MOST]]
    return _status(422, "Invalid", f"{_subject(id)} is invalid: {aggregate(decision.issues)}", {**named, "causes": causes})


def aggregate(issues: Iterable[Issue]) -> str:
    """All of them in one line, each once, in brackets where there are several, as API servers do."""
    texts = list(dict.fromkeys(map(str, issues)))
    more = [f"and {len(texts) - MOST} more"] if len(texts) > MOST else []
    return texts[0] if len(texts) == 1 else f"[{', '.join([*texts[:MOST], *more])}]"


def _subject(id: ResourceId) -> str:
    kind = f"{id.kind}.{id.group}" if id.group else id.kind
    return f"{printable(kind)} {json.dumps(clipped(id.name, LONGEST_NAME), ensure_ascii=False)}"


def _status(code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    more = {"details": dict(details)} if details else {}
    return {"metadata": {}, "status": "Failure", "message": message, "reason": reason, **more, "code": code}


def _review(uid: str, allowed: bool, warnings: Iterable[str] = (), **more: Any) -> dict[str, Any]:
    told = [printable(warning) for warning in warnings]
    response = {"uid": uid, "allowed": allowed, **more, **({"warnings": told} if told else {})}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _plain(value: Any) -> Any:
    """What rules may hand back beside plain JSON."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError
