"""Prepare calls: NodePrepareResources and NodeUnprepareResources between a simulated kubelet and the DRA driver, in the claim's status.

A real kubelet calls the driver's plugin over a socket. Here both are clients of the API only: the call is the condition `Prepare` of the
allocated device (True: prepare it, False: unprepare it), the answer the condition `Prepared` with the number of the call as its
`observedGeneration`. A device without an entry is neither prepared nor requested. Either side can be restarted at any time.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from grove_sandbox.actors.body import LONG_AGO, Body, parse_time, status_of, timestamp
from grove_sandbox.actors.claim_fields import allocation_results
from grove_sandbox.actors.store import InformerStore
from grove_sandbox.product import Client, NotFound, conditions, nvidia

PREPARE, PREPARED, FABRIC_LOST = "Prepare", "Prepared", "FabricLost"
DONE, IN_PROGRESS, FAILED, SKIPPED = "Prepared", "PrepareStarted", "PrepareFailed", "PrepareSkipped"
"""Reasons of `Prepared`: success; still trying; failed for good; not done within the time of one call."""
MAX_MESSAGE: Final = 1000
"""Characters of the message of a condition."""


class PrepareCall(Struct, frozen=True):
    """The last call for the device of a claim, and the answer to it."""

    number: int
    is_prepare: bool
    """False: the call is to unprepare the device."""
    since: datetime
    answered: int
    """The number of the call that was answered last; 0: none."""
    reason: str
    message: str
    answered_at: datetime
    is_fabric_lost: bool
    """Whether the domain is gone while the device is prepared."""

    @property
    def is_answered(self) -> bool:
        """Whether there is a final answer to this call."""
        return self.answered == self.number and self.reason != IN_PROGRESS

    @property
    def is_done(self) -> bool:
        """Whether the device is prepared."""
        return self.is_prepare and self.is_answered and self.reason == DONE


def results_of(claim: Body) -> list[Body]:
    """The allocated devices of the driver."""
    return [result for result in allocation_results(claim) if result.get("driver") == nvidia.DRIVER]


def node_of(claim: Body) -> str:
    """The node of the driver's devices; empty if none are allocated."""
    results = results_of(claim)
    return str(results[0]["pool"]) if results else ""


def call_of(claim: Body) -> PrepareCall | None:
    """The last call for the claim's device; None if there was none."""
    entry = next((entry for entry in status_of(claim).get("devices") or () if entry.get("driver") == nvidia.DRIVER), None)
    device_conditions = (entry or {}).get("conditions") or ()
    prepare, prepared = conditions.find(device_conditions, PREPARE), conditions.find(device_conditions, PREPARED) or {}
    if prepare is None:
        return None
    return PrepareCall(
        number=prepare.get("observedGeneration") or 0,
        is_prepare=prepare.get("status") == "True",
        since=parse_time(prepare.get("lastTransitionTime")) or LONG_AGO,
        answered=prepared.get("observedGeneration") or 0,
        reason=prepared.get("reason") or "",
        message=prepared.get("message") or "",
        answered_at=parse_time(prepared.get("lastTransitionTime")) or LONG_AGO,
        is_fabric_lost=conditions.is_true(device_conditions, FABRIC_LOST),
    )


def prepare_condition(number: int, is_prepare: bool, now: datetime) -> Mapping[str, Any]:
    """The condition that is the call."""
    return _condition(PREPARE, is_prepare, "Needed" if is_prepare else "NotNeeded", "", now, number)


def prepared_condition(number: int, reason: str, message: str, now: datetime) -> Mapping[str, Any]:
    """The condition that is the answer."""
    return _condition(PREPARED, reason == DONE, reason, message, now, number)


def fabric_lost_condition(is_lost: bool, now: datetime) -> Mapping[str, Any]:
    """The condition that says whether the domain is gone."""
    return _condition(FABRIC_LOST, is_lost, "IMEXLost" if is_lost else "IMEXBack", "", now, 0)


def _condition(type_: str, is_true: bool, reason: str, message: str, now: datetime, number: int) -> Mapping[str, Any]:
    return conditions.condition(type_, is_true, reason, message[:MAX_MESSAGE], generation=number or None, at=timestamp(now))


async def set_condition(client: Client, claims: InformerStore, claim: Body, condition: Mapping[str, Any]) -> None:
    """Write the condition into the status of the claim's device."""
    result = results_of(claim)[0]
    entries = list(status_of(claim).get("devices") or ())
    old: Body = next((entry for entry in entries if entry.get("driver") == nvidia.DRIVER), {"conditions": ()})
    others = [other for other in old.get("conditions") or () if other["type"] != condition["type"]]
    entry = {name: result[name] for name in ("driver", "pool", "device")} | {"conditions": [*others, dict(condition)]}
    await _write(client, claims, claim, [*(other for other in entries if other is not old), entry])


async def clear(client: Client, claims: InformerStore, claim: Body) -> None:
    """Remove the entry of the claim's device: it is not prepared, and no call is under way."""
    await _write(client, claims, claim, [entry for entry in status_of(claim).get("devices") or () if entry.get("driver") != nvidia.DRIVER])


async def _write(client: Client, claims: InformerStore, claim: Body, devices: list[Any]) -> None:
    """Bound to the revision, because the list is replaced as a whole."""
    with suppress(NotFound):
        await claims.patch(client, claim, {"status": {"devices": devices or None}}, subresource="status")
