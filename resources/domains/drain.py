"""Drain: what is torn down under those who use it waits until they are gone, or have had time enough."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.duration import spell
from engine.observed import Live
from engine.verdict import Verdict, earliest

ENDED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class User:
    """Something that uses a domain."""

    live: Live
    noun: str


def claims(pod: Live, template: str) -> bool:
    """Whether a pod that has not ended claims what a ResourceClaimTemplate gives."""
    return not has_ended(pod) and asks(pod, template)


def has_ended(pod: Live) -> bool:
    """Whether a pod has come to its end, whichever."""
    return (pod.body.get("status") or {}).get("phase") in ENDED


def asks(pod: Live, template: str) -> bool:
    """Whether a pod is made to claim what a ResourceClaimTemplate gives."""
    return any(claim.get("resourceClaimTemplateName") == template for claim in pod.body["spec"].get("resourceClaims") or ())


def judge(users: Sequence[User], patience: timedelta | None, now: datetime | None = None) -> Verdict[str]:
    """What to wait for; empty when there is nothing, or when the first of them has been going for longer than our patience.

    In the latter case `why` says so. Without patience, and as long as none of them is going, we wait for ever.
    """
    if not users:
        return Verdict("")
    began = earliest(user.live.deleting_since for user in users)
    deadline = began + patience if began is not None and patience is not None else None
    if deadline is not None and patience is not None and now is not None and now >= deadline:
        return Verdict("", f"{_counted(users)} not gone within {spell(patience)}")
    return Verdict(f"waits for {_counted(users)} to be gone", until=deadline)


def _counted(users: Sequence[User]) -> str:
    counts = Counter(user.noun for user in users)
    first = min(user.live.id.name for user in users)
    told = " and ".join(f"{count} {noun}{'s' if count > 1 else ''}" for noun, count in counts.items())
    return f"{told} ({first})" if len(users) == 1 else f"{told} ({first}, …)"
