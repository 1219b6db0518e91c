"""Bodies: request bodies, read from JSON, YAML or (for a few kinds) protobuf."""

from collections.abc import Mapping
from typing import Any

import orjson
import yaml

from grove_sandbox.http import protobuf
from grove_sandbox.http.negotiation import MEDIA_TYPES
from grove_sandbox.product import PatchType
from grove_sandbox.types.status import StatusError, bad_request, unsupported_media_type

LIMIT = 3 * 1024 * 1024
"""Bytes of a request body, as a real API server limits it."""

_JSON = ("application/json", "")
_YAML = "application/yaml"
_PATCHES: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}


def too_large() -> StatusError:
    """413: the body is larger than the limit."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {LIMIT}", details={})


def read_object(content_type: str, data: bytes, kind: str) -> dict[str, Any]:
    """The object that a create or replace sends. Raises 400 for what cannot be parsed, 415 for other media types."""
    media = _media(content_type)
    if media == protobuf.MEDIA_TYPE:
        return protobuf.decode(data)
    if media not in _JSON and media != _YAML:
        raise unsupported_media_type(f"the body of the request was in an unknown format - accepted media types include: {MEDIA_TYPES}")
    try:
        document = _load(data, media == _YAML)
    except ValueError as error:
        prefix = "" if media == _YAML else "couldn't get version/kind; json parse error: "
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {prefix}{error} ({_glimpse(data)})") from error
    if not isinstance(document, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): it is not an object ({_glimpse(data)})")
    return document


def read_patch(content_type: str, data: bytes) -> tuple[PatchType, Any]:
    """The type of the patch that was sent, and the patch. Raises 415 and 400."""
    how = _PATCHES.get(_media(content_type))
    if how is None:
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    try:
        return how, _load(data, how == "apply")
    except ValueError as error:
        raise bad_request(f"error encoding patch: {error}" if how == "apply" else "invalid JSON patch") from error


def read_options(content_type: str, data: bytes) -> Mapping[str, Any]:
    """The DeleteOptions in the body of a delete; empty where there is no body."""
    return read_object(content_type, data, "DeleteOptions") if data.strip() else {}


def _media(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _load(data: bytes, is_yaml: bool) -> Any:
    """The parsed body. Raises `ValueError` with one line of explanation."""
    if is_yaml and not data.lstrip().startswith(b"{"):
        return _load_yaml(data)
    if not data.strip():
        raise ValueError("unexpected end of JSON input")
    return orjson.loads(data)


class _PlainLoader(yaml.SafeLoader):
    """YAML restricted to JSON's types: times stay text, and aliases, by which few bytes become many, are refused."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise ValueError("yaml: aliases are not accepted here")
        return super().compose_node(parent, index)


def _load_yaml(data: bytes) -> Any:
    try:
        document = yaml.load(data, Loader=_PlainLoader)
        return orjson.loads(orjson.dumps(document))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"yaml: {where}{getattr(error, 'problem', None) or 'it cannot be parsed'}") from error
    except orjson.JSONEncodeError as error:
        raise ValueError(f"yaml: {error}") from error


def _glimpse(data: bytes) -> str:
    if not data:
        return "<empty>"
    return data.hex() if len(data) <= 30 else f"{data[:30].hex()} ..."
