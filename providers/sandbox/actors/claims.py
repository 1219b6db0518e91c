"""Claims: ResourceClaims made from templates for the pods that ask, gated or not, and taken back when those are gone.

Devices that a driver has published are allocated by the scheduler; those that nobody publishes are made up here, where the pods run.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import anyio

from engine.errors import AlreadyExists, ClusterError, NotFound
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.allocation import is_simulated, made_up
from providers.sandbox.actors.body import Body, Key, is_deleting, is_finished, key_of, status_of, uid_of
from providers.sandbox.actors.claimed import claims_of, is_allocated, reservation
from providers.sandbox.actors.claiming import PROTECTION
from providers.sandbox.actors.inventory import Inventory
from providers.sandbox.actors.reflector import Reflection, reflect
from providers.sandbox.actors.settings import Settings
from providers.sandbox.actors.telling import warn
from resources.base.kinds import POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE

FOR: Final = "resource.kubernetes.io/pod-claim-name"
"""On a claim made from a template: which of the pod's claims it is."""
FAILED_CREATION: Final = "FailedResourceClaimCreation"
FIRST_RETRY, LAST_RETRY = 0.005, 1000.0
"""Seconds until a pod whose template is missing is tried again, at first and at most, unless it changes itself."""
LONGEST_BASE: Final = 57
"""What of a generated name the server leaves to whoever asks for it, the last hyphen included."""
NOTHING: Final = {"allocation": None, "devices": None}


class NoTemplate(ClusterError):
    """A pod asks for a claim that there is no template for."""


async def run(client: Client, clock: Clock, settings: Settings) -> None:
    """Make, allocate, reserve and release claims."""
    await Claims(client, clock).run()


