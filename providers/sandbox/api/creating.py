"""Creating: how a draft becomes an object."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from providers.sandbox.api import deleting, drafts, faces, scale
from providers.sandbox.api.core import Core, answer_draft, answer_with, rules_of
from providers.sandbox.api.request import Answer, Request
from providers.sandbox.api.store import key_of
from providers.sandbox.apply import managers
from providers.sandbox.kinds import crds, metadata
from providers.sandbox.kinds.rules import Draft
from providers.sandbox.kinds.served import Served
from providers.sandbox.types import fields, names, status
from providers.sandbox.types.schema import unchecked
from providers.sandbox.types.status import Cause
from providers.sandbox.types.transitions import transition_faults

Body = Mapping[str, Any]
_TRIES = 8
_ACCOUNTS = ("", "serviceaccounts")


def create(core: Core, request: Request, body: Any) -> Answer:
    """POST: a new object. Raises 400, 403, 404 (its namespace), 409, 422."""
    draft, warnings = drafts.read(request, body)
    wipe(draft["metadata"])
    meet_namespace(request, draft["metadata"])
    if draft["metadata"].get("resourceVersion"):
        raise status.StatusError(500, "", "resourceVersion should not be set on objects to be created")
    draft = managers.updated(drafts.nothing_yet(request.served), draft, writer(core, request))
    with status.warned(warnings):
        return finish(core, request, draft, warnings)


def meet_namespace(request: Request, meta: Draft) -> None:
    """Put the object into the namespace of the URL. Raises 400 where it says another."""
    if not request.served.kind.namespaced:
        return
    if (meta.get("namespace") or request.namespace) != request.namespace:
        raise status.bad_request("the namespace of the provided object does not match the namespace sent on the request")
    meta["namespace"] = request.namespace


def wipe(meta: Draft) -> None:
    """Take out what only the server may say of a new object."""
    for key in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(key, None)


def writer(core: Core, request: Request) -> managers.Writer:
    """The view that a write by this request has of field ownership."""
    served = request.served
    operation = managers.Manager(request.manager or "unknown", "Update", served.kind.api_version, request.subresource)
    # The server notes no time for what came through a scale.
    now = "" if request.subresource == "scale" else core.now()
    return managers.Writer(served.shape, operation, now, drafts.nothing_yet(served), not_owned(served, request.subresource))


def not_owned(served: Served, subresource: str) -> fields.Fields:
    """The fields that a write to a resource or subresource never owns, because it cannot change them."""
    if subresource == "status":
        return {f"f:{key}": {} for key in served.shape.fields if key not in ("status", "metadata")}
    return fields.of_paths("status") if "status" in served.subresources else {}


def finish(core: Core, request: Request, draft: Draft, warnings: tuple[str, ...]) -> Answer:
    """Everything after the managers are known: admission, preparation, validation, the store."""
    served, rules = request.served, rules_of(request.served)
    _check_namespace(core, request, draft)
    scene = core.scene()
    rules.admit(draft, scene)
    draft, told = core.admit("CREATE", request, draft, None)
    _prepare(core, request, draft)
    rules.create(draft, scene)
    if found := faults(request, draft, None):
        raise status.invalid(served.kind, draft["metadata"].get("name", ""), found)
    told += core.validate("CREATE", request, draft, None)
    if (other := core.collection(request).objects.get(key_of(request.namespace, draft["metadata"]["name"]))) is not None:
        dying = "deletionTimestamp" in other.metadata
        raise status.already_exists(served.kind, draft["metadata"]["name"], dying=dying)
    told += metadata.warnings(draft, None) if served.custom else ()
    if request.dry_run:
        return answer_draft(201, served, draft, warnings + told)
    stored = core.store.write(served.resource, "ADDED", faces.kept(served, draft))
    consequences(core, request, stored.body)
    return answer_with(201, served, stored, warnings + told)


def _prepare(core: Core, request: Request, draft: Draft) -> None:
    meta, rules, served = draft["metadata"], rules_of(request.served), request.served
    if rules.generation is not None:
        meta["generation"] = 1
    meta["uid"] = core.new_uid()
    meta["creationTimestamp"] = core.now()
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = _free_name(core, request, meta["generateName"])
    if served.kind.status and rules.resets_status:
        draft.pop("status", None)
        if "status" in (empty := drafts.nothing_yet(served)):
            draft["status"] = empty["status"]


def _free_name(core: Core, request: Request, base: str) -> str:
    """A generated name; a few tries, should it be taken."""
    taken = core.collection(request).objects
    tries = (names.generated(base, core.random) for _ in range(_TRIES))
    name = ""
    for name in tries:
        if key_of(request.namespace, name) not in taken:
            break
    return name


def faults(request: Request, new: Body, old: Body | None) -> list[Cause]:
    """Everything that is wrong with an object, as it stands and as it changed."""
    served, rules = request.served, rules_of(request.served)
    extended = served.custom or served.resource == (crds.GROUP, crds.PLURAL)
    found = metadata.faults(new, rules.name_faults, namespaced=served.kind.namespaced, lenient=extended)
    if old is not None:
        found = [*metadata.change_faults(new, old), *found]
    found += rules.validate(new)
    if served.validator is not None:
        found += served.validator.faults(new, old, status_alone=request.subresource == "status")
    if served.custom:
        found += scale.faults(served, new)
    if served.validator is not None and served.validator.has_rules:
        found += unchecked(found) or (transition_faults(served.transitions, new, old) if old is not None else [])
    return found + rules.validate_change(new, old) if old is not None else found


def _check_namespace(core: Core, request: Request, draft: Draft) -> None:
    """A namespaced object needs a namespace that lives."""
    if not request.served.kind.namespaced:
        return
    namespace = core.lookup("", "namespaces", "", request.namespace)
    if namespace is None:
        raise status.not_found(core.catalogue.find("", "v1", "namespaces").kind, request.namespace)
    if namespace["status"].get("phase") == "Terminating":
        why = f"unable to create new content in namespace {request.namespace} because it is being terminated"
        cause = Cause("NamespaceTerminating", f"namespace {request.namespace} is being terminated", "metadata.namespace")
        raise status.forbidden(request.served.kind, draft["metadata"].get("name", ""), why, [cause])


def consequences(core: Core, request: Request, body: Body) -> None:
    """What a write brings about at once: a CRD serves its kinds, a namespace gets its default service account."""
    match request.served.resource:
        case (crds.GROUP, crds.PLURAL):
            _serve(core, request, body)
        case ("", "namespaces") if "deletionTimestamp" not in body["metadata"]:
            _default_account(core, body["metadata"]["name"])


def _serve(core: Core, request: Request, crd: Body) -> None:
    """Serve what the CRD says from now on, and say so in its status, as the server's own controller does."""
    core.catalogue.replace(crd["spec"]["group"], crd["spec"]["names"]["plural"], crds.versions_of(crd))
    established = {**crd, "status": crds.established(crd, core.now())}
    if "deletionTimestamp" in crd["metadata"]:
        deleting.undefine_when_empty(core, crd)
    elif established != crd:
        view = writer(core, replace(request, manager="kube-apiserver", subresource="status"))
        core.store.write(request.served.resource, "MODIFIED", managers.updated(crd, established, view))


def _default_account(core: Core, namespace: str) -> None:
    """Every cluster's controllers do this within a blink; pods cannot be created without."""
    if core.lookup(*_ACCOUNTS, namespace, "default") is not None:
        return
    draft: Draft = {
        "kind": "ServiceAccount",
        "apiVersion": "v1",
        "metadata": {"name": "default", "namespace": namespace, "uid": core.new_uid(), "creationTimestamp": core.now()},
    }
    core.store.write(_ACCOUNTS, "ADDED", draft)
