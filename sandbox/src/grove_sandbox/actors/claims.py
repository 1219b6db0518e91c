"""Claims: the ResourceClaim controller. It creates claims from templates for pods, gated or not, and releases them after the pods.

Published devices are allocated by the scheduler; devices that no driver publishes are simulated, and allocated here, where the pods run.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import anyio

from grove_sandbox.actors.body import Body, Key, finalizers_of, is_deleting, is_finished, key_of, owners_of, status_of, uid_of
from grove_sandbox.actors.claim_fields import claims_of, is_allocated, reservation, reservations
from grove_sandbox.actors.dynamic_resources import PROTECTION
from grove_sandbox.actors.event_recorder import record_warning
from grove_sandbox.actors.inventory import Inventory, simulated_allocation
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.store import InformerStore, delete, run_informers
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import AlreadyExists, Client, Clock, ClusterError, NotFound, kinds

CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""An annotation of a generated claim: its name in the pod's spec."""
FAILED_CREATION: Final = "FailedResourceClaimCreation"
FIRST_RETRY, LAST_RETRY = 0.005, 1000.0
"""Seconds until a pod whose template is missing is tried again, at first and at most, unless it changes."""
MAX_BASE: Final = 57
"""Characters of a generated name before its suffix, the last hyphen included."""
DEALLOCATED: Final = {"allocation": None, "devices": None}


