"""The workload of the reliability tests: sets that are created, scaled, updated and deleted while the fault lasts, and one that stays."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import anyio

from engine.errors import ClusterError
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import images, is_leaving, is_ready, running
from tests.waiting import PATIENCE

PODS_OF_A_SET = 3
"""How many pods a replica of each set has."""


class Workload:
    """Five sets in one namespace, and what should become of them."""

    def __init__(self, admin: KubernetesClient, namespace: str) -> None:
        self._admin, self.namespace = admin, namespace

    async def bring_up(self) -> None:
        """Create the sets that are there before the fault, and wait for their pods."""
        for name in ("kept", "scaled", "updated", "deleted"):
            await self._create(name, replicas=2 if name == "kept" else 1)
        await self._until({"kept": 6, "scaled": 3, "updated": 3, "deleted": 3})

    async def ask_for_changes(self) -> None:
        """What users do while the fault lasts: create, scale, update and delete a set each."""
        await self._create("created", replicas=4)
        await self._admin.patch(kinds.PODCLIQUESET, self.namespace, "scaled", {"spec": {"replicas": 4}}, subresource="scale")
        updated = self._set("updated", 1, version=2)
        await self._admin.patch(kinds.PODCLIQUESET, self.namespace, "updated", {"spec": updated["spec"]})
        await self._admin.delete(kinds.PODCLIQUESET, self.namespace, "deleted", propagation="Background")

    async def until_changed(self) -> None:
        """Wait until the changes have been made: every pod is there, ready and of the right version, and the deleted set is gone."""
        await self._until({"kept": 6, "created": 12, "scaled": 12, "updated": 3}, version_of_updated=2)

    async def pods(self, name: str) -> set[str]:
        """The uids of the pods of a set."""
        return {pod["metadata"]["uid"] for pod in await self._pods() if _set_of(pod) == name}

    async def _pods(self) -> list[dict[str, Any]]:
        return (await self._admin.list(kinds.POD, self.namespace)).items

    async def _create(self, name: str, replicas: int) -> None:
        await self._admin.create(kinds.PODCLIQUESET, self.namespace, self._set(name, replicas))

    def _set(self, name: str, replicas: int, version: int = 1) -> dict[str, Any]:
        cliques = [clique("router", 1, pod_spec=running(version)), clique("leader", 1, pod_spec=running(version))]
        cliques.append(clique("worker", 1, pod_spec=running(version)))
        groups = (group("pool", "leader", "worker"),)
        return podcliqueset(name, *cliques, groups=groups, replicas=replicas, namespace=self.namespace)

    async def _until(self, wanted: Mapping[str, int], *, version_of_updated: int = 1) -> None:
        state: object = None
        try:
            with anyio.fail_after(PATIENCE):
                while True:
                    try:
                        pods = await self._pods()
                        sets = {body["metadata"]["name"] for body in (await self._admin.list(kinds.PODCLIQUESET, self.namespace)).items}
                    except ClusterError as error:
                        state = error
                    else:
                        state = there = dict(Counter(_set_of(pod) for pod in pods))
                        ready = all(map(is_ready, pods)) and not any(map(is_leaving, pods))
                        version = images(pod for pod in pods if _set_of(pod) == "updated")
                        if there == wanted and ready and sets == set(wanted) and version == {f"example/worker:{version_of_updated}"}:
                            return
                    await anyio.sleep(0.2)
        except TimeoutError:
            raise AssertionError(f"not {wanted} after {PATIENCE:g} s, but {state}") from None


def _set_of(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["name"]).split("-", 1)[0]
