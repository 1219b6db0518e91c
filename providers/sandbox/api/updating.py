"""Updating: how a new body takes the place of an old one, by PUT, by patch, or by apply."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from engine.ids import Kind
from providers.sandbox.api import creating, deleting, drafts, faces
from providers.sandbox.api.core import Core, answer_draft, answer_with, rules_of
from providers.sandbox.api.reading import Unreadable
from providers.sandbox.api.request import Answer, Request
from providers.sandbox.api.store import Stored, key_of
from providers.sandbox.apply import managers
from providers.sandbox.kinds import metadata
from providers.sandbox.kinds.rules import Draft
from providers.sandbox.types import causes, gotext, status, typed

Body = Mapping[str, Any]


def put(core: Core, request: Request, body: Any) -> Answer:
    """PUT: replace an object or its status; for some kinds, make one that is not there."""
    draft, warnings = drafts.read(request, body)
    rules = rules_of(request.served)
    _meet_url(request, draft["metadata"])
    live = core.collection(request).objects.get(key_of(request.namespace, request.name))
    if live is None:
        if not rules.creates_on_put or request.subresource:
            raise status.not_found(request.served.kind, request.name)
        return creating.create(core, request, draft)
    _check_identity(request, draft, live, needs_revision=not rules.unconditional)
    with status.warned(warnings):
        return _write(core, request, live, _managed(core, request, live, draft), warnings)


def change(core: Core, request: Request, make: Callable[[Body], Any]) -> Answer:
    """Replace an object by what `make` makes of it: a patch, a new scale."""
    live = core.stored(request)
    made = make(faces.shown(request.served, live)[0])
    if not isinstance(made, Mapping):
        raise _unpatched(made, f"couldn't get version/kind; json parse error: json: cannot unmarshal {gotext.word(made)} into {_HEAD}")
    if why := drafts.type_fault(made):
        raise _unpatched(made, why)
    try:
        draft, warnings = drafts.read(request, made)
    except Unreadable as fault:
        raise _unpatched(made, fault.why) from None
    _meet_url(request, draft["metadata"])
    _check_revision(request, draft, live)
    with status.warned(warnings):
        return _write(core, request, live, _managed(core, request, live, draft), warnings)


_HEAD = r"""Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"""


def _unpatched(made: Any, why: str) -> status.StatusError:
    """422: a patch leads to something that cannot be such an object."""
    return status.invalid(Kind("", "", "", ""), "", [causes.invalid("patch", causes.shown(made), why)])


def apply(core: Core, request: Request, config: Any) -> Answer:
    """An apply patch: what the caller says becomes its own; what it no longer says goes, unless others own it too."""
    served = request.served
    live = core.collection(request).objects.get(key_of(request.namespace, request.name))
    if live is None and request.subresource:
        raise status.not_found(served.kind, request.name)
    view = creating.writer(core, request)
    view = replace(view, manager=view.manager._replace(operation="Apply"))
    before = _unborn(request) if live is None else faces.shown(served, live)[0]
    try:
        _check_applied(request, config)
        typed.check(config, served.shape)
        configured = _configured(request, config)
        merged = managers.applied(before, configured, view, force=request.force)
    except typed.SchemaFault as fault:
        raise _untyped(request, config, fault) from None
    draft = drafts.complete(served, managers.told_to_kubectl(merged, config, view))
    if live is None:
        if uid := configured["metadata"].get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise status.conflict(served.kind, request.name, why)
        return creating.finish(core, request, draft, ())
    _check_revision(request, draft, live)
    return _write(core, request, live, draft, ())


def _other_uid(request: Request, wanted: str, found: str) -> str:
    key = "/".join(("registry", request.served.kind.plural, *filter(None, (request.namespace, request.name))))
    failure = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return f"StorageError: invalid object, Code: 4, Key: /{key}, ResourceVersion: 0, AdditionalErrorMsg: {failure}"


def _managed(core: Core, request: Request, live: Stored, draft: Draft) -> Draft:
    return managers.updated(faces.shown(request.served, live)[0], draft, creating.writer(core, request))


def _unborn(request: Request) -> Body:
    metadata = {"name": request.name, **({"namespace": request.namespace} if request.namespace else {})}
    return {**drafts.nothing_yet(request.served), "metadata": metadata}


def _check_applied(request: Request, config: Any) -> None:
    """What is applied is of the kind that the URL names, and leaves its managers to the server. Raises 400."""
    kind = request.served.kind
    if not isinstance(config, Mapping | None):
        why = f"json: cannot unmarshal {gotext.word(config)} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    told = config or {}
    name, version = _text(told, "kind"), _text(told, "apiVersion")
    if (version, name) != (kind.api_version, kind.name):
        if version.count("/") > 1:
            name = version = ""
        group, _, version = version.rpartition("/")
        raise status.bad_request(f"invalid object type: {group}/{version}, Kind={name}")
    metadata = told.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("managedFields") is not None:
        raise status.bad_request("metadata.managedFields must be nil")


def _text(body: Any, key: str) -> str:
    """The text below a key; empty where there is none, or something else."""
    value = body.get(key) if isinstance(body, Mapping) else None
    return value if isinstance(value, str) else ""


def _configured(request: Request, config: Body) -> Draft:
    """The configuration with what the URL says of it. Raises 400 where they disagree."""
    metadata = {**(config.get("metadata") or {})}
    metadata["name"] = metadata.get("name") or request.name
    _meet_url(request, metadata)
    return {**config, "metadata": metadata}


def _meet_url(request: Request, metadata: Draft) -> None:
    """An object is the one that the URL names. Raises 400 where it says otherwise, or nothing."""
    name = metadata.get("name")
    if not name:
        why = f"the name of the object ({request.name} based on URL) was undeterminable: name must be provided"
        raise status.bad_request(why)
    if name != request.name:
        raise status.bad_request(f"the name of the object ({name}) does not match the name on the URL ({request.name})")
    creating.meet_namespace(request, metadata)


def _untyped(request: Request, config: Body, fault: typed.SchemaFault) -> status.StatusError:
    kind = request.served.kind
    metadata = config.get("metadata")
    where = f"{_text(metadata, 'namespace')}/{_text(metadata, 'name')}; {kind.group}/{kind.version}, Kind={kind.name}"
    return status.StatusError(500, "", f"failed to create typed patch object ({where}): {fault}")


def _check_identity(request: Request, draft: Draft, live: Stored, *, needs_revision: bool) -> None:
    """The object must be the one that the caller judged."""
    kind, metadata = request.served.kind, draft["metadata"]
    revision, uid = metadata.get("resourceVersion", ""), metadata.get("uid", "")
    if uid and uid != live.metadata["uid"]:
        raise status.conflict(kind, request.name, _other_uid(request, uid, live.metadata["uid"]))
    if not revision and needs_revision:
        # Here the server speaks of the resource where it speaks of the kind elsewhere.
        found = [causes.invalid("metadata.resourceVersion", 0, "must be specified for an update")]
        raise status.invalid(replace(kind, name=kind.plural), request.name, found)
    _check_revision(request, draft, live)


def _check_revision(request: Request, draft: Draft, live: Stored) -> None:
    revision = draft["metadata"].get("resourceVersion", "")
    if revision and revision != live.metadata["resourceVersion"]:
        raise status.conflict(request.served.kind, request.name)


def _write(core: Core, request: Request, live: Stored, draft: Draft, warnings: tuple[str, ...]) -> Answer:
    """Everything after the managers are known: admission, preparation, validation, and the store unless nothing changed."""
    served, old = request.served, faces.shown(request.served, live)[0]
    draft, told = core.admit("UPDATE", request, draft, old)
    warnings += told
    _prepare(core, request, draft, old)
    if found := creating.faults(request, draft, old):
        raise status.invalid(served.kind, request.name, found)
    warnings += core.validate("UPDATE", request, draft, old)
    draft = _without_mere_times(draft, old)
    warnings += metadata.warnings(draft, old) if served.custom else ()
    if draft == old:
        return answer_with(200, served, live, warnings)
    if request.dry_run:
        return answer_draft(200, served, draft, warnings)
    if deleting.is_finished(draft):
        deleting.remove(core, request, live.body)
        return answer_draft(200, served, draft, warnings)
    stored = core.store.write(served.resource, "MODIFIED", faces.kept(served, draft))
    creating.consequences(core, request, stored.body)
    return answer_with(200, served, stored, warnings)


_SYSTEM = ("creationTimestamp", "generation", "selfLink", "resourceVersion")
_DYING = ("deletionTimestamp", "deletionGracePeriodSeconds")


def _prepare(core: Core, request: Request, draft: Draft, old: Body) -> None:
    """Carry over what this way of writing may not touch, and count the generation."""
    rules, meta, before = rules_of(request.served), draft["metadata"], old["metadata"]
    for key in _SYSTEM:
        _carry(meta, before, key)
    for key in _DYING:
        if key in before:
            meta[key] = before[key]
    meta.setdefault("uid", before["uid"])
    if request.subresource == "status":
        _prepare_status(core, request, draft, old)
    elif request.subresource == "finalize":
        # Here alone the namespace's own finalizer may go: the rules of an ordinary update would put it back.
        _carry(draft, old, "status")
    else:
        if request.served.kind.status:
            _carry(draft, old, "status")
        rules.update(draft, old, core.scene())
    if rules.generation is not None and _moved(draft, old, rules.generation):
        meta["generation"] = before.get("generation", 0) + 1


def _prepare_status(core: Core, request: Request, draft: Draft, old: Body) -> None:
    if not request.served.custom:
        _carry(draft, old, "spec")
        rules_of(request.served).status(draft, old, core.scene())
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


def _moved(new: Body, old: Body, fields: tuple[str, ...]) -> bool:
    """Whether a field that counts has changed; no fields named: every one but metadata and status counts."""
    counted = fields or tuple({*new, *old} - {"metadata", "status", "apiVersion"})
    return any(new.get(key) != old.get(key) for key in counted)


def _without_mere_times(draft: Draft, old: Body) -> Draft:
    """When nothing changed but the times of managers, nothing changed."""
    new, before = draft["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if new == before or not new or not before or _timeless(new) != _timeless(before):
        return draft
    kept = {**draft, "metadata": {**draft["metadata"], "managedFields": before}}
    return kept if kept == old else draft


def _timeless(entries: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries]
