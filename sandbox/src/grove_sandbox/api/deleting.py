"""Deleting: at once, after a grace period, or after the last finalizer."""

from typing import Any

from msgspec.structs import replace

from grove_sandbox.api.core import Core, draft_answer, rules_of, stored_answer
from grove_sandbox.api.request import Answer, Deletion, Request, answer
from grove_sandbox.api.store import Stored
from grove_sandbox.kinds import crds, metadata
from grove_sandbox.kinds.rules import Draft
from grove_sandbox.product import Body
from grove_sandbox.types import status

_NAMESPACES = ("", "namespaces")


def delete(core: Core, request: Request, deletion: Deletion) -> Answer:
    """DELETE: answers with a Status once the object is removed, and with the object until then. Raises 404, 409."""
    live = core.stored(request)
    _check_preconditions(request, live, deletion)
    served = request.served
    _, warnings = core.admit("DELETE", request, None, live.body)
    warnings += core.validate("DELETE", request, None, live.body)
    marked = _marked(core, request, live, deletion)
    if marked == live.body:
        return stored_answer(200, served, live, warnings)
    if served.resource == (crds.GROUP, crds.PLURAL) and not request.dry_run:
        return _undefine(core, request, live)
    if is_finished(marked):
        final = marked if rules_of(served).grace else live.body
        removed = final if request.dry_run else _remove_after_grace(core, request, live, final)
        if rules_of(served).returns_deleted:
            return draft_answer(200, served, removed, warnings)
        return answer(200, _success(request, live), warnings)
    if request.dry_run:
        return draft_answer(200, served, marked, warnings)
    return stored_answer(200, served, core.store.write(served.resource, "MODIFIED", marked), warnings)


def _remove_after_grace(core: Core, request: Request, live: Stored, final: Body) -> Body:
    """Remove the object. Watchers of a kind with a grace period see first that its period is zero."""
    if final != live.body:
        core.store.write(request.served.resource, "MODIFIED", final)
    return remove(core, request, final).body


def is_finished(body: Body) -> bool:
    """Whether an object is being deleted and has neither a finalizer nor a grace period left."""
    meta = body["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return not (body["kind"] == "Namespace" and body["apiVersion"] == "v1" and body["spec"].get("finalizers"))


def remove(core: Core, request: Request, body: Body) -> Stored:
    """Remove the object from the store; with the last object, a CRD that is being deleted is removed too."""
    stored = core.store.write(request.served.resource, "DELETED", body)
    if request.served.custom:
        kind = request.served.kind
        crd = core.lookup(crds.GROUP, crds.PLURAL, "", f"{kind.plural}.{kind.group}")
        if crd is not None and "deletionTimestamp" in crd["metadata"]:
            undefine_when_empty(core, crd)
    return stored


def _undefine(core: Core, request: Request, live: Stored) -> Answer:
    """Delete a CRD: first its objects, and the CRD after the last one."""
    if "deletionTimestamp" in live.metadata:
        return stored_answer(200, request.served, live)
    stored = core.store.write(request.served.resource, "MODIFIED", crds.terminating(live.body, core.now()))
    for served in crds.versions_of(stored.body)[:1]:
        collection = core.store.collection(served.resource)
        for meta in [each.metadata for each in collection.objects.values()]:
            delete(core, Request(served, meta.get("namespace", ""), meta["name"]), Deletion())
    undefine_when_empty(core, stored.body)
    return stored_answer(200, request.served, stored)


def undefine_when_empty(core: Core, crd: Body) -> None:
    """Remove a CRD that is being deleted once it has no objects and no other finalizer."""
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    is_held = core.store.collection((group, plural)).objects or crd["metadata"]["finalizers"] != [crds.CLEANUP]
    if is_held or core.lookup(crds.GROUP, crds.PLURAL, "", crd["metadata"]["name"]) is None:
        return
    core.store.write((crds.GROUP, crds.PLURAL), "DELETED", crd)
    core.catalogue.replace(group, plural, ())
    core.store.drop((group, plural))


def _check_preconditions(request: Request, live: Stored, deletion: Deletion) -> None:
    # This message of the server names the kind, not the resource.
    kind, meta = replace(request.served.kind, plural=request.served.kind.name), live.metadata
    if deletion.uid is not None and deletion.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({deletion.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise status.conflict(kind, request.name, why)
    if deletion.revision is not None and deletion.revision != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({deletion.revision}) does not match the ResourceVersion in record "
            f"({meta['resourceVersion']}). The object might have been modified"
        )
        raise status.conflict(kind, request.name, why)


def _marked(core: Core, request: Request, live: Stored, deletion: Deletion) -> Draft:
    """The object with the deletion timestamp, grace period and finalizers of the deletion."""
    rules = rules_of(request.served)
    meta = {**live.metadata}
    _set_finalizers(meta, deletion.propagation or rules.default_propagation, explicit=bool(deletion.propagation))
    grace = rules.grace(live.body, deletion.grace) if rules.grace else 0
    if "deletionTimestamp" not in meta:
        meta["deletionTimestamp"] = core.now(after=grace)
        meta["deletionGracePeriodSeconds"] = grace
        if meta.get("generation"):
            meta["generation"] += 1
    elif rules.grace and (deletion.grace is not None) and grace < (meta.get("deletionGracePeriodSeconds") or 0):
        meta["deletionTimestamp"] = core.now(after=grace)
        meta["deletionGracePeriodSeconds"] = grace
    if request.served.resource == _NAMESPACES:
        meta.pop("deletionGracePeriodSeconds", None)
        return {**live.body, "metadata": meta, "status": {**live.body["status"], "phase": "Terminating"}}
    return {**live.body, "metadata": meta}


def _set_finalizers(meta: Draft, propagation: str, *, explicit: bool) -> None:
    """Set the finalizer by which the garbage collector carries out the propagation policy."""
    finalizer = {"Foreground": metadata.FOREGROUND, "Orphan": metadata.ORPHAN}.get(propagation)
    finalizers = list(meta.get("finalizers") or ())
    if explicit or not {metadata.FOREGROUND, metadata.ORPHAN} & set(finalizers):
        finalizers = [each for each in finalizers if each not in (metadata.FOREGROUND, metadata.ORPHAN)]
        finalizers += [finalizer] if finalizer else []
    meta.pop("finalizers", None)
    if finalizers:
        meta["finalizers"] = finalizers


def _success(request: Request, live: Stored) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": status.details_of(request.served.kind, request.name, uid=live.metadata["uid"]),
    }
