"""DraManager: prepares the devices of ResourceClaims before a pod's first container starts, and unprepares them after the last ends."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from grove_sandbox.actors import prepare_calls
from grove_sandbox.actors.body import Body, Key, is_finished, key_of, status_of, uid_of
from grove_sandbox.actors.claim_fields import claims_by_name, claims_of, is_allocated, is_reserved_for, pods_of
from grove_sandbox.actors.event_recorder import record_warning
from grove_sandbox.actors.prepare_calls import PrepareCall
from grove_sandbox.actors.store import InformerStore
from grove_sandbox.product import Client, Clock, Verdict, earliest, nvidia

FAILED_PREPARE: Final = "FailedPrepareDynamicResources"
RETRY_AFTER: Final = timedelta(seconds=10)
"""The time after which a failed call is repeated."""
REGISTRATION_TIMEOUT: Final = timedelta(seconds=5)
"""The time after which a call without an answer means that no driver is registered on the node."""


class DraManager:
    """The DRA managers of all simulated kubelets. Calls and answers are kept in the claims."""

    def __init__(self, client: Client, clock: Clock, pods: InformerStore, claims: InformerStore, termination: float) -> None:
        self._client, self._clock, self._pods, self._claims, self._termination = client, clock, pods, claims, termination
        self._unused_since: dict[str, float] = {}
        """Since when a claim has no pod, by its uid."""
        self._recorded: set[tuple[str, str, int, str]] = set()

    async def prepare(self, pod: Body) -> Verdict[bool]:
        """Whether all devices of the pod are prepared. Calls the driver for those that are not, and records failures as events."""
        keys = claims_by_name(pod)
        claims = [claim for claim in self._claims_of(pod) if is_allocated(claim) and is_reserved_for(claim, pod)]
        if len(claims) < len(keys):
            return Verdict(False)
        verdicts = [await self._prepare_claim(pod, claim) for claim in claims if prepare_calls.results_of(claim)]
        return Verdict(all(verdict.value for verdict in verdicts), until=earliest(verdict.until for verdict in verdicts))

    async def _prepare_claim(self, pod: Body, claim: Body) -> Verdict[bool]:
        call, now = prepare_calls.call_of(claim), self._clock.now().replace(microsecond=0)
        if call is None:
            return await self._call(claim, 1, now)
        if not call.is_prepare or call.is_done:
            return Verdict(call.is_done)
        if call.answered == call.number and not call.is_answered:
            return Verdict(False)  # The driver is still trying.
        if not call.is_answered:
            if now >= call.since + REGISTRATION_TIMEOUT:
                await self._record_failure(pod, claim, call, f"DRA driver {nvidia.DRIVER} is not registered")
                return Verdict(False)
            return Verdict(False, until=call.since + REGISTRATION_TIMEOUT)
        await self._record_failure(pod, claim, call, _failure_of(claim, call))
        if now >= call.answered_at + RETRY_AFTER:
            return await self._call(claim, call.number + 1, now)
        return Verdict(False, until=call.answered_at + RETRY_AFTER)

    async def _call(self, claim: Body, number: int, now: datetime) -> Verdict[bool]:
        await prepare_calls.set_condition(self._client, self._claims, claim, prepare_calls.prepare_condition(number, True, now))
        return Verdict(False, until=now + REGISTRATION_TIMEOUT)

    async def _record_failure(self, pod: Body, claim: Body, call: PrepareCall, failure: str) -> None:
        """Once for each call."""
        event = (uid_of(pod), uid_of(claim), call.number, failure)
        if event not in self._recorded:
            self._recorded.add(event)
            message = f"Failed to prepare dynamic resources: prepare dynamic resources: {failure}"
            host = pod["spec"].get("nodeName", "")
            await record_warning(self._client, self._clock, pod, FAILED_PREPARE, message, component="kubelet", host=host)

    def is_fabric_lost(self, pod: Body) -> bool:
        """Whether a domain of the pod is gone while the pod runs."""
        calls = map(prepare_calls.call_of, self._claims_of(pod))
        return any(call.is_fabric_lost for call in calls if call is not None)

    def has_own_devices(self, pod: Body) -> bool:
        """Whether devices are prepared, or being prepared, that no other pod uses."""
        return any(self._is_only_user(pod, claim) for claim in self._claims_of(pod) if prepare_calls.call_of(claim) is not None)

    async def unprepare(self, pod: Body) -> None:
        """Unprepare the devices that no other pod uses."""
        for claim in self._claims_of(pod):
            if self._is_only_user(pod, claim):
                await self._unprepare_claim(claim)

    async def process_claim(self, key: Key) -> float | None:
        """Unprepare a claim whose pods were all force-deleted, after the time that stopping their containers takes."""
        claim = self._claims.get(*key)
        if claim is None:
            return None
        call = prepare_calls.call_of(claim)
        if call is None or not call.is_prepare or any(self._is_active(pod, claim) for pod in pods_of(claim)):
            self._unused_since.pop(uid_of(claim), None)
            return None
        now = self._clock.monotonic()
        remaining = self._unused_since.setdefault(uid_of(claim), now) + self._termination - now
        if remaining > 0:
            return remaining
        del self._unused_since[uid_of(claim)]
        await self._unprepare_claim(claim)
        return None

    async def _unprepare_claim(self, claim: Body) -> None:
        call = prepare_calls.call_of(claim)
        if call is None or not call.is_prepare or not prepare_calls.results_of(claim):
            return
        if not call.answered:
            await prepare_calls.clear(self._client, self._claims, claim)  # No driver has ever answered, so none has to unprepare it.
        else:
            condition = prepare_calls.prepare_condition(call.number, False, self._clock.now())
            await prepare_calls.set_condition(self._client, self._claims, claim, condition)

    def _is_only_user(self, pod: Body, claim: Body) -> bool:
        return is_reserved_for(claim, pod) and not any(self._is_active(key, claim) for key in pods_of(claim) if key != key_of(pod))

    def _is_active(self, key: Key, claim: Body) -> bool:
        pod = self._pods.get(*key)
        return pod is not None and is_reserved_for(claim, pod) and not is_finished(pod)

    def _claims_of(self, pod: Body) -> Iterator[Body]:
        return (claim for key in claims_of(pod) if (claim := self._claims.get(*key)) is not None)


def has_started(pod: Body) -> bool:
    """Whether any container of the pod has ever run."""
    status = status_of(pod)
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return any(not (container.get("state") or {}).keys() <= {"waiting"} or container.get("lastState") for container in containers)


def _failure_of(claim: Body, call: PrepareCall) -> str:
    """The message of a failed call. A claim that the driver skipped for lack of time is missing in its answer, and with it the cause."""
    if call.reason == prepare_calls.SKIPPED:
        return "NodePrepareResources skipped 1 ResourceClaims"
    return f"NodePrepareResources failed for ResourceClaim {claim['metadata']['name']}: {call.message}"
