"""Errors: the field `lastErrors` of a status, which lists the failed API calls for the children of an object."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.answer import FailedCall
from engine.ids import ResourceId
from engine.observed import Live, timestamp
from engine.plan import Wait
from engine.resource import Body
from engine.verb import Verb
from resources.base import kinds

MAX_ERRORS = 20
"""Entries in one status: a thousand refused pods of a clique would not fit."""

MAX_DESCRIPTION = 1024
"""Characters in one description: servers quote what they were sent."""


CORRECT: Final = "correct what the error names, unless it has passed; a later pass tries again"


class Codes(NamedTuple):
    """The error codes of a kind of child, by what failed."""

    create: str
    update: str
    delete: str


def sync_codes(kind: str) -> Codes:
    """The codes of a kind whose creation and update are not told apart."""
    return Codes(f"ERR_SYNC_{kind}", f"ERR_SYNC_{kind}", f"ERR_DELETE_{kind}")


CodesOf = Mapping[tuple[str, str], Codes]
"""Kinds of parent and child -> codes. Calls for other pairs are not reported: those for the parent itself, and status writes."""


def of(parent: ResourceId, failed_calls: Sequence[FailedCall] | None, old: Body, codes: CodesOf) -> Body:
    """The field `lastErrors` of a status: `{"lastErrors": [...]}`, or `{"lastErrors": None}`, which removes the field.

    Returns `{}`, which leaves the field unchanged, while it is not known whether the calls fail: after a restart (`failed_calls` is None),
    or while none of the calls has an error. `old` is the live status: an error that it already lists keeps its time.
    """
    if failed_calls is None:
        return {}
    times = {(entry.get("code"), entry.get("description")): entry.get("observedAt") for entry in old.get("lastErrors") or ()}
    calls = [
        (of_kind, call)
        for call in failed_calls
        if call.parent == (parent.kind, parent.name) and (of_kind := _codes(codes, parent, call.id)) is not None
    ]
    entries = [_entry(of_kind, call, times) for of_kind, call in calls if call.error is not None]
    return {} if calls and not entries else {"lastErrors": entries[:MAX_ERRORS] or None}


def are_listed(live: Live) -> bool:
    """Whether the status of an object lists errors."""
    return bool((live.body.get("status") or {}).get("lastErrors"))


def unconfirmed(lives: Iterable[Live]) -> Iterator[Wait]:
    """One wait for each object that lists errors of an earlier run. They stay until a pass of this run has made the calls again."""
    for live in lives:
        if are_listed(live):
            (first, *_) = live.body["status"]["lastErrors"]
            why = f"lists an error of an earlier run, which is removed after a successful pass: {first.get('description', '')}"
            yield Wait(live.id, why, to_do=CORRECT)


def by_part(failed_calls: Iterable[FailedCall], part_of: Callable[[ResourceId], str]) -> Mapping[str, tuple[FailedCall, ...]]:
    """The failed calls, grouped by the part of the root that their objects are in."""
    parts: dict[str, list[FailedCall]] = {}
    for call in failed_calls:
        parts.setdefault(part_of(call.id), []).append(call)
    return {key: tuple(calls) for key, calls in parts.items()}


def _codes(codes: CodesOf, parent: ResourceId, child: ResourceId) -> Codes | None:
    """The codes for a child. Kinds without any that sets own, as those of fabrics, have codes made from the name of the kind."""
    return codes.get((parent.kind, child.kind)) or (sync_codes(child.kind.upper()) if parent.kind == kinds.PODCLIQUESET.name else None)


def _entry(codes: Codes, call: FailedCall, times: Mapping[tuple[str, str], str]) -> Body:
    operation, code = _operation(call.verb, codes)
    summary = f"failed to sync {call.id.kind}: [Operation: {operation}, Code: {code}]"
    text = f"{summary} message: {call.verb} {call.id}, cause: {call.error}"[:MAX_DESCRIPTION]
    return {"code": code, "description": text, "observedAt": times.get((code, text)) or timestamp(call.since)}


def _operation(verb: Verb, codes: Codes) -> tuple[str, str]:
    if verb in (Verb.DELETE, Verb.RELEASE):
        return "Delete", codes.delete
    return "Sync", codes.create if verb is Verb.CREATE else codes.update