class TemplateMissing(ClusterError):
    """A pod refers to a ResourceClaimTemplate that does not exist."""


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Create, allocate, reserve and release claims."""
    await ClaimController(client, clock).run()


class ClaimController:
    """Knows pods, claims and devices, and which pods use which claim, all of it from the API."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._pod_queue: WorkQueue[Key] = WorkQueue(clock, first_retry=FIRST_RETRY, last_retry=LAST_RETRY)
        self._claim_queue: WorkQueue[Key] = WorkQueue(clock)
        self._pods = InformerStore(kinds.POD, self._on_pod)
        self._claims = InformerStore(kinds.RESOURCE_CLAIM, lambda key, old, new: self._claim_queue.add(key))
        self._inventory = Inventory(self._on_inventory)
        self._users: dict[Key, dict[Key, None]] = {}

    async def run(self) -> None:
        """Run the controller until cancelled."""
        async with anyio.create_task_group() as tasks:
            stores = (self._pods, self._claims, self._inventory.classes, self._inventory.slices)
            tasks.start_soon(run_informers, self._client, self._clock, *stores)
            # Whether the pod of a reservation is gone is known only after the pods have been listed.
            for store in stores:
                await store.synced.wait()
            tasks.start_soon(self._pod_queue.run, self._process_pod)
            tasks.start_soon(self._claim_queue.run, self._process_claim)

    def _on_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        before, after = claims_of(old), claims_of(new)
        for claim in before:
            self._users.get(claim, {}).pop(key, None)
        for claim in after:
            self._users.setdefault(claim, {})[key] = None
        for claim in (*before, *after):
            self._claim_queue.add(claim)
        if new is not None and new["spec"].get("resourceClaims"):
            self._pod_queue.add(key)

    def _on_inventory(self) -> None:
        """Devices that were simulated may be published now, or the other way round."""
        for key in self._claims.objects:
            self._claim_queue.add(key)

    async def _process_pod(self, key: Key) -> None:
        """Create the claims that the pod's spec requests by template, and write their names into its status."""
        pod = self._pods.get(*key)
        if pod is None or is_deleting(pod) or is_finished(pod):
            return
        known = {entry["name"] for entry in status_of(pod).get("resourceClaimStatuses") or ()}
        entries = [entry for entry in pod["spec"].get("resourceClaims") or () if entry.get("resourceClaimTemplateName")]
        missing = [entry for entry in entries if entry["name"] not in known]
        created = [
            {"name": entry["name"], "resourceClaimName": _claim_name(pod, entry["name"])}
            for entry in missing
            if await self._create(pod, entry)
        ]
        if created:
            status = {"status": {"resourceClaimStatuses": created}}
            await self._pods.patch(self._client, pod, status, how="strategic", subresource="status", by_uid=True)
        if len(created) < len(missing):
            raise TemplateMissing("a ResourceClaimTemplate does not exist")

    async def _create(self, pod: Body, entry: Body) -> bool:
        """Create the claim for an entry of the pod's spec. Returns whether it exists now."""
        namespace, name = pod["metadata"]["namespace"], entry["resourceClaimTemplateName"]
        try:
            # Templates are not watched: one that comes late is found when the pod is retried.
            template = await self._client.get(kinds.RESOURCE_CLAIM_TEMPLATE, namespace, name)
        except NotFound:
            message = f'PodResourceClaim {entry["name"]}: failed to create: resourceclaimtemplate.resource.k8s.io "{name}" not found'
            await record_warning(self._client, self._clock, pod, FAILED_CREATION, message, component="resource_claim")
            return False
        try:
            await self._client.create(kinds.RESOURCE_CLAIM, namespace, _generated(pod, entry["name"], template))
        except AlreadyExists:
            # The name is a function of the pod's uid: an earlier attempt created it, and the answer was lost.
            return True
        return True

    async def _process_claim(self, key: Key) -> None:
        claim = self._claims.get(*key)
        if claim is None:
            return
        if self._has_finished_owner(claim) and not is_deleting(claim):
            await delete(self._client, kinds.RESOURCE_CLAIM, claim)
        reserved = self._reserved(claim)
        if reserved and not is_allocated(claim) and self._inventory.is_simulated_claim(claim):
            if not is_deleting(claim):
                await self._allocate(claim, reserved)
        elif reserved != list(reservations(claim)):
            await self._write_status(claim, {"reservedFor": reserved or None, **({} if reserved else DEALLOCATED)})
        elif not reserved and not is_allocated(claim) and PROTECTION in finalizers_of(claim):
            await self._write_finalizers(claim, [finalizer for finalizer in finalizers_of(claim) if finalizer != PROTECTION])

    def _reserved(self, claim: Body) -> list[dict[str, Any]]:
        """The pods to reserve the claim for: those of its reservations that are not finished, and those that have been bound since."""
        users = [self._pods.objects[key] for key in self._users.get(key_of(claim), ())]
        active = {uid_of(pod): pod for pod in users if not is_finished(pod)}
        kept = [dict(entry) for entry in reservations(claim) if entry["uid"] in active or entry["resource"] != "pods"]
        known = {entry["uid"] for entry in kept}
        bound = [pod for uid, pod in active.items() if uid not in known and pod["spec"].get("nodeName") and not is_deleting(pod)]
        # Published devices are allocated by the scheduler before it binds a pod; only simulated ones are still to come.
        return kept + [reservation(pod) for pod in bound if is_allocated(claim) or self._inventory.is_simulated_claim(claim)]

    def _has_finished_owner(self, claim: Body) -> bool:
        """Whether the pod that it was generated for has finished. If the pod is gone, the garbage collector deletes the claim."""
        owner = next((owner for owner in owners_of(claim) if owner["kind"] == "Pod" and owner.get("controller")), None)
        pod = self._pods.get(claim["metadata"]["namespace"], owner["name"]) if owner else None
        return owner is not None and pod is not None and uid_of(pod) == owner["uid"] and is_finished(pod)

    async def _allocate(self, claim: Body, reserved: list[dict[str, Any]]) -> None:
        if PROTECTION not in finalizers_of(claim):
            # The finalizer comes first: an allocated claim must not be deleted while its pod runs. The change queues the claim again.
            return await self._write_finalizers(claim, [*finalizers_of(claim), PROTECTION])
        first = self._pods.objects[claim["metadata"]["namespace"], reserved[0]["name"]]
        await self._write_status(claim, {"allocation": simulated_allocation(claim, first["spec"]["nodeName"]), "reservedFor": reserved})

    async def _write_finalizers(self, claim: Body, finalizers: Iterable[str]) -> None:
        await self._claims.patch(self._client, claim, {"metadata": {"finalizers": list(finalizers) or None}})

    async def _write_status(self, claim: Body, status: Mapping[str, Any]) -> None:
        await self._claims.patch(self._client, claim, {"status": status}, subresource="status")


def _claim_name(pod: Body, claim: str) -> str:
    """A base that fits and a hash of five characters: the same at every attempt, and another for every pod."""
    name = pod["metadata"]["name"]
    digest = hashlib.sha256(f"{uid_of(pod)}/{claim}".encode()).hexdigest()[:5]
    length = len(name) + len(claim) + 2
    if length <= MAX_BASE:
        return f"{name}-{claim}-{digest}"
    # Both parts are cut in proportion, and the last hyphen is left out.
    return f"{name[: len(name) * MAX_BASE // length]}-{claim[: len(claim) * MAX_BASE // length]}{digest}"


def _generated(pod: Body, claim: str, template: Body) -> dict[str, Any]:
    inherited = template["spec"].get("metadata") or {}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": uid_of(pod)}
    metadata = {
        "name": _claim_name(pod, claim),
        "namespace": pod["metadata"]["namespace"],
        "labels": inherited.get("labels") or {},
        "annotations": {**(inherited.get("annotations") or {}), CLAIM_NAME: claim},
        "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
    }
    return {
        "apiVersion": kinds.RESOURCE_CLAIM.api_version,
        "kind": kinds.RESOURCE_CLAIM.name,
        "metadata": metadata,
        "spec": template["spec"]["spec"],
    }
