"""Trial: the server checks the operations of a pass without storing them, with its own rules and the webhooks of others."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from engine.errors import ClusterError, Forbidden, RefusedBy
from engine.ids import ResourceId
from engine.operation import Operation, Replace, Unknown, WriteStatus
from engine.plan import Wait
from engine.report.alike import steps_alike
from engine.report.model import Report
from engine.runtime.provider import Provider, TryingProvider
from enginectl.base.exit_codes import UsageError
from resources.preview.facts import TrialResult

MAX_CALLS: Final = 50
"""How many operations are tried; of operations that are alike, one is."""
NEW_OWNER: Final = "00000000-0000-0000-0000-000000000000"
"""Stands for the uid of an owner that does not exist yet: servers do not look it up."""


class _Answers(Struct):
    """What the server has said so far."""

    refused: dict[ResourceId, list[Wait]] = field(default_factory=dict)
    notes: dict[ResourceId, list[str]] = field(default_factory=dict)

    def result(self) -> TrialResult:
        """All of it."""
        refused = {root: tuple(waits) for root, waits in self.refused.items()}
        return TrialResult(refused, {root: tuple(notes) for root, notes in self.notes.items()})


async def try_out(provider: Provider, report: Report) -> TrialResult:
    """Try one operation of each group of alike ones, at most `MAX_CALLS`; nothing is stored. Raises `UsageError` if that cannot be."""
    trying = provider.trying() if isinstance(provider, TryingProvider) else None
    if trying is None:
        raise UsageError("--server-dry-run asks the API server: it needs a cluster")
    result, calls = _Answers(), 0
    for root in report.roots:
        for group in steps_alike(root.steps):
            operation = group[0].operation
            if isinstance(operation, WriteStatus):
                continue
            if calls == MAX_CALLS:
                result.notes.setdefault(root.root, []).append(f"--server-dry-run: only the first {MAX_CALLS} operations were tried")
                return result.result()
            calls += 1
            await _try(trying, root.root, operation, len(group), result)
    return result.result()


async def _try(trying: Provider, root: ResourceId, operation: Operation, alike: int, result: _Answers) -> None:
    if isinstance(operation, Replace):
        result.notes.setdefault(root, []).append(f"--server-dry-run: {operation.id} is replaced, which cannot be tried")
        return
    more = f" ({alike - 1} more like it)" if alike > 1 else ""
    try:
        await trying.execute(operation, _uids((operation,)))
    except Forbidden as error:
        if error.by is RefusedBy.AUTHORIZATION:
            result.notes.setdefault(root, []).append(f"--server-dry-run: {operation.id} could not be tried: {error}")
        else:
            result.refused.setdefault(root, []).append(_refusal(operation, f"{error}{more}"))
    except ClusterError as error:
        result.refused.setdefault(root, []).append(_refusal(operation, f"{error}{more}"))


def _refusal(operation: Operation, message: str) -> Wait:
    return Wait(operation.id, f"the API server would refuse to {operation.verb} it: {message}", blocked=True)


def _uids(operations: Sequence[Operation]) -> Mapping[ResourceId, str]:
    """The owners that do not exist yet, each with a uid that stands for its own."""
    owners: Iterable[Unknown] = (bound.uid for each in operations for bound in each.owners if isinstance(bound.uid, Unknown))
    return {owner.id: NEW_OWNER for owner in owners}
