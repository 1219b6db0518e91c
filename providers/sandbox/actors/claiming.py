"""Claiming: the scheduler's part in claims: a pod gets a node with all of its devices or none, and has them before it is bound."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from engine.errors import NotFound
from engine.runtime.client import Client
from providers.sandbox.actors.allocation import classes_of, devices_of, is_simulated, pinned_to, published
from providers.sandbox.actors.ask import Ask
from providers.sandbox.actors.body import Body, Key, is_deleting, key_of, status_of, uid_of
from providers.sandbox.actors.claimed import asks_for_claims, claims_by_name, is_allocated, is_reserved_for, reservation
from providers.sandbox.actors.inventory import Device, Inventory
from providers.sandbox.actors.pool import DEVICES, Pool
from providers.sandbox.actors.reflector import Reflection
from resources.base.kinds import RESOURCE_CLAIM

PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""Keeps a claim while it is allocated."""


class Lacking(Exception):
    """The pod cannot be placed yet; the text says why."""


class Claiming:
    """Claims and devices, as far as placement depends on them. Devices count as resources of their nodes, taken by claims, not by pods."""

    def __init__(self, client: Client, pool: Pool, changed: Callable[[], None], touched: Callable[[Key], None]) -> None:
        self._client, self._pool, self._changed, self._touched = client, pool, changed, touched
        self.claims = Reflection(RESOURCE_CLAIM, self._saw)
        self.inventory = Inventory(self._published)
        self._held: dict[str, list[Device]] = {}
        self._is_stale = False
        """Whether the pool has yet to be told of other devices: once before the next pod is placed, however many there are."""

    @property
    def reflections(self) -> tuple[Reflection, ...]:
        """What has to be followed for this."""
        return self.claims, self.inventory.classes, self.inventory.slices

    def _published(self) -> None:
        self._is_stale = True
        self._changed()

    def _count(self, node: str) -> dict[str, int]:
        return {name: len(found) for name, found in self.inventory.classes_of(node).items()}

    def _saw(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old) or (is_allocated(old) and not is_allocated(new))):
            self._let_go(uid_of(old))
        if new is not None and is_allocated(new):
            self._hold(new, pinned_to(new), devices_of(new))
        if old is None or new is None or is_allocated(old) != is_allocated(new):
            self._touched(key)

    def _hold(self, claim: Body, node: str, devices: Sequence[Device]) -> None:
        self._held[uid_of(claim)] = list(devices)
        if node:
            self._pool.put(uid_of(claim), node, self._amounts(claim))

    def _let_go(self, claim: str) -> None:
        self._held.pop(claim, None)
        if self._pool.remove(claim):
            self._changed()

    def _amounts(self, claim: Body) -> Mapping[str, int]:
        wanted = {name: count for name, count in classes_of(claim).items() if not self.inventory.is_simulated(name)}
        return {DEVICES + name: 1000 * count for name, count in wanted.items()}

    def asks(self, asks: Iterable[tuple[Body, Ask]]) -> list[tuple[str, Ask]]:
        """What each of the pods needs, devices included. Raises `Lacking` for a pod whose claims are not all there."""
        if self._is_stale:
            self._is_stale = False
            self._pool.offer_devices(self._count)
        first: dict[str, str] = {}
        """The pod that will have the claim of that uid allocated, the others beside it."""
        found = []
        for pod, ask in asks:
            for claim in self._claims(pod):
                if (node := pinned_to(claim)) or is_allocated(claim):
                    ask = replace(ask, node=node or ask.node)
                elif is_simulated(claim, self.inventory):
                    continue
                elif (other := first.setdefault(uid_of(claim), uid_of(pod))) == uid_of(pod):
                    ask = _with_devices(ask, self._amounts(claim))
                else:
                    ask = replace(ask, beside=other)
            found.append((uid_of(pod), ask))
        return found

    def check(self, pod: Body) -> None:
        """Raises `Lacking` for a pod whose claims are not all there."""
        self._claims(pod)

    def _claims(self, pod: Body) -> list[Body]:
        found = []
        for name, key in claims_by_name(pod).items():
            claim = self.claims.get(*key) if key else None
            if key is None:
                raise Lacking(f"waiting for dynamic resource controller to create the resourceclaim for {name}")
            if claim is None:
                raise Lacking(f'resourceclaim "{key[1]}" not found')
            if is_deleting(claim):
                raise Lacking(f'resourceclaim "{key[1]}" is being deleted')
            found.append(claim)
        return found

    def take(self, pods: Iterable[Body], requests: Callable[[Body], Mapping[str, int]]) -> None:
        """The pods have their places: from now on their claims have the devices, and the pods the rest."""
        for pod in pods:
            node = self._pool.where(uid_of(pod))
            if not asks_for_claims(pod):
                continue
            self._pool.put(uid_of(pod), node, requests(pod))
            for claim in self._claims(pod):
                if not is_allocated(claim) and not is_simulated(claim, self.inventory) and not self._pool.where(uid_of(claim)):
                    self._pool.put(uid_of(claim), node, self._amounts(claim))

    async def allocate(self, pod: Body, node: str) -> None:
        """Devices of the node for each claim of the pod that has none, and a reservation; made-up devices come later, from others."""
        for key in claims_by_name(pod).values():
            claim = self.claims.get(*key) if key else None
            if claim is None:
                raise NotFound(f"a claim of pod {pod['metadata']['name']} is gone")
            if is_allocated(claim) and is_reserved_for(claim, pod):
                continue
            if not is_allocated(claim) and is_simulated(claim, self.inventory):
                continue
            await self._reserve(claim, pod, node)

    async def _reserve(self, claim: Body, pod: Body, node: str) -> None:
        reserved = [*_users(claim), reservation(pod)]
        status: dict[str, Any] = {"reservedFor": reserved}
        if not is_allocated(claim):
            taken = [device for uid, devices in self._held.items() if uid != uid_of(claim) for device in devices]
            found = published(claim, node, self.inventory, taken)
            if found is None:
                raise NotFound(f"the devices of node {node} were taken meanwhile")
            status["allocation"] = found
            results = found["devices"]["results"]
            self._held[uid_of(claim)] = [Device(one["driver"], one["pool"], one["device"]) for one in results]
            claim = await self._protected(claim)
        patch = {"metadata": {"resourceVersion": claim["metadata"]["resourceVersion"]}, "status": status}
        self.claims.assume(await self._client.patch(RESOURCE_CLAIM, *key_of(claim), patch, subresource="status"))

    async def _protected(self, claim: Body) -> Body:
        """Protection first: an allocated claim must not go away under its pod."""
        metadata = claim["metadata"]
        finalizers = metadata.get("finalizers") or []
        if PROTECTION in finalizers:
            return claim
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": [*finalizers, PROTECTION]}}
        made = await self._client.patch(RESOURCE_CLAIM, *key_of(claim), patch)
        self.claims.assume(made)
        return made

    async def let_go(self, pods: Iterable[Body]) -> None:
        """The pods cannot be placed where their devices are, and nobody else uses those: they may get others, somewhere else."""
        for pod in pods:
            for key in claims_by_name(pod).values():
                claim = self.claims.get(*key) if key else None
                if claim is not None and pinned_to(claim) and not any(one["uid"] != uid_of(pod) for one in _users(claim)):
                    metadata = {"resourceVersion": claim["metadata"]["resourceVersion"]}
                    patch = {"metadata": metadata, "status": {"allocation": None, "reservedFor": None, "devices": None}}
                    self.claims.assume(await self._client.patch(RESOURCE_CLAIM, *key_of(claim), patch, subresource="status"))

    def give_back(self, pod: Body) -> None:
        """The pod was not bound: what its claims were to get is free, unless they have got it."""
        for key in claims_by_name(pod).values():
            claim = self.claims.get(*key) if key else None
            if claim is not None and not is_allocated(claim):
                self._let_go(uid_of(claim))


def _users(claim: Body) -> Sequence[Mapping[str, Any]]:
    return status_of(claim).get("reservedFor") or ()


def _with_devices(ask: Ask, devices: Mapping[str, int]) -> Ask:
    requests = {name: ask.requests.get(name, 0) + devices.get(name, 0) for name in (*ask.requests, *devices)}
    return replace(ask, requests=requests, shape=f"{ask.shape}+{sorted(devices.items())}")
