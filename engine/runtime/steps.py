"""Steps: the operations of a plan that is being carried out, linked by their edges."""

from msgspec import Struct, field

from engine.ids import ResourceId
from engine.observed import Live
from engine.operation import Operation, Outcome, Patch, Result, WriteStatus
from engine.plan import Plan
from engine.runtime.turns import BURST


class SentPlan(Struct, eq=False):
    """A plan that is being carried out, and how far it is."""

    plan: Plan
    begin_until: float
    """The monotonic time after which it is not begun any more."""
    may_wait: bool
    """Whether the next pass may carry it out as well as this one: nothing of it was sent yet, and not all of it are statuses."""
    open: int
    """How many steps have no result yet."""
    unreported: int
    """How many of them write no status."""
    sending: int = 0
    """How many of them are being sent."""
    is_dropped: bool = False
    """Whether nothing more of it is sent."""
    reports: list["SentStep"] = field(default_factory=list)
    """The statuses that are ready to be written before everything else is done."""
    uids: dict[ResourceId, str] = field(default_factory=dict)
    """The uids of the objects that the plan has created."""
    results: list[Result] = field(default_factory=list)
    own_edits: int = 0
    """How many edits of its root were recognised as its own: it adds defaults to the spec."""

    def note_edit(self, old: Live, new: Live) -> bool:
        """Whether another writer has edited its root between these two observations, or it is another object, or is being deleted now.

        Its own patch was bound to the revision that it was planned for, so the next generation is the one that it has made.
        """
        if not is_edited(old, new):
            return False
        is_own = self._has_edited and not is_edited(old, new, own_edits=1)
        self.own_edits += is_own
        return not is_own

    @property
    def _has_edited(self) -> bool:
        """Whether it has edited its root, and that edit was not recognised yet."""
        done = (result.operation for result in self.results if result.outcome is Outcome.DONE and result.operation.id == self.plan.root)
        return sum(isinstance(operation, Patch) and "spec" in operation.patch for operation in done) > self.own_edits

    @property
    def is_long(self) -> bool:
        """Whether it takes more than one turn."""
        return is_long(self.plan)


class SentStep(Struct, eq=False):
    """An operation, the number of steps that must be done before it, and the steps that come after it."""

    operation: Operation
    plan: SentPlan
    missing: int = 0
    dependents: list["SentStep"] = field(default_factory=list)
    skipped: bool = False
    taken: bool = False
    """Whether it is being sent, or was."""

    @property
    def is_report(self) -> bool:
        """Whether it writes a status."""
        return isinstance(self.operation, WriteStatus)


def is_edited(old: Live, new: Live, own_edits: int = 0) -> bool:
    """Whether a root is another object than it was, was edited more often than by us, or is being deleted now."""
    was = old.uid, old.generation + own_edits, old.deleting_since is None
    return was != (new.uid, new.generation, new.deleting_since is None)


def is_long(plan: Plan) -> bool:
    """Whether a plan takes more than one turn."""
    return len(plan.operations) > BURST


def steps_of(plan: Plan, begin_until: float) -> list[SentStep]:
    """The operations of a plan, linked by their edges."""
    others = sum(not isinstance(operation, WriteStatus) for operation in plan.operations)
    sent = SentPlan(plan, begin_until, may_wait=others > 0, open=len(plan.operations), unreported=others)
    steps = {operation.key: SentStep(operation, sent) for operation in plan.operations}
    for step in steps.values():
        for before in (steps[key] for key in step.operation.after if key in steps):
            before.dependents.append(step)
            step.missing += 1
    return list(steps.values())
