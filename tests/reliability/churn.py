"""Churn: users who create, scale, update and delete sets, pods that fail, and nodes that leave, at random but reproducible from a seed."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from engine.errors import ClusterError, NotFound
from engine.ids import Kind
from engine.runtime.provider import Client
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import is_leaving, running

NODE = Kind("", "v1", "Node", "nodes", namespaced=False)

MOST_SETS = 8
"""How many sets there are at a time at most."""

PODS_OF_A_SET = 4
"""With one replica."""

BASE = ("base-0", "base-1", "base-2")
"""The sets that are left when the churn pauses, each with one replica."""


class Churn:
    """One who disturbs a namespace of a cluster, through any client."""

    def __init__(self, client: Client, namespace: str, seed: int = 1) -> None:
        self._client, self._namespace, self._chance = client, namespace, random.Random(seed)
        self._sets: dict[str, int] = {}
        """The name of each set -> its version."""
        self._number = 0
        self._gone: list[dict[str, Any]] = []
        """The nodes that have left."""
        self.done: Counter[str] = Counter()
        """What was done -> how often."""

    async def disturb(self) -> None:
        """Do one thing."""
        actions: dict[Callable[[], Awaitable[None]], int] = {
            self._create: 3 if len(self._sets) < MOST_SETS else 0,
            self._scale: 4,
            self._update: 2,
            self._delete: 2 if len(self._sets) > 2 else 0,
            self._lose_pod: 3,
            self._lose_node: 1,
        }
        (action,) = self._chance.choices(list(actions), list(actions.values()))
        with suppress(ClusterError):  # What it meant is gone by now, or was changed at the same time.
            await action()
            self.done[action.__name__.strip("_").replace("_", " ")] += 1

    async def rest(self) -> None:
        """Ask for the same state as at every other rest: the sets of `BASE`, with one replica of the first version, on all nodes."""
        await self._return_nodes()
        for name in [name for name in self._sets if name not in BASE]:
            await self._remove(name)
        for name in BASE:
            await self._ask_for(name, 1)
            with suppress(NotFound):
                await self._client.patch(kinds.PODCLIQUESET, self._namespace, name, {"spec": {"replicas": 1}}, subresource="scale")

    async def _create(self) -> None:
        self._number += 1
        await self._ask_for(f"set-{self._number}", 1)

    async def _update(self) -> None:
        name = self._any_set()
        await self._ask_for(name, self._sets[name] + 1)

    async def _scale(self) -> None:
        body = {"spec": {"replicas": self._chance.randint(0, 3)}}
        await self._client.patch(kinds.PODCLIQUESET, self._namespace, self._any_set(), body, subresource="scale")

    async def _delete(self) -> None:
        await self._remove(self._any_set())

    async def _lose_pod(self) -> None:
        """A pod fails, or somebody deletes it."""
        pods = await self._pods()
        if not pods:
            return
        pod = self._chance.choice(pods)["metadata"]["name"]
        if self._chance.random() < 0.5:
            await self._client.delete(kinds.POD, self._namespace, pod, grace=0)
        else:
            failed = {"status": {"phase": "Failed", "reason": "Evicted", "message": "the node was low on resource: memory"}}
            await self._client.patch(kinds.POD, self._namespace, pod, failed, subresource="status")

    async def _lose_node(self) -> None:
        """A node leaves with its pods; the one that left before comes back."""
        await self._return_nodes()
        nodes = (await self._client.list(NODE)).items
        node = self._chance.choice(nodes)
        await self._client.delete(NODE, "", node["metadata"]["name"])
        self._gone.append(node)
        for pod in await self._pods():
            if pod["spec"].get("nodeName") == node["metadata"]["name"]:
                await self._client.delete(kinds.POD, self._namespace, pod["metadata"]["name"], grace=0)

    async def _return_nodes(self) -> None:
        while self._gone:
            node = self._gone.pop()
            metadata = {key: node["metadata"][key] for key in ("name", "labels", "annotations") if key in node["metadata"]}
            await self._client.create(NODE, "", {**node, "metadata": metadata})

    async def _pods(self) -> list[dict[str, Any]]:
        return [pod for pod in (await self._client.list(kinds.POD, self._namespace)).items if not is_leaving(pod)]

    def _any_set(self) -> str:
        if not self._sets:
            raise NotFound("there is no set")
        return self._chance.choice(sorted(self._sets))

    async def _ask_for(self, name: str, version: int) -> None:
        """`kubectl apply` of a set."""
        self._sets[name] = version
        cliques = [clique(role, size, pod_spec=running(version)) for role, size in (("router", 1), ("leader", 1), ("worker", 2))]
        body = podcliqueset(name, *cliques, groups=(group("pool", "leader", "worker"),), namespace=self._namespace)
        del body["spec"]["replicas"]  # Scaling owns it.
        await self._client.patch(kinds.PODCLIQUESET, self._namespace, name, body, how="apply", force=True)

    async def _remove(self, name: str) -> None:
        del self._sets[name]
        with suppress(NotFound):
            await self._client.delete(kinds.PODCLIQUESET, self._namespace, name, propagation="Background")
