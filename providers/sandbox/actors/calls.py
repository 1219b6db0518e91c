"""Calls: what a simulated kubelet asks of a DRA driver, and what that answers, through the status of the claim's device.

A real kubelet calls its node's plugin over a socket. Here both are clients of the API and nothing else, so a call is the condition
`Prepare` of the device (True: prepare it, False: it is not needed any more), and the answer is the condition `Prepared` with the number
of the call as its `observedGeneration`. A device that is not prepared, and not asked for, has no entry. So everything that has happened
stands in the claim, and either side may be stopped and started at any time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from engine import conditions
from engine.errors import NotFound
from engine.runtime.client import Client
from providers.sandbox.actors.body import Body, key_of, status_of
from providers.sandbox.actors.moments import LONG_AGO, read, written
from providers.sandbox.actors.reflector import Reflection
from providers.sandbox.installation.kinds import DRIVER
from resources.base.kinds import RESOURCE_CLAIM

PREPARE, PREPARED, FABRIC_LOST = "Prepare", "Prepared", "FabricLost"
DONE, UNDER_WAY, FAILED, SKIPPED = "Prepared", "PrepareStarted", "PrepareFailed", "PrepareSkipped"
"""Reasons of `Prepared`: it is; it is being tried; it will not be; it was tried for as long as one call lasts."""
WIDEST: Final = 1000
"""How long the message of a condition is at most."""


@dataclass(frozen=True, slots=True)
class Call:
    """What the kubelet last asked, and what it was told."""

    number: int
    wanted: bool
    since: datetime
    answered: int
    """The number of the call that was answered last; 0: none."""
    reason: str
    message: str
    answered_at: datetime
    is_lost: bool
    """Whether the domain has gone from under a device that is prepared."""

    @property
    def is_answered(self) -> bool:
        """Whether there is a final answer to this very call."""
        return self.answered == self.number and self.reason != UNDER_WAY

    @property
    def is_done(self) -> bool:
        """Whether the device is prepared and stays so."""
        return self.wanted and self.is_answered and self.reason == DONE


def results_of(claim: Body) -> list[Body]:
    """The devices of the driver that the claim has."""
    results = ((status_of(claim).get("allocation") or {}).get("devices") or {}).get("results") or ()
    return [one for one in results if one.get("driver") == DRIVER]


def node_of(claim: Body) -> str:
    """The node whose devices these are; empty where there are none."""
    results = results_of(claim)
    return str(results[0]["pool"]) if results else ""


def call_of(claim: Body) -> Call | None:
    """The call that stands in the claim, if there is one."""
    entry = next((one for one in status_of(claim).get("devices") or () if one.get("driver") == DRIVER), None)
    found = (entry or {}).get("conditions") or ()
    asked, told = conditions.find(found, PREPARE), conditions.find(found, PREPARED) or {}
    if asked is None:
        return None
    return Call(
        number=asked.get("observedGeneration") or 0,
        wanted=asked.get("status") == "True",
        since=read(asked.get("lastTransitionTime")) or LONG_AGO,
        answered=told.get("observedGeneration") or 0,
        reason=told.get("reason") or "",
        message=told.get("message") or "",
        answered_at=read(told.get("lastTransitionTime")) or LONG_AGO,
        is_lost=conditions.is_true(found, FABRIC_LOST),
    )


def asking(number: int, wanted: bool, now: datetime) -> Mapping[str, Any]:
    """The condition that calls."""
    return _condition(PREPARE, wanted, "Needed" if wanted else "NotNeeded", "", now, number)


def answering(number: int, reason: str, message: str, now: datetime) -> Mapping[str, Any]:
    """The condition that answers."""
    return _condition(PREPARED, reason == DONE, reason, message, now, number)


def losing(lost: bool, now: datetime) -> Mapping[str, Any]:
    """The condition that says whether the domain has gone from under the device."""
    return _condition(FABRIC_LOST, lost, "IMEXLost" if lost else "IMEXBack", "", now, 0)


def _condition(type_: str, is_true: bool, reason: str, message: str, now: datetime, number: int) -> Mapping[str, Any]:
    said = {"type": type_, "status": "True" if is_true else "False", "reason": reason, "message": message[:WIDEST]}
    return said | {"lastTransitionTime": written(now)} | ({"observedGeneration": number} if number else {})


async def say(client: Client, claims: Reflection, claim: Body, condition: Mapping[str, Any]) -> None:
    """Put the condition into the status of the claim's device."""
    result = results_of(claim)[0]
    entries = list(status_of(claim).get("devices") or ())
    old: Body = next((one for one in entries if one.get("driver") == DRIVER), {"conditions": ()})
    kept = [one for one in old.get("conditions") or () if one["type"] != condition["type"]]
    entry = {name: result[name] for name in ("driver", "pool", "device")} | {"conditions": [*kept, dict(condition)]}
    await _write(client, claims, claim, [*(one for one in entries if one is not old), entry])


async def clear(client: Client, claims: Reflection, claim: Body) -> None:
    """Take the device's entry away: it is not prepared, and nobody asks."""
    kept = [one for one in status_of(claim).get("devices") or () if one.get("driver") != DRIVER]
    await _write(client, claims, claim, kept)


async def _write(client: Client, claims: Reflection, claim: Body, devices: list[Any]) -> None:
    """Bound to the revision, because the list is replaced as a whole."""
    patch = {"metadata": {"resourceVersion": claim["metadata"]["resourceVersion"]}, "status": {"devices": devices or None}}
    try:
        claims.assume(await client.patch(RESOURCE_CLAIM, *key_of(claim), patch, subresource="status"))
    except NotFound:
        return
