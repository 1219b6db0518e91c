"""Ledger: keeps later passes within what was approved, and remembers what of it has been used."""

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from engine.approval.approval import Allowance, Approval, Deviation, ObjectKey, Recognition, content_digest
from engine.approval.draft import content_of
from engine.ids import ResourceId
from engine.observed import Live, World
from engine.operation import Creation, Delete, Operation, Outcome, Patch, Result
from engine.paths import get
from engine.plan import Plan, Wait
from engine.resource import REPLICAS, Body
from engine.scalers import replicas_of
from engine.tick import Plans
from engine.verb import Verb

WHY = "not in the approved plan"
REMOVING = (Verb.DELETE, Verb.REPLACE, Verb.RELEASE)
"""The verbs that are approved one by one. What others write must look as it was approved."""


class Excess(Struct, frozen=True, eq=False):
    """An operation that was planned and not approved."""

    root: ResourceId
    operation: Operation
    subject: ObjectKey
    then: str
    """What was approved of its object."""

    @property
    def deviation(self) -> Deviation:
        """The operation as a deviation."""
        return Deviation(str(self.subject), self.then, f"{self.operation.verb}: {self.operation.why}")


class Ledger:
    """An approval while it is carried out."""

    def __init__(self, approval: Approval, recognition: Recognition) -> None:
        self.approval = approval
        self._recognition = recognition
        self._allow: Mapping[tuple[Verb, ObjectKey], Allowance] = {(each.verb, each.subject): each for each in approval.allow}
        self._scalers = {each.id: each for each in approval.scalers}
        self._used = Counter[tuple[Verb, ObjectKey]]()
        self._subjects: dict[ResourceId, ObjectKey] = {}
        """The subjects of the operations of the last pass that are counted."""
        self.excess: tuple[Excess, ...] = ()
        """What was planned by the last pass and not approved."""

    def limited(self, world: World, planned: Plans) -> Plans:
        """The plans with what was approved. Everything else in them is deferred as blocked, and in `excess`."""
        self._subjects = {}
        lives = _lives(world)
        left = Counter({use: allowance.times for use, allowance in self._allow.items()})
        left.subtract(self._used)
        excess: list[Excess] = []
        plans = tuple(self._limited(plan, lives, left, excess) for plan in planned.plans)
        self.excess = tuple(excess)
        return replace(planned, plans=plans)

    def note(self, result: Result) -> None:
        """Take note of the outcome of an operation."""
        operation = result.operation
        if result.outcome is Outcome.DONE and operation.verb in REMOVING and operation.id in self._subjects:
            self._used[operation.verb, self._subjects[operation.id]] += 1

    def _limited(self, plan: Plan, lives: Mapping[ResourceId, Live], left: Counter[tuple[Verb, ObjectKey]], excess: list[Excess]) -> Plan:
        waits: dict[str, Wait] = {}
        kept: list[Operation] = []
        for operation in plan.operations:  # Sorted: each operation follows those named in its `after`.
            subject = self._subject(operation, lives.get(operation.id))
            if then := self._refusal(operation, subject, lives.get(operation.id), left):
                excess.append(Excess(plan.root, operation, subject, then))
                waits[operation.key] = Wait(operation.id, f"{WHY}: {operation.verb}: {operation.why}", blocked=True)
            elif first := next((waits[key] for key in sorted(operation.after) if key in waits), None):
                waits[operation.key] = Wait(operation.id, f"comes after {first.id}, which is {WHY}", blocked=True)
            else:
                kept.append(operation)
        return replace(plan, operations=tuple(kept), deferred=(*plan.deferred, *waits.values())) if waits else plan

    def _subject(self, operation: Operation, live: Live | None) -> ObjectKey:
        labels = operation.manifest["metadata"].get("labels") or {} if isinstance(operation, Creation) else live.labels if live else {}
        return self._recognition.subject(operation.id, labels)

    def _refusal(self, operation: Operation, subject: ObjectKey, live: Live | None, left: Counter[tuple[Verb, ObjectKey]]) -> str:
        """What was approved in place of the operation; empty if that is the operation itself."""
        content = content_of(operation)
        if content is not None and (refusal := self._content_refusal(content, subject)):
            return refusal
        if (refusal := self._scaling_refusal(operation, live)) or operation.verb not in REMOVING:
            return refusal
        if isinstance(operation, Delete) and live is not None and self._recognition.has_ended(live):
            return ""
        use = (operation.verb, subject)
        allowance = self._allow.get(use)
        if allowance is None:
            return "not planned"
        if allowance.times == 1 and allowance.uid and operation.expect.uid not in ("", allowance.uid):
            return f"planned for the object with uid {allowance.uid}"
        if left[use] <= 0:
            return f"planned {allowance.times} time{'s' if allowance.times > 1 else ''}, and done"
        left[use] -= 1
        self._subjects[operation.id] = subject
        return ""

    def _scaling_refusal(self, operation: Operation, live: Live | None) -> str:
        """The number of replicas that an object of which another is asked had; empty if it has that, or is not to be given another."""
        known, now = self._scalers.get(operation.id), replicas_of(live)
        if known is None or now in (known.live, known.asked):
            return ""
        if not isinstance(operation, Patch) or get(operation.patch, REPLICAS) is None:
            return ""
        return f"to be scaled from {'none' if known.live is None else known.live}"

    def _content_refusal(self, content: Body, subject: ObjectKey) -> str:
        approved = self.approval.desired.get(subject.text)
        if approved is None:
            return "not planned"
        if content_digest(self._recognition, content) not in approved:
            return "to have other content"
        return ""


def _lives(world: World) -> dict[ResourceId, Live]:
    """Every object that a plan may delete."""
    lives = {live.id: live for observed in world.roots for live in (*observed.looked_up.values(), *observed.lives()) if live is not None}
    lives.update((live.id, live) for live in world.orphans)
    return lives
