"""Creating: POST, and what an apply patch or a PUT of a missing object share with it."""

from typing import Any

from msgspec.structs import replace

from grove_sandbox.api import conversion, decoding, deleting, scale
from grove_sandbox.api.core import Core, draft_answer, rules_of, stored_answer
from grove_sandbox.api.request import Answer, Request
from grove_sandbox.api.store import key_of
from grove_sandbox.apply import managers
from grove_sandbox.kinds import crds, metadata
from grove_sandbox.kinds.rules import Draft
from grove_sandbox.kinds.served import Served
from grove_sandbox.product import Body
from grove_sandbox.types import fields, names, status
from grove_sandbox.types.schema import unchecked
from grove_sandbox.types.status import Cause
from grove_sandbox.types.transitions import transition_faults

_TRIES = 8
_ACCOUNTS = ("", "serviceaccounts")


def create(core: Core, request: Request, body: Any) -> Answer:
    """POST: a new object. Raises 400, 403, 404 (its namespace), 409, 422."""
    draft, warnings = decoding.decoded(request, body)
    drop_server_fields(draft["metadata"])
    set_namespace(request, draft["metadata"])
    if draft["metadata"].get("resourceVersion"):
        raise status.StatusError(500, "", "resourceVersion should not be set on objects to be created")
    draft = managers.updated(decoding.empty_object(request.served), draft, managed_write(core, request))
    with status.warned(warnings):
        return finish(core, request, draft, warnings)


def set_namespace(request: Request, meta: Draft) -> None:
    """Set the namespace of the URL. Raises 400 if the object names another."""
    if not request.served.kind.namespaced:
        return
    if (meta.get("namespace") or request.namespace) != request.namespace:
        raise status.bad_request("the namespace of the provided object does not match the namespace sent on the request")
    meta["namespace"] = request.namespace


def drop_server_fields(meta: Draft) -> None:
    """Drop the fields that only the server sets on a new object."""
    for key in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(key, None)


def managed_write(core: Core, request: Request) -> managers.ManagedWrite:
    """The request as field management sees it."""
    served = request.served
    operation = managers.Manager(request.manager or "unknown", "Update", served.kind.api_version, request.subresource)
    # The server records no time for a write to the scale subresource.
    now = "" if request.subresource == "scale" else core.now()
    return managers.ManagedWrite(served.shape, operation, now, decoding.empty_object(served), not_owned(served, request.subresource))


def not_owned(served: Served, subresource: str) -> fields.Fields:
    """The fields that a write to the resource or subresource cannot change, and therefore never owns."""
    if subresource == "status":
        return {f"f:{key}": {} for key in served.shape.fields if key != "status" and (served.custom or key != "metadata")}
    return fields.of_paths("status") if "status" in served.subresources else {}


def finish(core: Core, request: Request, draft: Draft, warnings: tuple[str, ...]) -> Answer:
    """The rest of a create: admission, preparation, validation, and the store unless it is a dry run."""
    served, rules = request.served, rules_of(request.served)
    _check_namespace(core, request, draft)
    environment = core.environment()
    rules.admit(draft, environment)
    draft, admission_warnings = core.admit("CREATE", request, draft, None)
    warnings += admission_warnings
    _prepare(core, request, draft)
    rules.create(draft, environment)
    if causes := faults(request, draft, None):
        raise status.invalid(served.kind, draft["metadata"].get("name", ""), causes)
    warnings += core.validate("CREATE", request, draft, None)
    if (other := core.collection(request).objects.get(key_of(request.namespace, draft["metadata"]["name"]))) is not None:
        dying = "deletionTimestamp" in other.metadata
        raise status.already_exists(served.kind, draft["metadata"]["name"], dying=dying)
    warnings += metadata.warnings(draft, None) if served.custom else ()
    if request.dry_run:
        return draft_answer(201, served, draft, warnings)
    stored = core.store.write(served.resource, "ADDED", conversion.to_storage(served, draft))
    after_write(core, request, stored.body)
    return stored_answer(201, served, stored, warnings)


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
        if "status" in (empty := decoding.empty_object(served)):
            draft["status"] = empty["status"]


def _free_name(core: Core, request: Request, base: str) -> str:
    """A generated name that is not taken, or the last of a few tries."""
    taken = core.collection(request).objects
    for _ in range(_TRIES):
        name = names.generated(base, core.random)
        if key_of(request.namespace, name) not in taken:
            break
    return name


def faults(request: Request, new: Body, old: Body | None) -> list[Cause]:
    """The faults of a new object, or of an old one and its changes."""
    served, rules = request.served, rules_of(request.served)
    extended = served.custom or served.resource == (crds.GROUP, crds.PLURAL)
    result = metadata.faults(new, rules.name_faults, namespaced=served.kind.namespaced, lenient=extended)
    if old is not None:
        result = [*metadata.change_faults(new, old), *result]
    result += rules.validate(new)
    if served.validator is not None:
        result += served.validator.faults(new, old, status_alone=request.subresource == "status")
    if served.custom:
        result += scale.faults(served, new)
    if served.validator is not None and served.validator.has_rules:
        result += unchecked(result) or (transition_faults(served.transitions, new, old) if old is not None else [])
    return result + rules.validate_change(new, old) if old is not None else result


def _check_namespace(core: Core, request: Request, draft: Draft) -> None:
    """Raises 404 or 403 unless the namespace exists and is not being deleted."""
    if not request.served.kind.namespaced:
        return
    namespace = core.lookup("", "namespaces", "", request.namespace)
    if namespace is None:
        raise status.not_found(core.catalogue.find("", "v1", "namespaces").kind, request.namespace)
    if namespace["status"].get("phase") == "Terminating":
        why = f"unable to create new content in namespace {request.namespace} because it is being terminated"
        cause = Cause("NamespaceTerminating", f"namespace {request.namespace} is being terminated", "metadata.namespace")
        raise status.forbidden(request.served.kind, draft["metadata"].get("name", ""), why, [cause])


def after_write(core: Core, request: Request, body: Body) -> None:
    """The immediate effects of a write: the kinds of a CRD are served, a namespace gets its default service account."""
    match request.served.resource:
        case (crds.GROUP, crds.PLURAL):
            _serve(core, request, body)
        case ("", "namespaces") if "deletionTimestamp" not in body["metadata"]:
            _default_account(core, body["metadata"]["name"])


def _serve(core: Core, request: Request, crd: Body) -> None:
    """Serve the kinds of the CRD and set its status, as the server's own controllers do."""
    core.catalogue.replace(crd["spec"]["group"], crd["spec"]["names"]["plural"], crds.versions_of(crd))
    established = {**crd, "status": crds.established(crd, core.now())}
    if "deletionTimestamp" in crd["metadata"]:
        deleting.undefine_when_empty(core, crd)
    elif established != crd:
        write = managed_write(core, replace(request, manager="kube-apiserver", subresource="status"))
        core.store.write(request.served.resource, "MODIFIED", managers.updated(crd, established, write))


def _default_account(core: Core, namespace: str) -> None:
    """Create the default service account, without which no pod can be created; elsewhere a controller does."""
    if core.lookup(*_ACCOUNTS, namespace, "default") is not None:
        return
    draft: Draft = {
        "kind": "ServiceAccount",
        "apiVersion": "v1",
        "metadata": {"name": "default", "namespace": namespace, "uid": core.new_uid(), "creationTimestamp": core.now()},
    }
    core.store.write(_ACCOUNTS, "ADDED", draft)
