"""Advice: what a user or an administrator does about what is left of a root that gets stuck."""

import shlex
from collections.abc import Iterable
from typing import Final

from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.operation import Create
from engine.plan import Wait
from engine.reason import Reason

SAID: Final = frozenset({Reason.KEPT, Reason.IN_USE})
"""The reasons whose texts say what to do."""
NEW: Final = "correct what is named above, or let an administrator do it, and run the command again"
NAMED: Final = "correct what it names, or let an administrator do it"


def explained_by(root: ResourceId) -> str:
    """The command that names everything that keeps a root from being settled."""
    command = shlex.join(("engine", "why", f"{root.kind.lower()}/{root.name}", *(("-n", root.namespace) if root.namespace else ())))
    return f"{command} names each cause, and what has to be done about it"


def is_new(forecast: Forecast, root: ResourceId) -> bool:
    """Whether the forecast creates the root."""
    return any(isinstance(operation, Create) and operation.id == root for operation in forecast.operations_of(root))


def needed(wait: Wait) -> str:
    """What somebody has to do about one object; empty if its text says it, or if nobody has to act."""
    return wait.remedy or (NAMED if wait.blocked and wait.reason not in SAID else "")


def advice(wait: Wait, forecast: Forecast, root: ResourceId) -> str:
    """What to do about something that is left of a root; empty if its text says it."""
    if wait.reason in SAID:
        return ""
    return wait.remedy or (NEW if is_new(forecast, root) else explained_by(root))


def general_advice(waits: Iterable[Wait], forecast: Forecast, root: ResourceId) -> str:
    """What to do about what is left of a root, as far as the lines about it do not say it; empty if all do."""
    return next((text for wait in waits if not wait.remedy and (text := advice(wait, forecast, root))), "")
