"""Errors: what could not be done for an object the last time it was tried, as its status tells it (`lastErrors`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.failure import FailedCall
from engine.ids import ResourceId
from engine.observed import Live
from engine.plan import Wait
from engine.resource import Body
from engine.verb import Verb
from resources.base import kinds

MOST = 20
"""Entries of one object: a clique of a thousand pods that are refused is not told pod by pod."""

LONGEST = 1024
"""Characters of a description: servers quote what they were sent."""


class Codes(NamedTuple):
    """The words for what could not be made, changed, or taken away."""

    make: str
    change: str
    take: str


def _synced(what: str) -> Codes:
    return Codes(f"ERR_SYNC_{what}", f"ERR_SYNC_{what}", f"ERR_DELETE_{what}")


CODES: Mapping[tuple[str, str], Codes] = {
    ("PodCliqueSet", "PodClique"): Codes("ERR_CREATE_OR_UPDATE_PODCLIQUE", "ERR_CREATE_OR_UPDATE_PODCLIQUE", "ERR_DELETE_PODCLIQUE"),
    ("PodCliqueSet", "PodCliqueScalingGroup"): Codes(
        "ERR_CREATE_PODCLIQUESCALINGGROUP", "ERR_SYNC_PODCLIQUESCALINGGROUP", "ERR_DELETE_PODCLIQUESCALINGGROUP"
    ),
    ("PodCliqueSet", "PodGang"): Codes("ERR_CREATE_PODGANG", "ERR_CREATE_OR_PATCH_PODGANG", "ERR_DELETE_EXCESS_PODGANG"),
    ("PodCliqueSet", "Service"): _synced("PODCLIQUESET_SERVICE"),
    ("PodCliqueSet", "HorizontalPodAutoscaler"): _synced("HPA"),
    ("PodCliqueSet", "ServiceAccount"): _synced("SERVICEACCOUNT"),
    ("PodCliqueSet", "Role"): _synced("ROLE"),
    ("PodCliqueSet", "RoleBinding"): _synced("ROLEBINDING"),
    ("PodCliqueSet", "Secret"): Codes("ERR_CREATE_SECRET", "ERR_CREATE_SECRET", "ERR_DELETE_SECRET"),
    ("PodCliqueSet", "ResourceClaim"): _synced("PCS_RESOURCE_CLAIM"),
    ("PodCliqueScalingGroup", "PodClique"): Codes("ERR_CREATE_PODCLIQUE", "ERR_CREATE_OR_UPDATE_PODCLIQUES", "ERR_DELETE_PODCLIQUE"),
    ("PodCliqueScalingGroup", "ResourceClaim"): Codes(*["ERR_SYNC_PCSG_RESOURCE_CLAIM"] * 3),
    ("PodClique", "Pod"): Codes("ERR_CREATE_POD", "ERR_REMOVE_POD_SCHEDULING_GATE", "ERR_DELETE_POD"),
    ("PodClique", "ResourceClaim"): _synced("PCLQ_RESOURCE_CLAIM"),
}
"""Parent and child -> the codes. What is not here is not told: what is done to a parent itself, and states."""


def of(parent: ResourceId, failed_calls: Sequence[FailedCall] | None, old: Body) -> Body:
    """The field `lastErrors` of an object, taken away when there are none; nothing at all as long as nobody has tried what is to be done.

    `failed_calls` are those of everything around the object, None where nobody remembers any; `old` is the status as it is: an error
    that it tells already was seen when it says.
    """
    if failed_calls is None:
        return {}
    seen = {(entry.get("code"), entry.get("description")): entry.get("observedAt") for entry in old.get("lastErrors") or ()}
    mine = [failed_call for failed_call in failed_calls if _is_about(parent, failed_call)]
    told = [
        _told(codes, failed_call, seen)
        for failed_call in mine
        if failed_call.error is not None and (codes := _codes(parent, failed_call.id))
    ]
    return {} if mine and not told else {"lastErrors": told[:MOST] or None}


def unexplained(lives: Iterable[Live]) -> Iterator[Wait]:
    """Those objects that tell of errors, for when nobody remembers any: they do so until somebody has tried again."""
    for live in lives:
        if (live.body.get("status") or {}).get("lastErrors"):
            (first, *_) = live.body["status"]["lastErrors"]
            told = f"tells of an error, which is taken back once a pass has gone well: {first.get('description', '')}"
            yield Wait(live.id, told)


def in_parts(failed_calls: Iterable[FailedCall], part_of: Callable[[ResourceId], str]) -> Mapping[str, tuple[FailedCall, ...]]:
    """The failed_calls by the part of the root that they are in."""
    parts: dict[str, list[FailedCall]] = {}
    for failed_call in failed_calls:
        parts.setdefault(part_of(failed_call.id), []).append(failed_call)
    return {key: tuple(found) for key, found in parts.items()}


def _codes(parent: ResourceId, child: ResourceId) -> Codes | None:
    """The codes for what is done to a child. For a kind of a plug-in's, which only sets have, they are spelled out."""
    return CODES.get((parent.kind, child.kind)) or (_synced(child.kind.upper()) if parent.kind == kinds.PODCLIQUESET.name else None)


def _is_about(parent: ResourceId, failed_call: FailedCall) -> bool:
    """Whether the call was made for that object, being about one that it controls."""
    return _codes(parent, failed_call.id) is not None and failed_call.parent == (parent.kind, parent.name)


def _told(codes: Codes, failed_call: FailedCall, seen: Mapping[tuple[str, str], str]) -> Body:
    word, code = _words(failed_call.verb, codes)
    what = f"failed to sync {failed_call.id.kind}: [Operation: {word}, Code: {code}]"
    text = f"{what} message: {failed_call.verb} {failed_call.id}, cause: {failed_call.error}"[:LONGEST]
    return {"code": code, "description": text, "observedAt": seen.get((code, text)) or failed_call.since.strftime("%Y-%m-%dT%H:%M:%SZ")}


def _words(verb: Verb, codes: Codes) -> tuple[str, str]:
    if verb in (Verb.DELETE, Verb.RELEASE):
        return "Delete", codes.take
    return "Sync", codes.make if verb is Verb.CREATE else codes.change
