"""Intent: what a command asks for, beyond what the roots in the cluster say."""

from collections.abc import Mapping

from msgspec import Struct, field

from engine.focus import EVERYTHING, Focus
from engine.ids import ResourceId
from engine.memo import Memo
from engine.record import Record, Removal
from engine.resource import Body


class Intent(Struct, frozen=True, eq=False):
    """What a preview or a sync is about; `engine run` asks for nothing of its own."""

    manifests: tuple[Body, ...] = ()
    """Root manifests that are applied first."""
    focus: Focus = EVERYTHING
    """The roots that it concerns: only they are planned, written and waited for."""
    removals: Mapping[ResourceId, Removal] = field(default_factory=dict)
    """The roots that are removed, and why. They are in the focus."""
    record: Record | None = None
    """Where it is noted what the command works on; None: nowhere."""
    memo: Memo = field(default_factory=Memo)
    """What has been read from the manifests and the roots before, and need not be read again. Passes begin with it and do not change it."""


NOTHING = Intent()
