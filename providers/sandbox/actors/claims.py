"""Claims: ResourceClaims made from templates for the pods that ask, allocated where the pods run, and taken back when they are gone."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import anyio

from engine.errors import AlreadyExists, NotFound
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.allocation import allocation
from providers.sandbox.actors.body import Body, Key, is_deleting, is_finished, key_of, status_of, uid_of
from providers.sandbox.actors.reflector import Reflection, reflect
from providers.sandbox.actors.settings import Settings
from resources.kinds import POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE

FOR: Final = "resource.kubernetes.io/pod-claim-name"
"""On a claim made from a template: which of the pod's claims it is."""
PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""Keeps a claim while it is allocated."""


async def run(client: Client, clock: Clock, settings: Settings) -> None:
    """Make, allocate, reserve and release claims."""
    await Claims(client, clock).run()


class Claims:
    """What the actor knows: pods, claims, templates, and which pods use which claim. All of it can be read anew from the API."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._pod_agenda: Agenda[Key] = Agenda(clock)
        self._claim_agenda: Agenda[Key] = Agenda(clock)
        self._pods = Reflection(POD, self._saw_pod)
        self._claims = Reflection(RESOURCE_CLAIM, lambda key, old, new: self._claim_agenda.add(key))
        self._templates = Reflection(RESOURCE_CLAIM_TEMPLATE, self._saw_template)
        self._users: dict[Key, dict[Key, None]] = {}
        self._lacking: dict[Key, dict[Key, None]] = {}
        """Pods by the template that they wait for."""

    async def run(self) -> None:
        """Serve, for ever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reflect, self._client, self._clock, self._pods, self._claims, self._templates)
            # Whether a reservation's pod is gone can only be said once the pods have been listed.
            for seen in (self._pods, self._claims):
                await seen.synced.wait()
            tasks.start_soon(self._pod_agenda.work, self._look_at_pod)
            tasks.start_soon(self._claim_agenda.work, self._look_at_claim)

    def _saw_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        before, after = _claims_of(old), _claims_of(new)
        for claim in before:
            self._users.get(claim, {}).pop(key, None)
        for claim in after:
            self._users.setdefault(claim, {})[key] = None
        for claim in (*before, *after):
            self._claim_agenda.add(claim)
        if new is not None and new["spec"].get("resourceClaims"):
            self._pod_agenda.add(key)

    def _saw_template(self, key: Key, old: Body | None, new: Body | None) -> None:
        for pod in self._lacking.pop(key, ()):
            self._pod_agenda.add(pod)

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

    async def _make(self, pod: Body, asked: Body) -> bool:
        namespace = pod["metadata"]["namespace"]
        template = self._templates.get(namespace, asked["resourceClaimTemplateName"])
        if template is None:
            self._lacking.setdefault((namespace, asked["resourceClaimTemplateName"]), {})[key_of(pod)] = None
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
        if reserved and not status.get("allocation"):
            if not is_deleting(claim):
                await self._allocate(claim, reserved)
        elif reserved != list(status.get("reservedFor") or ()):
            await self._patch(claim, {"reservedFor": reserved or None, **({} if reserved else {"allocation": None})}, subresource="status")
        elif not reserved and not status.get("allocation") and PROTECTION in _finalizers(claim):
            await self._protect(claim, [one for one in _finalizers(claim) if one != PROTECTION])

    def _reserved(self, claim: Body) -> list[dict[str, Any]]:
        """The pods that use the claim: those it is reserved for and which still live, and those that have been bound since."""
        users = [self._pods.objects[key] for key in self._users.get(key_of(claim), ())]
        living = {uid_of(pod): pod for pod in users if pod["spec"].get("nodeName") and not is_finished(pod)}
        kept = [one for one in status_of(claim).get("reservedFor") or () if one["uid"] in living or one["resource"] != "pods"]
        known = {one["uid"] for one in kept}
        new = [
            {"resource": "pods", "name": pod["metadata"]["name"], "uid": uid}
            for uid, pod in living.items()
            if uid not in known and not is_deleting(pod)
        ]
        return kept + new

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
        await self._patch(
            claim, {"allocation": allocation(claim, first["spec"]["nodeName"]), "reservedFor": reserved}, subresource="status"
        )

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


def _claims_of(pod: Body | None) -> tuple[Key, ...]:
    """The claims that the pod uses, as far as their names are known."""
    if pod is None or not pod["spec"].get("resourceClaims"):
        return ()
    namespace = pod["metadata"]["namespace"]
    named = [one.get("resourceClaimName") for one in pod["spec"]["resourceClaims"]]
    made = [one.get("resourceClaimName") for one in status_of(pod).get("resourceClaimStatuses") or ()]
    return tuple((namespace, name) for name in (*named, *made) if name)


def _claim_name(pod: Body, claim: str) -> str:
    """A name that a repeated attempt arrives at again, and no other pod."""
    digest = hashlib.sha256(f"{uid_of(pod)}/{claim}".encode()).hexdigest()[:5]
    return f"{pod['metadata']['name']}-{claim}-{digest}"[-253:]


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
