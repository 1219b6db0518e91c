"""Gates: what decides, before a command writes anything, whether it may write."""

from collections.abc import Awaitable, Callable, Sequence

from enginectl.actions.preview import Preview
from enginectl.base.exit_codes import Exit

Gate = Callable[[Preview], Awaitable[Exit | None]]
"""Judges what was seen. Returns the exit code with which the command ends, having told why; None: it may go on."""


async def refused(gates: Sequence[Gate], seen: Preview) -> Exit | None:
    """The exit code of the first gate that refuses; None if none does."""
    for gate in gates:
        if (code := await gate(seen)) is not None:
            return code
    return None
