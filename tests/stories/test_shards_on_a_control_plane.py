"""Shards on a real control plane, under exactly their roles: one of three processes is killed in a bring-up, and nothing is made twice."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from engine.runtime.lease import LEASE
from engine.shards import shard_of
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.audit import Requests, Right
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.installed_accounts import install_account
from tests.stories.engine_processes import engines, terms
from tests.stories.pods import is_ready
from tests.stories.test_control_plane import connection, define

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMES = [f"shards-{number}" for number in range(6)]
REPLICAS, PODS = 3, 2
SHARDS = 6
ELECTION = {"leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s", "resourceName": "shards", "resourceNamespace": "default"}
CONFIGURATION = {"leaderElection": ELECTION}


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again, for two minutes at most: the log of a process cannot be watched."""
    with anyio.fail_after(120):
        while True:
            if await holds():
                return
            await anyio.sleep(0.3)


async def ready_pods(admin: KubernetesClient) -> Counter[str]:
    """Namespace -> how many of its pods are ready."""
    pods = [pod for name in NAMES for pod in (await admin.list(kinds.POD, name)).items]
    return Counter(pod["metadata"]["namespace"] for pod in pods if is_ready(pod))


async def test_one_of_three_processes_is_killed_in_the_middle_of_a_bring_up(control_plane: ControlPlane, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(CONFIGURATION))
    account = install_account(control_plane, "engine-shards", CONFIGURATION, shards=SHARDS)
    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMES[0])
        for name in NAMES[1:]:
            await admin.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        kubeconfig = control_plane.kubeconfig(account.name)
        with engines(tmp_path, kubeconfig, 3, "-A", "--shards", str(SHARDS), "--config", str(config)) as processes:

            async def all_share() -> bool:
                return [len(process.shards()) for process in processes] == [2, 2, 2]

            async def has_begun() -> bool:
                return any(namespace in NAMES for _, namespace in victim.writes())

            async def is_replaced() -> bool:
                return sum(len(process.shards()) for process in others) == SHARDS

            async def all_ready() -> bool:
                return await ready_pods(admin) == Counter(dict.fromkeys(NAMES, REPLICAS * PODS))

            await until(all_share)
            for name in NAMES:
                manifest = podcliqueset("llm", clique("worker", PODS), replicas=REPLICAS, namespace=name)
                await admin.create(kinds.PODCLIQUESET, name, manifest)
            victim = max(processes, key=lambda process: sum(shard_of(name, SHARDS) in process.shards() for name in NAMES))
            await until(has_begun)
            victim.kill()
            others = [process for process in processes if process is not victim]
            await until(is_replaced)
            await until(all_ready)
            writers = terms(processes)
            pods = {name: len((await admin.list(kinds.POD, name)).items) for name in NAMES}

        requests = Requests(control_plane).read()
        assert requests.denied[account.user] == set()
        assert {Right(LEASE.group, LEASE.plural, verb) for verb in ("get", "list", "create", "update")} <= requests.used[account.user]
        assert set(pods.values()) == {REPLICAS * PODS}
        assert set(NAMES) <= set(writers)
        for order in (writers[name] for name in NAMES):
            assert len(order) == 1 or (len(order) == 2 and order[0] == victim.name), writers
        assert all(left.exit_code == 143 for left in others)
        for name in NAMES:
            await admin.delete(kinds.NAMESPACE, "", name)
