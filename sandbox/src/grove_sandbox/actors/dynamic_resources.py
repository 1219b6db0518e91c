"""DynamicResources: the scheduler plugin for ResourceClaims; a pod gets all of its devices on one node before it is bound, or none."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from grove_sandbox.actors.body import Body, Key, finalizers_of, is_deleting, uid_of
from grove_sandbox.actors.claim_fields import (
    Device,
    allocated_node,
    claims_by_name,
    claims_of,
    devices_of,
    is_allocated,
    is_reserved_for,
    requested_classes,
    reservation,
    reservations,
    uses_claims,
)
from grove_sandbox.actors.inventory import Inventory
from grove_sandbox.actors.pool import DEVICES, Pool
from grove_sandbox.actors.store import InformerStore
from grove_sandbox.product import Client, NotFound, PodRequirements, kinds

PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer of a claim that is allocated."""


class ClaimsNotReady(Exception):
    """A claim of the pod does not exist or is being deleted; the text is the reason."""


class DynamicResources:
    """Claims and devices as far as placement depends on them. Devices are resources of nodes, reserved for claims and not for pods.

    `on_freed` is called when devices may be free that were not, `on_claim` when the state of a claim has changed.
    """

    def __init__(self, client: Client, pool: Pool, on_freed: Callable[[], None], on_claim: Callable[[Key], None]) -> None:
        self._client, self._pool, self._on_freed, self._on_claim = client, pool, on_freed, on_claim
        self.claims = InformerStore(kinds.RESOURCE_CLAIM, self._on_claim_event)
        self.inventory = Inventory(self._on_inventory)
        self._taken: dict[str, list[Device]] = {}
        """The devices of claims by uid."""
        self._is_pool_outdated = False
        """Whether the pool has to be given the devices of the nodes before the next pod is placed."""

    @property
    def stores(self) -> tuple[InformerStore, ...]:
        """The stores that need informers."""
        return self.claims, self.inventory.classes, self.inventory.slices

    def _on_inventory(self) -> None:
        self._is_pool_outdated = True
        self._on_freed()

    def _on_claim_event(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old) or (is_allocated(old) and not is_allocated(new))):
            self._release(uid_of(old))
        if new is not None and is_allocated(new):
            self._taken[uid_of(new)] = devices_of(new)
            if node := allocated_node(new):
                self._pool.reserve(uid_of(new), node, self._amounts(new))
        if old is None or new is None or is_allocated(old) != is_allocated(new):
            self._on_claim(key)

    def _release(self, claim: str) -> None:
        self._taken.pop(claim, None)
        if self._pool.release(claim):
            self._on_freed()

    def _amounts(self, claim: Body) -> Mapping[str, int]:
        return {DEVICES + name: 1000 * count for name, count in requested_classes(claim).items() if not self.inventory.is_simulated(name)}

    def pre_filter(self, pod: Body) -> None:
        """Raises `ClaimsNotReady` unless all claims of the pod exist."""
        self._claims(pod)

    def _claims(self, pod: Body) -> list[Body]:
        claims = []
        for name, key in claims_by_name(pod).items():
            claim = self.claims.get(*key) if key else None
            if key is None:
                raise ClaimsNotReady(f"waiting for dynamic resource controller to create the resourceclaim for {name}")
            if claim is None:
                raise ClaimsNotReady(f'resourceclaim "{key[1]}" not found')
            if is_deleting(claim):
                raise ClaimsNotReady(f'resourceclaim "{key[1]}" is being deleted')
            claims.append(claim)
        return claims

    def _existing_claims(self, pod: Body) -> Iterator[Body]:
        return (claim for key in claims_of(pod) if (claim := self.claims.get(*key)) is not None)

    def with_devices(self, pods: Iterable[tuple[Body, PodRequirements]]) -> list[tuple[str, PodRequirements]]:
        """The requirements of each pod, by uid, devices included. Raises `ClaimsNotReady`."""
        if self._is_pool_outdated:
            self._is_pool_outdated = False
            self._pool.set_devices(lambda node: {name: len(devices) for name, devices in self.inventory.classes_of(node).items()})
        allocated_for: dict[str, str] = {}
        """The pod for which the claim of that uid will be allocated; other pods that share it go to the same node."""
        result = []
        for pod, requirements in pods:
            for claim in self._claims(pod):
                if is_allocated(claim):
                    requirements = replace(requirements, node=allocated_node(claim) or requirements.node)
                elif self.inventory.is_simulated_claim(claim):
                    continue
                elif (first := allocated_for.setdefault(uid_of(claim), uid_of(pod))) == uid_of(pod):
                    requirements = _add(requirements, self._amounts(claim))
                else:
                    requirements = replace(requirements, same_node_as=first)
            result.append((uid_of(pod), requirements))
        return result

    def reserve(self, pods: Iterable[Body], requests_of: Callable[[Body], Mapping[str, int]]) -> None:
        """Split the reservations of placed pods: the devices are reserved for the claims, the rest for the pods."""
        for pod in pods:
            node = self._pool.node_of(uid_of(pod))
            if not uses_claims(pod):
                continue
            self._pool.reserve(uid_of(pod), node, requests_of(pod))
            for claim in self._claims(pod):
                if not is_allocated(claim) and not self.inventory.is_simulated_claim(claim) and not self._pool.node_of(uid_of(claim)):
                    self._pool.reserve(uid_of(claim), node, self._amounts(claim))

    async def pre_bind(self, pod: Body, node: str) -> None:
        """Allocate and reserve the claims of the pod. Simulated devices are allocated later, by the claim controller."""
        for key in claims_by_name(pod).values():
            claim = self.claims.get(*key) if key else None
            if claim is None:
                raise NotFound(f"a claim of pod {pod['metadata']['name']} is gone")
            is_done = is_reserved_for(claim, pod) if is_allocated(claim) else self.inventory.is_simulated_claim(claim)
            if not is_done:
                await self._allocate(claim, pod, node)

    async def _allocate(self, claim: Body, pod: Body, node: str) -> None:
        status: dict[str, Any] = {"reservedFor": [*reservations(claim), reservation(pod)]}
        if not is_allocated(claim):
            taken = [device for uid, devices in self._taken.items() if uid != uid_of(claim) for device in devices]
            allocation = self.inventory.allocation(claim, node, taken)
            if allocation is None:
                raise NotFound(f"the devices of node {node} were taken meanwhile")
            status["allocation"] = allocation
            self._taken[uid_of(claim)] = devices_of({"status": status})
            claim = await self._protect(claim)
        await self.claims.patch(self._client, claim, {"status": status}, subresource="status")

    async def _protect(self, claim: Body) -> Body:
        """The finalizer comes first: an allocated claim must not be deleted while its pod runs."""
        finalizers = finalizers_of(claim)
        if PROTECTION in finalizers:
            return claim
        return await self.claims.patch(self._client, claim, {"metadata": {"finalizers": [*finalizers, PROTECTION]}})

    async def post_filter(self, pods: Iterable[Body]) -> None:
        """The pods do not fit where their devices are: deallocate claims that no other pod uses, so that others can be allocated."""
        for pod in pods:
            for claim in self._existing_claims(pod):
                if allocated_node(claim) and all(entry["uid"] == uid_of(pod) for entry in reservations(claim)):
                    deallocated = {"allocation": None, "reservedFor": None, "devices": None}
                    await self.claims.patch(self._client, claim, {"status": deallocated}, subresource="status")

    def unreserve(self, pod: Body) -> None:
        """The pod was not bound: release what was reserved for its claims and not allocated."""
        for claim in self._existing_claims(pod):
            if not is_allocated(claim):
                self._release(uid_of(claim))


def _add(requirements: PodRequirements, devices: Mapping[str, int]) -> PodRequirements:
    requests: Mapping[str, int] = {
        name: requirements.requests.get(name, 0) + devices.get(name, 0) for name in (*requirements.requests, *devices)
    }
    return replace(requirements, requests=requests, shape=f"{requirements.shape}+{sorted(devices.items())}")
