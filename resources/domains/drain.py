"""Drain: how long the deletion of a domain waits for the users of the domain."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from engine.duration import spell
from engine.verdict import Verdict, earliest
from resources.domains.users import User


def drain_verdict(users: Sequence[User], timeout: timedelta | None, now: datetime | None = None) -> Verdict[str]:
    """What the deletion of a domain waits for; empty if it need not wait: no user is left, or `timeout` is over (then `why` says so).

    The timeout runs from the earliest deletionTimestamp of the users. Without a timeout, or while no user is being deleted, there is no
    deadline. Without `now` the deadline is computed (`until`) but is never over.
    """
    if not users:
        return Verdict("")
    began = earliest(user.live.deleting_since for user in users)
    deadline = began + timeout if began is not None and timeout is not None else None
    if deadline is not None and timeout is not None and now is not None and now >= deadline:
        return Verdict("", f"{counted_users(users)} not gone within {spell(timeout)}")
    return Verdict(f"waits for {counted_users(users)} to be gone", until=deadline)


def counted_users(users: Sequence[User]) -> str:
    """The number of users by noun, with the first name: `2 pods and 1 claim (demo-0-a-x, …)`."""
    counts = Counter(user.noun for user in users)
    first = min(user.live.id.name for user in users)
    text = " and ".join(f"{count} {noun}{'s' if count > 1 else ''}" for noun, count in counts.items())
    return f"{text} ({first})" if len(users) == 1 else f"{text} ({first}, …)"