class Claims:
    """What the actor knows: pods, claims, templates, and which pods use which claim. All of it can be read anew from the API."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._pod_agenda: Agenda[Key] = Agenda(clock, first=FIRST_RETRY, last=LAST_RETRY)
        self._claim_agenda: Agenda[Key] = Agenda(clock)
        self._pods = Reflection(POD, self._saw_pod)
        self._claims = Reflection(RESOURCE_CLAIM, lambda key, old, new: self._claim_agenda.add(key))
        self._inventory = Inventory(self._reconsider)
        self._users: dict[Key, dict[Key, None]] = {}

    async def run(self) -> None:
        """Serve, for ever."""
        async with anyio.create_task_group() as tasks:
            followed = (self._pods, self._claims, self._inventory.classes, self._inventory.slices)
            tasks.start_soon(reflect, self._client, self._clock, *followed)
            # Whether a reservation's pod is gone can only be said once the pods have been listed.
            for seen in followed:
                await seen.synced.wait()
            tasks.start_soon(self._pod_agenda.work, self._look_at_pod)
            tasks.start_soon(self._claim_agenda.work, self._look_at_claim)

    def _saw_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        before, after = claims_of(old), claims_of(new)
        for claim in before:
            self._users.get(claim, {}).pop(key, None)
        for claim in after:
            self._users.setdefault(claim, {})[key] = None
        for claim in (*before, *after):
            self._claim_agenda.add(claim)
        if new is not None and new["spec"].get("resourceClaims"):
            self._pod_agenda.add(key)

    def _reconsider(self) -> None:
        """Devices may be real now that were not before, or the other way round."""
        for key in self._claims.objects:
            self._claim_agenda.add(key)

    async def _look_at_pod(self, key: Key) -> None:
        """Make the claims that the pod's spec asks for by template, and tell the pod what they are called."""
        pod = self._pods.get(*key)
        if pod is None or is_deleting(pod) or is_finished(pod):
            return
        asked = [one for one in pod["spec"].get("resourceClaims") or () if one.get("resourceClaimTemplateName")]
        told = {one["name"] for one in status_of(pod).get("resourceClaimStatuses") or ()}
        made = [
            {"name": one["name"], "resourceClaimName": _claim_name(pod, one["name"])}
            for one in asked
            if one["name"] not in told and await self._make(pod, one)
        ]
        if made:
            patch = {"metadata": {"uid": uid_of(pod)}, "status": {"resourceClaimStatuses": made}}
            self._pods.assume(await self._client.patch(POD, *key, patch, how="strategic", subresource="status"))
        if len(made) < len([one for one in asked if one["name"] not in told]):
            raise NoTemplate("a template of claims is missing")

    async def _make(self, pod: Body, asked: Body) -> bool:
        namespace, name = pod["metadata"]["namespace"], asked["resourceClaimTemplateName"]
        try:
            # Asked for each time: nobody watches templates, and one that comes late is found when the pod is tried again.
            template = await self._client.get(RESOURCE_CLAIM_TEMPLATE, namespace, name)
        except NotFound:
            why = f'PodResourceClaim {asked["name"]}: failed to create: resourceclaimtemplate.resource.k8s.io "{name}" not found'
            await warn(self._client, self._clock, pod, FAILED_CREATION, why, component="resource_claim")
            return False
        try:
            await self._client.create(RESOURCE_CLAIM, namespace, _generated(pod, asked["name"], template))
        except AlreadyExists:
            # The name says whose it is: an earlier attempt of ours, whose answer was lost.
            return True
        return True

    async def _look_at_claim(self, key: Key) -> None:
        claim = self._claims.get(*key)
        if claim is None:
            return
        if self._belongs_to_the_past(claim) and not is_deleting(claim):
            await self._delete(claim)
        reserved = self._reserved(claim)
        status = status_of(claim)
        if reserved and not status.get("allocation") and is_simulated(claim, self._inventory):
            if not is_deleting(claim):
                await self._allocate(claim, reserved)
        elif reserved != list(status.get("reservedFor") or ()):
            await self._patch(claim, {"reservedFor": reserved or None, **({} if reserved else NOTHING)}, subresource="status")
        elif not reserved and not status.get("allocation") and PROTECTION in _finalizers(claim):
            await self._protect(claim, [one for one in _finalizers(claim) if one != PROTECTION])

    def _reserved(self, claim: Body) -> list[dict[str, Any]]:
        """The pods that use the claim: those it is reserved for and which still live, and those that have been bound since."""
        users = [self._pods.objects[key] for key in self._users.get(key_of(claim), ())]
        living = {uid_of(pod): pod for pod in users if not is_finished(pod)}
        kept = [one for one in status_of(claim).get("reservedFor") or () if one["uid"] in living or one["resource"] != "pods"]
        known = {one["uid"] for one in kept}
        bound = [pod for uid, pod in living.items() if uid not in known and pod["spec"].get("nodeName") and not is_deleting(pod)]
        # A bound pod without its devices is nobody's but the scheduler's fault, and only made-up ones can be had here.
        return kept + [reservation(pod) for pod in bound if is_allocated(claim) or is_simulated(claim, self._inventory)]

    def _belongs_to_the_past(self, claim: Body) -> bool:
        """Whether it was made for a pod that has finished. One whose pod is gone is the garbage collector's."""
        owner = next(
            (one for one in claim["metadata"].get("ownerReferences") or () if one["kind"] == "Pod" and one.get("controller")), None
        )
        pod = self._pods.get(claim["metadata"]["namespace"], owner["name"]) if owner else None
        return owner is not None and pod is not None and uid_of(pod) == owner["uid"] and is_finished(pod)

    async def _allocate(self, claim: Body, reserved: list[dict[str, Any]]) -> None:
        if PROTECTION not in _finalizers(claim):
            # Protection first: an allocated claim must not go away under its pod. The change brings us back here.
            return await self._protect(claim, [*_finalizers(claim), PROTECTION])
        first = self._pods.objects[claim["metadata"]["namespace"], reserved[0]["name"]]
        await self._patch(claim, {"allocation": made_up(claim, first["spec"]["nodeName"]), "reservedFor": reserved}, subresource="status")

    async def _protect(self, claim: Body, finalizers: Iterable[str]) -> None:
        metadata = {"resourceVersion": claim["metadata"]["resourceVersion"], "finalizers": list(finalizers) or None}
        self._claims.assume(await self._client.patch(RESOURCE_CLAIM, *key_of(claim), {"metadata": metadata}))

    async def _patch(self, claim: Body, status: Mapping[str, Any], *, subresource: str) -> None:
        patch = {"metadata": {"resourceVersion": claim["metadata"]["resourceVersion"]}, "status": status}
        self._claims.assume(await self._client.patch(RESOURCE_CLAIM, *key_of(claim), patch, subresource=subresource))

    async def _delete(self, claim: Body) -> None:
        try:
            await self._client.delete(RESOURCE_CLAIM, *key_of(claim), uid=uid_of(claim))
        except NotFound:
            return


def _claim_name(pod: Body, claim: str) -> str:
    """Five characters after a base that fits; a repeated attempt arrives at them again, and no other pod does."""
    name = pod["metadata"]["name"]
    digest = hashlib.sha256(f"{uid_of(pod)}/{claim}".encode()).hexdigest()[:5]
    length = len(name) + len(claim) + 2
    if length <= LONGEST_BASE:
        return f"{name}-{claim}-{digest}"
    # Both parts are cut in proportion, and the last hyphen with them.
    return f"{name[: len(name) * LONGEST_BASE // length]}-{claim[: len(claim) * LONGEST_BASE // length]}{digest}"


def _generated(pod: Body, claim: str, template: Body) -> dict[str, Any]:
    inherited = template["spec"].get("metadata") or {}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": uid_of(pod),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        "name": _claim_name(pod, claim),
        "namespace": pod["metadata"]["namespace"],
        "labels": inherited.get("labels") or {},
        "annotations": {**(inherited.get("annotations") or {}), FOR: claim},
        "ownerReferences": [owner],
    }
    return {"apiVersion": RESOURCE_CLAIM.api_version, "kind": RESOURCE_CLAIM.name, "metadata": metadata, "spec": template["spec"]["spec"]}


def _finalizers(claim: Body) -> list[str]:
    return list(claim["metadata"].get("finalizers") or ())
