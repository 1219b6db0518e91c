"""Rendering: answers of the API as HTTP responses, in the form that the client asked for."""

import datetime
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import orjson
import yaml
from starlette.responses import Response

from grove_sandbox.api.request import Answer, Page, WatchEvent
from grove_sandbox.http.negotiation import Form, not_acceptable
from grove_sandbox.kinds.served import Served
from grove_sandbox.tables.columns import Column, of_builtin, of_custom
from grove_sandbox.tables.table import partial, table
from grove_sandbox.types.status import StatusError

JSON = "application/json"
_YAML = "application/yaml"


def document(body: Any, code: int = 200, *, yaml_: bool = False, media_type: str = JSON) -> Response:
    """A response with the document as JSON or YAML."""
    if yaml_:
        return Response(yaml.safe_dump(body, sort_keys=True), code, media_type=_YAML)
    return Response(orjson.dumps(body), code, media_type=media_type)


def refusal(error: StatusError) -> Response:
    """The response of a refusal: its Status and code, `Retry-After` and warnings."""
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else None
    return _warned(Response(orjson.dumps(error.body), error.code, headers, JSON), error.warnings)


def one(answer: Answer, served: Served, form: Form, include: str, now: datetime.datetime) -> Response:
    """The response of a verb on one object. A Status is a Status in every form."""
    body: Mapping[str, Any] = answer.body
    if form.shape == "plain" or body.get("kind") == "Status":
        response = document(body, answer.code, yaml_=True) if form.yaml else Response(answer.encoded, answer.code, media_type=JSON)
    elif form.shape == "Table":
        meta = {"resourceVersion": body["metadata"].get("resourceVersion", "")}
        response = document(table((body,), columns(served, body), now, meta=meta, include=include), answer.code, yaml_=form.yaml)
    elif form.shape == "PartialObjectMetadata":
        response = document(partial(body), answer.code, yaml_=form.yaml)
    else:
        raise not_acceptable(f"you requested {form.shape}, but the requested object is not a list ({served.kind.name})")
    return _warned(response, answer.warnings)


def _warned(response: Response, warnings: Iterable[str]) -> Response:
    for warning in warnings:
        response.headers.append("Warning", f"299 - {_quoted(warning)}")
    return response


def many(page: Page, form: Form, include: str, now: datetime.datetime) -> Response:
    """The response of a list."""
    if form.shape == "plain" and not form.yaml:
        return Response(page.encoded(), media_type=JSON)
    bodies = [item.body for item in page.items]
    if form.shape == "Table":
        whole = [_named(body, page.served) for body in bodies] if include == "Object" else bodies
        return document(table(whole, columns(page.served), now, meta=page.metadata(), include=include), yaml_=form.yaml)
    if form.shape == "PartialObjectMetadata":
        raise not_acceptable(f"you requested PartialObjectMetadata, but the requested object is a list ({page.served.list_name})")
    if form.shape == "PartialObjectMetadataList":
        head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": page.metadata()}
        return document({**head, "items": [partial(body) for body in bodies]}, yaml_=form.yaml)
    return document(orjson.loads(page.encoded()), yaml_=True)


def _named(body: Mapping[str, Any], served: Served) -> dict[str, Any]:
    """The object with its kind, which items of a list do not have and rows of a Table do."""
    return {"kind": served.kind.name, "apiVersion": served.kind.api_version, **body}


class EventEncoder:
    """Writes the events of one watch as lines. Only the first Table of a stream has column definitions."""

    def __init__(self, served: Served, form: Form, include: str) -> None:
        if form.yaml or form.shape == "PartialObjectMetadataList":
            raise not_acceptable("a watch is answered in JSON, event by event")
        self._served, self._form, self._include = served, form, include
        self._headed = True

    def line(self, event: WatchEvent, now: datetime.datetime) -> bytes:
        """The line of one event, with its line feed."""
        return b'{"type":"%b","object":%b}\n' % (event.type.encode(), self._object(event, now))

    def _object(self, event: WatchEvent, now: datetime.datetime) -> bytes:
        if self._form.shape == "plain" or event.type == "ERROR":
            return event.encoded
        if self._form.shape == "PartialObjectMetadata":
            return orjson.dumps(partial(event.body))
        headed, self._headed = self._headed, False
        meta = {"resourceVersion": event.body["metadata"].get("resourceVersion", "")}
        shown = columns(self._served)
        if event.type == "BOOKMARK":
            shown = tuple(Column(column.name, _nothing, column.type, column.format, column.priority) for column in shown)
        return orjson.dumps(table((event.body,), shown, now, meta=meta, include=self._include, headed=headed))


def columns(served: Served, body: Mapping[str, Any] | None = None) -> tuple[Column, ...]:
    """The columns of a kind. An answer of another kind than its resource, such as a Scale, has the columns of that kind."""
    if body is None or body.get("kind", served.kind.name) == served.kind.name:
        return _columns(served)
    return of_builtin(body.get("apiVersion", "").rpartition("/")[0], body["kind"])


@lru_cache(maxsize=512)
def _columns(served: Served) -> tuple[Column, ...]:
    if not served.custom:
        return of_builtin(served.kind.group, served.kind.name)
    try:
        return of_custom(served.columns)
    except ValueError:
        # A CRD may declare an invalid path; its objects are printed without its columns.
        return of_custom(())


def _nothing(body: Mapping[str, Any], now: datetime.datetime) -> None:
    return None


def _quoted(text: str) -> str:
    """The text as a quoted-string of HTTP, in which only printable ASCII may stand."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(_printable(escaped)) + '"'


def _printable(text: str) -> Iterable[str]:
    return (letter if 0x20 <= ord(letter) < 0x7F else "?" for letter in text)
