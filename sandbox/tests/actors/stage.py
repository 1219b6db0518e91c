"""A sandbox with some of its actors, on a virtual clock."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio

from engine import conditions
from engine.errors import NotFound
from engine.ids import Kind
from engine.runtime.provider import Client
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.api.verbs import Api
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.clock import VirtualClock
from grove_sandbox.installation.addons import addon_objects
from grove_sandbox.installation.installation import simulated_classes
from grove_sandbox.process import GROVE_GROUPS
from grove_sandbox.registry import run_actors
from resources.base.kinds import CRD, KINDS, NAMESPACE, POD
from resources.schema.crds import crds

USUAL = ActorOptions()

BY_NAME: Mapping[tuple[str, str], Kind] = {(kind.api_version, kind.name): kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Stage:
    """What tests do with the cluster. Everything is in namespace `ml` unless stated otherwise."""

    client: Client
    clock: VirtualClock
    actors_client: Client
    api: Api

    async def create(self, *bodies: Mapping[str, Any]) -> dict[str, Any]:
        """Create these in order, and return the last one."""
        made: dict[str, Any] = {}
        for body in bodies:
            kind = BY_NAME[body["apiVersion"], body["kind"]]
            made = await self.client.create(kind, "ml" if kind.namespaced else "", body)
        return made

    async def get(self, kind: Kind, name: str) -> dict[str, Any] | None:
        """The object; None if there is none."""
        try:
            return await self.client.get(kind, "ml" if kind.namespaced else "", name)
        except NotFound:
            return None

    async def names(self, kind: Kind) -> set[str]:
        """The names of all objects of a kind."""
        return {body["metadata"]["name"] for body in (await self.client.list(kind, "ml" if kind.namespaced else "")).items}

    async def pod(self, name: str) -> dict[str, Any]:
        """A pod. Raises `NotFound`."""
        return await self.client.get(POD, "ml", name)

    async def node_of(self, name: str) -> str:
        """The node of a pod; empty: it is not bound."""
        return str((await self.pod(name))["spec"].get("nodeName", ""))

    async def condition(self, name: str, type: str) -> tuple[str, str, str]:
        """Status, reason and message of a pod's condition; empty where there is none."""
        found = conditions.find((await self.pod(name)).get("status", {}).get("conditions") or (), type) or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    async def is_ready(self, name: str) -> bool:
        """Whether a pod is ready."""
        return (await self.condition(name, "Ready"))[0] == "True"

    async def annotate(self, kind: Kind, name: str, key: str, value: str | None) -> None:
        """Set an annotation, or take it away."""
        await self.client.patch(kind, "ml", name, {"metadata": {"annotations": {key: value}}})

    async def turn(self, seconds: float = 1.0) -> None:
        """Let time pass."""
        await self.clock.advance(seconds)


@asynccontextmanager
async def running(
    *actors: str,
    options: ActorOptions = USUAL,
    client: Callable[[Api], InProcessClient] = InProcessClient,
    addons: Collection[str] = (),
    grove: bool = True,
) -> AsyncGenerator[Stage]:
    """A fresh cluster with namespace `ml`, our kinds (without `grove`: not Grove's) and these add-ons, in which these actors run."""
    key = (tuple(addons), grove)
    if key not in _DEFINED:
        _DEFINED[key] = await _defined(*key)
    clock = VirtualClock()
    api = _DEFINED[key].fork(clock)
    stage = Stage(InProcessClient(api), clock, client(api), api)
    async with on(stage, *actors, options=options):
        yield stage


_DEFINED: dict[tuple[tuple[str, ...], bool], Api] = {}
"""The clusters that tests have begun with: to define our kinds takes longer than many a test. Every test has a fork of its own."""


async def _defined(addons: Collection[str], grove: bool) -> Api:
    """A cluster in which no actor has run."""
    api = Api(VirtualClock(), seed=1)
    client = InProcessClient(api)
    for definition in [definition for definition in crds() if grove or definition["spec"]["group"] not in GROVE_GROUPS]:
        await client.create(CRD, "", definition)
    for kind, body in (*simulated_classes(), *addon_objects(addons)):
        await client.create(kind, "", body)
    await client.create(NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
    return api


@asynccontextmanager
async def on(stage: Stage, *actors: str, options: ActorOptions = USUAL) -> AsyncGenerator[None]:
    """Run these actors on an existing cluster."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_actors, stage.actors_client, stage.clock, actors, options)
        await stage.turn(0)
        yield
        tasks.cancel_scope.cancel()
