"""Deleting: at once, after a grace, or when the last finalizer is gone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from providers.sandbox.api.core import Core, answer_draft, answer_with, rules_of
from providers.sandbox.api.request import Answer, Deletion, Request, answer
from providers.sandbox.api.store import Stored
from providers.sandbox.kinds import crds, metadata
from providers.sandbox.kinds.rules import Draft
from providers.sandbox.types import status

Body = Mapping[str, Any]
_NAMESPACES = ("", "namespaces")


def delete(core: Core, request: Request, deletion: Deletion) -> Answer:
    """DELETE: a Status when the object is gone, the object while it lingers. Raises 404, 409."""
    live = core.stored(request)
    _check_preconditions(request, live, deletion)
    served = request.served
    _, warnings = core.admit("DELETE", request, None, live.body)
    warnings += core.validate("DELETE", request, None, live.body)
    doomed = _doomed(core, request, live, deletion)
    if doomed == live.body:
        return answer_with(200, served, live, warnings)
    if served.resource == (crds.GROUP, crds.PLURAL) and not request.dry_run:
        return _undefine(core, request, live)
    if is_finished(doomed):
        last = doomed if rules_of(served).grace else live.body
        gone = last if request.dry_run else _bury(core, request, live, last)
        if rules_of(served).returns_deleted:
            return answer_draft(200, served, gone, warnings)
        return answer(200, _gone(request, live), warnings)
    if request.dry_run:
        return answer_draft(200, served, doomed, warnings)
    return answer_with(200, served, core.store.write(served.resource, "MODIFIED", doomed), warnings)


def _bury(core: Core, request: Request, live: Stored, last: Body) -> Body:
    """Remove the object; one that could have had a grace is first seen to have no time left."""
    if last != live.body:
        core.store.write(request.served.resource, "MODIFIED", last)
    return remove(core, request, last).body


def is_finished(body: Body) -> bool:
    """Whether nothing holds a dying object any more: no finalizer and no grace."""
    meta = body["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return not (body["kind"] == "Namespace" and body["apiVersion"] == "v1" and body["spec"].get("finalizers"))


def remove(core: Core, request: Request, body: Body) -> Stored:
    """Take the object out of the store, as it last was; the last object of a kind that goes takes its CRD with it."""
    stored = core.store.write(request.served.resource, "DELETED", body)
    if request.served.custom:
        kind = request.served.kind
        crd = core.lookup(crds.GROUP, crds.PLURAL, "", f"{kind.plural}.{kind.group}")
        if crd is not None and "deletionTimestamp" in crd["metadata"]:
            undefine_when_empty(core, crd)
    return stored


def _undefine(core: Core, request: Request, live: Stored) -> Answer:
    """Delete a CRD: its objects go first, and when the last one is gone, so is the kind."""
    if "deletionTimestamp" in live.metadata:
        return answer_with(200, request.served, live)
    stored = core.store.write(request.served.resource, "MODIFIED", crds.terminating(live.body, core.now()))
    for served in crds.versions_of(stored.body)[:1]:
        collection = core.store.collection(served.resource)
        for one in list(collection.objects.values()):
            delete(core, Request(served, one.metadata.get("namespace", ""), one.metadata["name"]), Deletion())
    undefine_when_empty(core, stored.body)
    return answer_with(200, request.served, stored)


def undefine_when_empty(core: Core, crd: Body) -> None:
    """Let a dying CRD go once nothing is left of its kind and nobody else holds it."""
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    left = core.store.collection((group, plural)).objects or crd["metadata"]["finalizers"] != [crds.CLEANUP]
    if left or core.lookup(crds.GROUP, crds.PLURAL, "", crd["metadata"]["name"]) is None:
        return
    core.store.write((crds.GROUP, crds.PLURAL), "DELETED", crd)
    core.catalogue.replace(group, plural, ())
    core.store.drop((group, plural))


def _check_preconditions(request: Request, live: Stored, deletion: Deletion) -> None:
    # Here the server speaks of the kind where it speaks of the resource elsewhere.
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
