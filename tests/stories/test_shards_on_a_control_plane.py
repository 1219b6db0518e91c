"""Shards on a real control plane, under exactly their roles: one of three processes is killed in a bring-up, and nothing is made twice."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.runtime.lease import LEASE
from engine.shards import shard_of
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.audit import Requests, Right
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import started
from tests.controlplane.installed_accounts import install_account
from tests.stories.engine_processes import engines, terms
from tests.stories.pods import is_ready
from tests.stories.test_control_plane import connection, define
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMES = [f"shards-{number}" for number in range(6)]
REPLICAS, PODS = 3, 2
SHARDS = 6
ELECTION = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "1s", "resourceName": "shards", "resourceNamespace": "default"}
"""Long enough that a process on a busy machine does not lose a Lease."""
CONFIGURATION = {"leaderElection": ELECTION}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own: its engines work in all namespaces."""
    with started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=10, audit=True) as made:
        yield made


async def ready_pods(admin: KubernetesClient) -> Counter[str]:
    """Namespace -> how many of its pods are ready."""
    pods = [pod for name in NAMES for pod in (await admin.list(kinds.POD, name)).items]
    return Counter(pod["metadata"]["namespace"] for pod in pods if is_ready(pod))


async def test_one_of_three_processes_is_killed_in_the_middle_of_a_bring_up(plane: ControlPlane, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(CONFIGURATION))
    account = install_account(plane, "engine-shards", CONFIGURATION, shards=SHARDS)
    async with connection(plane, "admin") as admin:
        await define(admin, NAMES[0])
        for name in NAMES[1:]:
            await admin.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        kubeconfig = plane.kubeconfig(account.name)
        with engines(tmp_path, kubeconfig, 3, "-A", "--shards", str(SHARDS), "--config", str(config)) as processes:

            async def all_ready() -> bool:
                return await ready_pods(admin) == Counter(dict.fromkeys(NAMES, REPLICAS * PODS))

            await eventually(lambda: [len(process.shards()) for process in processes] == [2, 2, 2])
            for name in NAMES:
                manifest = podcliqueset("llm", clique("worker", PODS), replicas=REPLICAS, namespace=name)
                await admin.create(kinds.PODCLIQUESET, name, manifest)
            victim = max(processes, key=lambda process: sum(shard_of(name, SHARDS) in process.shards() for name in NAMES))
            await eventually(lambda: any(namespace in NAMES for _, namespace in victim.writes()))
            victim.kill()
            others = [process for process in processes if process is not victim]
            await eventually(lambda: sum(len(process.shards()) for process in others) == SHARDS)
            await eventually(all_ready)
            writers = terms(processes)
            pods = {name: len((await admin.list(kinds.POD, name)).items) for name in NAMES}

        requests = Requests(plane).read()
        assert requests.denied[account.user] == set()
        assert {Right(LEASE.group, LEASE.plural, verb) for verb in ("get", "list", "create", "update")} <= requests.used[account.user]
        assert set(pods.values()) == {REPLICAS * PODS}
        assert set(NAMES) <= set(writers)
        for order in (writers[name] for name in NAMES):
            assert len(order) == 1 or (len(order) == 2 and order[0] == victim.name), writers
        assert all(left.exit_code == 143 for left in others)
