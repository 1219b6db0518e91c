"""Exit codes, their meanings, and the errors that have one of their own. They are part of the interface and do not change."""

from collections.abc import Iterable
from enum import IntEnum

from engine.errors import InputError


class Exit(IntEnum):
    """The exit code of a command."""

    DONE = 0
    FAILED = 1
    CHANGES = 2
    DENIED = 3
    STALE = 4
    INCOMPLETE = 5
    NOT_LEADER = 6
    PREFLIGHT = 7
    UNSETTLED = 8
    STUCK = 9
    USAGE = 64
    INTERRUPTED = 130
    TERMINATED = 143


class SignalReceived(KeyboardInterrupt):
    """A signal ends the process at once. A `KeyboardInterrupt`, because event loops let that one pass."""

    def __init__(self, code: Exit) -> None:
        super().__init__()
        self.code = code


MEANINGS: dict[Exit, str] = {
    Exit.DONE: "done",
    Exit.FAILED: "failed",
    Exit.CHANGES: "there are changes",
    Exit.DENIED: "denied by policy or guard",
    Exit.STALE: "not as approved",
    Exit.INCOMPLETE: "not everything could be listed",
    Exit.NOT_LEADER: "the lease is not held",
    Exit.PREFLIGHT: "preflight failed",
    Exit.UNSETTLED: "not settled",
    Exit.STUCK: "would not settle",
    Exit.USAGE: "usage error",
    Exit.INTERRUPTED: "interrupted",
    Exit.TERMINATED: "terminated",
}

WORST_FIRST = (
    Exit.PREFLIGHT,
    Exit.FAILED,
    Exit.DENIED,
    Exit.STALE,
    Exit.NOT_LEADER,
    Exit.STUCK,
    Exit.INCOMPLETE,
    Exit.UNSETTLED,
    Exit.CHANGES,
    Exit.DONE,
)


def worst(codes: Iterable[Exit]) -> Exit:
    """The worst of the codes; `DONE` if there are none."""
    given = set(codes)
    return next((code for code in WORST_FIRST if code in given), Exit.DONE)


def meaning(code: Exit) -> str:
    """The last line of text output, e.g. `exit 1: failed`."""
    return f"exit {code.value}: {MEANINGS[code]}"


class UsageError(InputError):
    """The command line cannot be used: an option names something that does not exist, or two options exclude each other. Exit code 64."""


class MissingRequirement(InputError):
    """The cluster lacks what the configuration needs, or what is installed in it does not allow what was asked. Exit code 7."""
