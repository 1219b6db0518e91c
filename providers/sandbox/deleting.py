"""Deleting: at once, after a grace, or when the last finalizer is gone."""

from collections.abc import Mapping
from typing import Any

from providers.sandbox import crds, faces, metadata, status
from providers.sandbox.core import Core, answer_draft, answer_with, rules_of
from providers.sandbox.request import Answer, Deletion, Request, answer
from providers.sandbox.rules import Draft
from providers.sandbox.store import Stored

Body = Mapping[str, Any]
_NAMESPACES = ("", "namespaces")


def delete(core: Core, request: Request, deletion: Deletion) -> Answer:
    """DELETE: a Status when the object is gone, the object while it lingers. Raises 404, 409."""
    live = core.stored(request)
    _check_preconditions(request, live, deletion)
    served = request.served
    _, warnings = core.admit("DELETE", request, None, live.body)
    doomed = _doomed(core, request, live, deletion)
    if doomed == live.body:
        return answer_with(200, served, live, warnings)
    if is_finished(doomed):
        gone = doomed if request.dry_run else remove(core, request, doomed).body
        if rules_of(served).returns_deleted:
            return answer_draft(200, served, gone, warnings)
        return answer(200, _gone(request, live), warnings)
    if request.dry_run:
        return answer_draft(200, served, doomed, warnings)
    return answer_with(200, served, core.store.write(served.resource, "MODIFIED", doomed), warnings)


def is_finished(body: Body) -> bool:
    """Whether nothing holds a dying object any more: no finalizer and no grace."""
    meta = body["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return not (body["kind"] == "Namespace" and body["apiVersion"] == "v1" and body["spec"].get("finalizers"))


def remove(core: Core, request: Request, body: Body) -> Stored:
    """Take the object out of the store; a CRD takes its objects with it."""
    stored = core.store.write(request.served.resource, "DELETED", faces.kept(request.served, body))
    if request.served.resource == (crds.GROUP, crds.PLURAL):
        spec = stored.body["spec"]
        core.catalogue.replace(spec["group"], spec["names"]["plural"], ())
        core.store.drop((spec["group"], spec["names"]["plural"]))
    return stored


def _check_preconditions(request: Request, live: Stored, deletion: Deletion) -> None:
    kind, meta = request.served.kind, live.metadata
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


def _doomed(core: Core, request: Request, live: Stored, deletion: Deletion) -> Draft:
    """The object as the deletion leaves it for the moment."""
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
    return _dying({**live.body, "metadata": meta}, request)


def _dying(body: Draft, request: Request) -> Draft:
    """What else the kind says of an object that is on its way out."""
    if request.served.resource == _NAMESPACES:
        body["metadata"].pop("deletionGracePeriodSeconds", None)
        body["status"] = {**body["status"], "phase": "Terminating"}
    return body


def _set_finalizers(meta: Draft, propagation: str, *, explicit: bool) -> None:
    """Ask the garbage collector for what the propagation means."""
    wanted = {"Foreground": metadata.FOREGROUND, "Orphan": metadata.ORPHAN}.get(propagation)
    finalizers = list(meta.get("finalizers") or ())
    if explicit or not {metadata.FOREGROUND, metadata.ORPHAN} & set(finalizers):
        finalizers = [one for one in finalizers if one not in (metadata.FOREGROUND, metadata.ORPHAN)]
        finalizers += [wanted] if wanted else []
    meta.pop("finalizers", None)
    if finalizers:
        meta["finalizers"] = finalizers


def _gone(request: Request, live: Stored) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": status.details_of(request.served.kind, request.name, uid=live.metadata["uid"]),
    }
