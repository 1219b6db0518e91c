"""Devices: what a kubelet sees to before the first container of a pod begins, and after the last one has ended."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from engine.runtime.client import Client
from engine.runtime.clock import Clock
from engine.verdict import Verdict, earliest
from providers.sandbox.actors import calls
from providers.sandbox.actors.body import Body, Key, is_finished, key_of, status_of, uid_of
from providers.sandbox.actors.calls import Call
from providers.sandbox.actors.claimed import asks_for_claims, claims_by_name, is_allocated, is_reserved_for, users_of
from providers.sandbox.actors.reflector import Reflection
from providers.sandbox.actors.telling import warn
from providers.sandbox.installation.kinds import DRIVER

FAILED_PREPARE: Final = "FailedPrepareDynamicResources"
NEXT_SYNC: Final = timedelta(seconds=10)
"""After how long a pod whose devices could not be prepared is tried again."""
PATIENCE: Final = timedelta(seconds=5)
"""After how long a call that nobody takes up means that there is no driver on the node."""


class Devices:
    """The kubelets' side of claims. What was asked and answered stands in the claims themselves."""

    def __init__(self, client: Client, clock: Clock, pods: Reflection, claims: Reflection, termination: float) -> None:
        self._client, self._clock, self._pods, self._claims, self._termination = client, clock, pods, claims, termination
        self._deserted: dict[str, float] = {}
        """Since when a claim has no pod any more, by its uid."""
        self._told: set[tuple[str, str, int, str]] = set()

    async def ready(self, pod: Body) -> Verdict[bool]:
        """Whether all devices of the pod are prepared; asks for those that are not, and tells of those that cannot be."""
        keys = claims_by_name(pod)
        claims = [self._claims.get(*key) for key in keys.values() if key is not None]
        there = [claim for claim in claims if claim is not None and is_allocated(claim) and is_reserved_for(claim, pod)]
        if len(there) < len(keys):
            return Verdict(False)
        verdicts = [await self._prepared(pod, claim) for claim in there if calls.results_of(claim)]
        return Verdict(all(one.value for one in verdicts), until=earliest(one.until for one in verdicts))

    async def _prepared(self, pod: Body, claim: Body) -> Verdict[bool]:
        call, now = calls.call_of(claim), self._clock.now().replace(microsecond=0)
        if call is None:
            return await self._ask(claim, 1, now)
        if not call.wanted or call.is_done:
            return Verdict(call.is_done)
        if call.answered == call.number and not call.is_answered:
            return Verdict(False)  # Under way.
        if not call.is_answered:
            if now >= call.since + PATIENCE:
                await self._tell(pod, claim, call, f"DRA driver {DRIVER} is not registered")
                return Verdict(False)
            return Verdict(False, until=call.since + PATIENCE)
        await self._tell(pod, claim, call, _reason(claim, call))
        if now >= call.answered_at + NEXT_SYNC:
            return await self._ask(claim, call.number + 1, now)
        return Verdict(False, until=call.answered_at + NEXT_SYNC)

    async def _ask(self, claim: Body, number: int, now: datetime) -> Verdict[bool]:
        await calls.say(self._client, self._claims, claim, calls.asking(number, True, now))
        return Verdict(False, until=now + PATIENCE)

    async def _tell(self, pod: Body, claim: Body, call: Call, why: str) -> None:
        """Once for each call."""
        what = (uid_of(pod), uid_of(claim), call.number, why)
        if what not in self._told:
            self._told.add(what)
            message = f"Failed to prepare dynamic resources: prepare dynamic resources: {why}"
            host = pod["spec"].get("nodeName", "")
            await warn(self._client, self._clock, pod, FAILED_PREPARE, message, component="kubelet", host=host)

    def is_lost(self, pod: Body) -> bool:
        """Whether a domain has gone from under the pod."""
        return any(call.is_lost for claim in self._of(pod) if (call := calls.call_of(claim)) is not None)

    def holds_devices(self, pod: Body) -> bool:
        """Whether there are devices that only this pod still needs, and that are prepared or being prepared."""
        return any(self._is_last(claim, pod) for claim in self._of(pod) if calls.call_of(claim) is not None)

    async def give_back(self, pod: Body) -> None:
        """Say of the devices that only this pod needed that they are not needed any more."""
        for claim in self._of(pod):
            if self._is_last(claim, pod):
                await self._release(claim)

    async def look(self, key: Key) -> float | None:
        """A claim whose pods have all vanished by force is needed for as long as it takes to stop the containers that they had."""
        claim = self._claims.get(*key)
        call = calls.call_of(claim) if claim is not None else None
        if claim is None or call is None or not call.wanted or any(self._lives(pod, claim) for pod in users_of(claim)):
            if claim is not None:
                self._deserted.pop(uid_of(claim), None)
            return None
        now = self._clock.monotonic()
        left = self._deserted.setdefault(uid_of(claim), now) + self._termination - now
        if left > 0:
            return left
        del self._deserted[uid_of(claim)]
        await self._release(claim)
        return None

    async def _release(self, claim: Body) -> None:
        call = calls.call_of(claim)
        if call is None or not call.wanted or not calls.results_of(claim):
            return
        if not call.answered:
            await calls.clear(self._client, self._claims, claim)  # No driver has ever taken it up, so there is nobody to tell.
        else:
            await calls.say(self._client, self._claims, claim, calls.asking(call.number, False, self._clock.now()))

    def _is_last(self, claim: Body, pod: Body) -> bool:
        return is_reserved_for(claim, pod) and not any(self._lives(key, claim) for key in users_of(claim) if key != key_of(pod))

    def _lives(self, key: Key, claim: Body) -> bool:
        pod = self._pods.get(*key)
        return pod is not None and is_reserved_for(claim, pod) and not is_finished(pod)

    def _of(self, pod: Body) -> Iterable[Body]:
        if asks_for_claims(pod):
            found = [self._claims.get(*key) for key in claims_by_name(pod).values() if key is not None]
            yield from (claim for claim in found if claim is not None)


def has_begun(pod: Body) -> bool:
    """Whether any container of the pod ever ran."""
    status = status_of(pod)
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return any(not (one.get("state") or {}).keys() <= {"waiting"} or one.get("lastState") for one in containers)


def _reason(claim: Body, call: Call) -> str:
    """The driver leaves out a claim that it ran out of time for, and with it the cause."""
    if call.reason == calls.SKIPPED:
        return "NodePrepareResources skipped 1 ResourceClaims"
    return f"NodePrepareResources failed for ResourceClaim {claim['metadata']['name']}: {call.message}"
