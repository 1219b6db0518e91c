"""Converted: a graph of one version as the same graph of the other, with nothing lost.

What v1beta1 has no field for is in the annotation `ALPHA_ONLY`, as Dynamo's operator keeps it. Whatever a translation there and back
would spell otherwise is in the annotation `EXACT`, and counts while the spec is as it was translated: an edit of a spec is never undone.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from engine.canonical import digest
from engine.paths import get, merge_patch
from engine.resource import Body
from resources.base.fields import annotations_of, mapping, mappings
from resources.dynamo.versions.api_versions import ALPHA, ALPHA_ONLY, BETA, EXACT, RESERVED, is_beta
from resources.dynamo.versions.status import alpha_status, beta_status
from resources.dynamo.versions.to_alpha import alpha_spec
from resources.dynamo.versions.to_beta import alpha_only, beta_spec, requested_gpus, restored

NOTHING_SAVED: Final = "{}"
MOST_SAVED: Final = 128 << 10
"""The largest size of an annotation that is read, in bytes: all annotations of an object together have at most twice as much."""


def as_alpha(body: Body) -> Body:
    """The graph as one of v1alpha1, to be read; itself if it is one. It keeps its annotations."""
    if not is_beta(body):
        return body
    converted = _object(body, ALPHA, _document_in(body, ALPHA)[0], None)
    return {**converted, "metadata": body["metadata"]} if "metadata" in body else converted


def as_version(body: Body, api_version: str) -> Body:
    """The graph as one of that version, to be stored; itself if it is one. It is JSON. Converted back, it is the same graph."""
    if is_beta(body) == (api_version == BETA):
        return body
    document, is_original = _document_in(body, api_version)
    return _object(body, api_version, document, None if is_original else _lost(body, document, api_version))


def without_saved(body: Body) -> Body:
    """A translated graph that says that it has no saved fields, if it has none: those of a stored graph must not count for it."""
    annotations = annotations_of(body)
    if not is_beta(body) or ALPHA_ONLY in annotations:
        return body
    return {**body, "metadata": {**body["metadata"], "annotations": {**annotations, ALPHA_ONLY: NOTHING_SAVED}}}


def saved_fields(body: Body) -> Body:
    """The fields of v1alpha1 that a graph of v1beta1 keeps in its annotation; nothing if there are none, or they cannot be read."""
    return _decoded(annotations_of(body).get(ALPHA_ONLY)) or {}


def saved_fault(body: Body) -> str:
    """What is wrong with the annotation `ALPHA_ONLY` of a v1beta1 graph; empty if it can be read."""
    text = annotations_of(body).get(ALPHA_ONLY)
    if text is None or _decoded(text) is not None:
        return ""
    return f"must be a spec of v1alpha1 in JSON with at most {MOST_SAVED >> 10} KiB"


def _document_in(body: Body, api_version: str) -> tuple[Body, bool]:
    """The document of the graph in the other version, and whether it is exactly what the graph was converted from: it was not
    changed since."""
    plain, kept = _plain(body, api_version), _decoded(annotations_of(body).get(EXACT)) or {}
    is_unchanged = isinstance(kept.get("difference"), Mapping) and kept.get("of") == digest(_document(body))
    return (merge_patch(plain, kept["difference"]), True) if is_unchanged else (plain, False)


def _lost(body: Body, document: Body, api_version: str) -> Body:
    """What to keep so that converting back gives the same graph. It also shows that the graph was written in the other version."""
    back = _plain(_object(body, api_version, document, None), BETA if api_version == ALPHA else ALPHA)
    return {"of": digest(document), "difference": _difference(back, _document(body))}


def _plain(body: Body, api_version: str) -> dict[str, Any]:
    """The document of the graph in the other version, by its live fields and `ALPHA_ONLY`."""
    spec = body.get("spec")
    if api_version == BETA:
        saved = alpha_only(spec)
        text = {"saved": orjson.dumps(saved, option=orjson.OPT_SORT_KEYS).decode()} if saved else {}
        return {"spec": _by_name(beta_spec(spec)), **text}
    kept = saved_fields(body)
    types = {str(component.get("name")): component.get("type") for component in mappings(mapping(spec).get("components"))}
    fields = restored(alpha_spec(spec), kept, types)
    services = {name: _with_requests(service, requested_gpus(kept, name)) for name, service in mapping(fields.get("services")).items()}
    return {"spec": {**fields, **({"services": services} if services else {})}}


def _with_requests(service: Body, gpus: Any) -> Body:
    """A service with the number of GPUs that it only counts with."""
    return service if gpus is None else {**service, "resources": {**mapping(service.get("resources")), "requests": {"gpu": gpus}}}


def _document(body: Body) -> dict[str, Any]:
    """What a conversion keeps of a graph: its spec, components by their names with their order, and of v1beta1 the saved fields."""
    saved = annotations_of(body).get(ALPHA_ONLY)
    spec = mapping(body.get("spec"))
    return {"spec": _by_name(spec) if is_beta(body) else spec, **({"saved": saved} if saved not in (None, NOTHING_SAVED) else {})}


def _by_name(spec: Body) -> dict[str, Any]:
    """A spec of v1beta1 with a map of components, and their order: then a difference concerns single fields of them."""
    components = spec.get("components")
    if not isinstance(components, list | tuple):
        return dict(spec)
    names = [str(component.get("name", "")) for component in mappings(components)]
    return {**spec, "components": dict(zip(names, components, strict=True)), "order": names}


def _listed(spec: Body) -> dict[str, Any]:
    """The spec of v1beta1 of such a form."""
    components = spec.get("components")
    rest = {field: value for field, value in spec.items() if field != "order"}
    if not isinstance(components, Mapping):
        return rest
    names = [name for name in spec.get("order") or () if name in components]
    return {**rest, "components": [components[name] for name in dict.fromkeys((*names, *components))]}


def _object(body: Body, api_version: str, document: Body, lost: Body | None) -> Body:
    """The graph of that version with this document."""
    annotations = {key: value for key, value in annotations_of(body).items() if key != EXACT and not key.startswith(RESERVED)}
    if (saved := document.get("saved")) is not None:
        annotations[ALPHA_ONLY] = saved
    if lost is not None:
        annotations[EXACT] = orjson.dumps(lost, option=orjson.OPT_SORT_KEYS).decode()
    metadata = {key: value for key, value in mapping(body.get("metadata")).items() if key != "annotations"}
    spec = mapping(document.get("spec"))
    converted = {
        **{field: value for field, value in body.items() if field not in ("status", "spec")},
        "apiVersion": api_version,
        "metadata": {**metadata, **({"annotations": annotations} if annotations else {})},
    }
    if "spec" in body:
        converted["spec"] = _listed(spec) if api_version == BETA else spec
    if (status := body.get("status")) is not None:
        converted["status"] = beta_status(status) if api_version == BETA else alpha_status(status)
    return converted


def _difference(old: Any, new: Any) -> dict[str, Any]:
    """The merge patch (RFC 7386) that turns one map into another."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = get(old, (key,))
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := _difference(before, value):
                patch[key] = inner
        elif key not in old or before != value or type(before) is not type(value):
            patch[key] = value
    return patch


def _decoded(text: Any) -> dict[str, Any] | None:
    """The map in an annotation; None if it has none, or is too large."""
    if not isinstance(text, str) or len(text) > MOST_SAVED:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
