"""Updating: PUT, patches and server-side apply."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from grove_sandbox.api import conversion, creating, decoding, deleting
from grove_sandbox.api.builtin_decoder import Undecodable
from grove_sandbox.api.core import Core, draft_answer, rules_of, stored_answer
from grove_sandbox.api.request import Answer, Request
from grove_sandbox.api.store import Stored, key_of
from grove_sandbox.apply import managers
from grove_sandbox.kinds import metadata
from grove_sandbox.kinds.rules import Draft
from grove_sandbox.product import Body, Kind
from grove_sandbox.types import causes, go_format, status, typed


def put(core: Core, request: Request, body: Any) -> Answer:
    """PUT: replace an object or its status; of some kinds, create a missing object. Raises 400, 404, 409, 422."""
    draft, warnings = decoding.decoded(request, body)
    rules = rules_of(request.served)
    _check_url(request, draft["metadata"])
    live = core.collection(request).objects.get(key_of(request.namespace, request.name))
    if live is None:
        if not rules.creates_on_put or request.subresource:
            raise status.not_found(request.served.kind, request.name)
        return creating.create(core, request, draft)
    _check_identity(request, draft, live, needs_revision=not rules.unconditional)
    with status.warned(warnings):
        return _write(core, request, live, _managed(core, request, live, draft), warnings)


def change(core: Core, request: Request, edit: Callable[[Body], Any]) -> Answer:
    """Replace an object by the result of `edit`: a patch, or a new scale. Raises 400, 404, 409, 422."""
    live = core.stored(request)
    edited = edit(conversion.converted(request.served, live)[0])
    if not isinstance(edited, Mapping):
        raise _unpatched(
            edited, f"couldn't get version/kind; json parse error: json: cannot unmarshal {go_format.json_type(edited)} into {_HEAD}"
        )
    if why := decoding.type_fault(edited):
        raise _unpatched(edited, why)
    try:
        draft, warnings = decoding.decoded(request, edited)
    except Undecodable as fault:
        raise _unpatched(edited, fault.why) from None
    _check_url(request, draft["metadata"])
    _check_revision(request, draft, live)
    with status.warned(warnings):
        return _write(core, request, live, _managed(core, request, live, draft), warnings)


_HEAD = r"""Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"""


def _unpatched(edited: Any, why: str) -> status.StatusError:
    """422: the result of a patch is no such object."""
    return status.invalid(Kind("", "", "", ""), "", [causes.invalid("patch", causes.shown(edited), why)])


def apply(core: Core, request: Request, config: Any) -> Answer:
    """Server-side apply: the manager owns the fields of the configuration; fields that it no longer contains are removed unless another
    manager owns them. Raises 400, 404, 409, 422, and 500 like the server for a configuration that does not fit the schema."""
    served = request.served
    live = core.collection(request).objects.get(key_of(request.namespace, request.name))
    if live is None and request.subresource:
        raise status.not_found(served.kind, request.name)
    write = creating.managed_write(core, request)
    write = replace(write, manager=write.manager._replace(operation="Apply"))
    before = _missing(request) if live is None else conversion.converted(served, live)[0]
    try:
        _check_applied(request, config)
        typed.check(config, served.shape)
        configured = _configured(request, config)
        merged = managers.applied(before, configured, write, force=request.force)
    except typed.SchemaFault as fault:
        raise _untyped(request, config, fault) from None
    draft = decoding.decoded_applied(served, managers.with_last_applied(merged, config, write))
    if live is None:
        if uid := configured["metadata"].get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise status.conflict(served.kind, request.name, why)
        return creating.finish(core, request, draft, ())
    _check_revision(request, draft, live)
    return _write(core, request, live, draft, ())


def _other_uid(request: Request, expected: str, actual: str) -> str:
    key = "/".join(("registry", request.served.kind.plural, *filter(None, (request.namespace, request.name))))
    failure = f"Precondition failed: UID in precondition: {expected}, UID in object meta: {actual}"
    return f"StorageError: invalid object, Code: 4, Key: /{key}, ResourceVersion: 0, AdditionalErrorMsg: {failure}"


def _managed(core: Core, request: Request, live: Stored, draft: Draft) -> Draft:
    return managers.updated(conversion.converted(request.served, live)[0], draft, creating.managed_write(core, request))


def _missing(request: Request) -> Body:
    metadata = {"name": request.name, **({"namespace": request.namespace} if request.namespace else {})}
    return {**decoding.empty_object(request.served), "metadata": metadata}


def _check_applied(request: Request, config: Any) -> None:
    """Raises 400 for a configuration of another kind than the URL names, and for one with managedFields."""
    kind = request.served.kind
    if not isinstance(config, Mapping | None):
        why = f"json: cannot unmarshal {go_format.json_type(config)} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {why}")
    config = config or {}
    name, version = _text(config, "kind"), _text(config, "apiVersion")
    if (version, name) != (kind.api_version, kind.name):
        if version.count("/") > 1:
            name = version = ""
        group, _, version = version.rpartition("/")
        raise status.bad_request(f"invalid object type: {group}/{version}, Kind={name}")
    metadata = config.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("managedFields") is not None:
        raise status.bad_request("metadata.managedFields must be nil")


def _text(body: Any, key: str) -> str:
    """The text below a key, or an empty text."""
    value = body.get(key) if isinstance(body, Mapping) else None
    return value if isinstance(value, str) else ""


def _configured(request: Request, config: Body) -> Draft:
    """The configuration with name and namespace of the URL. Raises 400 if it has others."""
    metadata = {**(config.get("metadata") or {})}
    metadata["name"] = metadata.get("name") or request.name
    _check_url(request, metadata)
    return {**config, "metadata": metadata}


def _check_url(request: Request, metadata: Draft) -> None:
    """Set the namespace of the URL. Raises 400 if the object has no name, or another name or namespace."""
    name = metadata.get("name")
    if not name:
        why = f"the name of the object ({request.name} based on URL) was undeterminable: name must be provided"
        raise status.bad_request(why)
    if name != request.name:
        raise status.bad_request(f"the name of the object ({name}) does not match the name on the URL ({request.name})")
    creating.set_namespace(request, metadata)


def _untyped(request: Request, config: Body, fault: typed.SchemaFault) -> status.StatusError:
    kind = request.served.kind
    metadata = config.get("metadata")
    where = f"{_text(metadata, 'namespace')}/{_text(metadata, 'name')}; {kind.group}/{kind.version}, Kind={kind.name}"
    return status.StatusError(500, "", f"failed to create typed patch object ({where}): {fault}")


def _check_identity(request: Request, draft: Draft, live: Stored, *, needs_revision: bool) -> None:
    """Raises 409 if uid or revision are not those of the live object, 422 for a missing revision."""
    kind, metadata = request.served.kind, draft["metadata"]
    revision, uid = metadata.get("resourceVersion", ""), metadata.get("uid", "")
    if uid and uid != live.metadata["uid"]:
        raise status.conflict(kind, request.name, _other_uid(request, uid, live.metadata["uid"]))
    if not revision and needs_revision:
        # This message of the server names the resource, not the kind.
        fault = causes.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise status.invalid(replace(kind, name=kind.plural), request.name, [fault])
    _check_revision(request, draft, live)


def _check_revision(request: Request, draft: Draft, live: Stored) -> None:
    revision = draft["metadata"].get("resourceVersion", "")
    if revision and revision != live.metadata["resourceVersion"]:
        raise status.conflict(request.served.kind, request.name)


def _write(core: Core, request: Request, live: Stored, draft: Draft, warnings: tuple[str, ...]) -> Answer:
    """The rest of an update: admission, preparation, validation, and the store unless nothing has changed."""
    served, old = request.served, conversion.converted(request.served, live)[0]
    draft, admission_warnings = core.admit("UPDATE", request, draft, old)
    warnings += admission_warnings
    _prepare(core, request, draft, old)
    if faults := creating.faults(request, draft, old):
        raise status.invalid(served.kind, request.name, faults)
    warnings += core.validate("UPDATE", request, draft, old)
    draft = _with_old_times(draft, old)
    warnings += metadata.warnings(draft, old) if served.custom else ()
    if draft == old:
        return stored_answer(200, served, live, warnings)
    if request.dry_run:
        return draft_answer(200, served, draft, warnings)
    if deleting.is_finished(draft):
        deleting.remove(core, request, live.body)
        return draft_answer(200, served, draft, warnings)
    stored = core.store.write(served.resource, "MODIFIED", conversion.to_storage(served, draft))
    creating.after_write(core, request, stored.body)
    return stored_answer(200, served, stored, warnings)


_SERVER_FIELDS = ("creationTimestamp", "generation", "selfLink", "resourceVersion")
_DELETION_FIELDS = ("deletionTimestamp", "deletionGracePeriodSeconds")


def _prepare(core: Core, request: Request, draft: Draft, old: Body) -> None:
    """Take from the old object what this type of write cannot change, and increment the generation."""
    rules, meta, before = rules_of(request.served), draft["metadata"], old["metadata"]
    for key in _SERVER_FIELDS:
        _carry(meta, before, key)
    for key in _DELETION_FIELDS:
        if key in before:
            meta[key] = before[key]
    meta.setdefault("uid", before["uid"])
    if request.subresource == "status":
        _prepare_status(core, request, draft, old)
    elif request.subresource == "finalize":
        # Only this subresource can remove the finalizer in the spec of a namespace: the rules of an update restore it.
        _carry(draft, old, "status")
    else:
        if request.served.kind.status:
            _carry(draft, old, "status")
        rules.update(draft, old, core.environment())
    if rules.generation is not None and _has_changed(draft, old, rules.generation):
        meta["generation"] = before.get("generation", 0) + 1


def _prepare_status(core: Core, request: Request, draft: Draft, old: Body) -> None:
    if not request.served.custom:
        _carry(draft, old, "spec")
        rules_of(request.served).status(draft, old, core.environment())
        return
    managed = draft["metadata"].get("managedFields")
    for key in {*draft, *old} - {"status"}:
        _carry(draft, old, key)
    draft["metadata"] = {**draft["metadata"], "managedFields": managed}


def _carry(target: Draft, source: Body, key: str) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def _has_changed(new: Body, old: Body, fields: tuple[str, ...]) -> bool:
    """Whether one of the fields has changed; without fields: any but metadata and status."""
    counted = fields or tuple({*new, *old} - {"metadata", "status", "apiVersion"})
    return any(new.get(key) != old.get(key) for key in counted)


def _with_old_times(draft: Draft, old: Body) -> Draft:
    """The draft with the old managedFields, if these differ only in their times and nothing else has changed."""
    new, before = draft["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if new == before or not new or not before or _timeless(new) != _timeless(before):
        return draft
    kept = {**draft, "metadata": {**draft["metadata"], "managedFields": before}}
    return kept if kept == old else draft


def _timeless(entries: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries]
