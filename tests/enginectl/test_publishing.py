"""The leader of `engine run` keeps what the installation publishes equal to what it plans with, and nobody else writes it."""

import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.errors import NotFound
from engine.runtime.lease import LEASE
from engine.runtime.logs import logger
from enginectl.actions.publishing import INTERVAL, Publisher
from enginectl.base.options import Options
from enginectl.wiring.configuration import Wiring, configuration_of
from grove_sandbox.api.verbs import Api
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.clock import VirtualClock
from resources.base.kinds import CONFIG_MAP
from resources.base.kinds import NAMESPACE as NAMESPACED
from resources.install.publication import NAME, NAMESPACE
from resources.settings import valid_settings
from tests.enginectl.publications import publication

pytestmark = pytest.mark.anyio

OURS = {"network": {"autoMNNVLEnabled": True}, "leaderElection": {"resourceNamespace": "locks", "resourceName": "lock"}}
OTHERS = {**OURS, "network": {"autoMNNVLEnabled": False}}


@dataclass
class Cluster:
    """A cluster in memory, in virtual time."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    log: io.StringIO = field(default_factory=io.StringIO)
    moved: list[int] = field(default_factory=list)
    """One entry for each process that was told to end."""

    def __post_init__(self) -> None:
        self.client = InProcessClient(Api(self.clock, seed=1), "engine")

    async def publish(self, body: Mapping[str, Any]) -> None:
        """The object becomes this one."""
        try:
            await self.client.delete(CONFIG_MAP, NAMESPACE, NAME)
        except NotFound:
            pass
        await self.client.create(CONFIG_MAP, NAMESPACE, body)

    async def stored(self) -> dict[str, Any]:
        """The object."""
        return await self.client.get(CONFIG_MAP, NAMESPACE, NAME)

    async def is_ours(self) -> bool:
        """Whether the object has our configuration."""
        return "autoMNNVLEnabled: true" in (await self.stored())["data"]["config.yaml"]

    def wiring(self, configuration: Mapping[str, Any] = OURS) -> Wiring:
        """A process with this configuration."""
        settings = valid_settings(configuration)
        return Wiring(Options(config=Path("operator.yaml")), settings, configuration_of(settings), self.clock)

    def publisher(self, configuration: Mapping[str, Any] = OURS, *, namespace: str = "grove-system", shards: int = 1) -> Publisher:
        """What publishes in such a process."""
        log = logger(self.log, format="json", verbose=False, colour=False)
        return Publisher(
            self.wiring(configuration), self.client, log, namespace=namespace, shards=shards, on_moved=lambda: self.moved.append(1)
        )

    def events(self) -> list[str]:
        """What was logged: the event, and its reason or fields."""
        lines = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [f"{line['event']}: {line.get('reason', line.get('fields'))}" for line in lines]


@asynccontextmanager
async def working(*publishers: Publisher) -> AsyncIterator[None]:
    """They work while the block runs."""
    async with anyio.create_task_group() as tasks:
        for publisher in publishers:
            tasks.start_soon(publisher.run)
        yield
        tasks.cancel_scope.cancel()


async def test_who_begins_to_lead_publishes_at_once_and_who_stands_by_never_does() -> None:
    cluster = Cluster()
    await cluster.publish(publication(OTHERS))
    leader, standby = cluster.publisher(), cluster.publisher({**OURS, "dynamo": {"natsAddress": "nats://other"}})
    async with working(leader, standby):
        await cluster.clock.advance(10 * INTERVAL)
        before = await cluster.is_ours()
        leader.holds("lock", True)
        await cluster.clock.advance(1)
        after = await cluster.is_ours()
        await cluster.clock.advance(10 * INTERVAL)

    assert (before, after) == (False, True)
    assert cluster.events() == ["configuration published: network.autoMNNVLEnabled"]


async def test_what_is_equal_is_not_written_however_it_is_spelled() -> None:
    cluster = Cluster()
    minimal = "network: {autoMNNVLEnabled: true}\nleaderElection: {resourceName: lock, resourceNamespace: locks}\n"
    await cluster.publish(publication(OURS, config_yaml=minimal))
    before, publisher = await cluster.stored(), cluster.publisher()
    async with working(publisher):
        publisher.holds("lock", True)
        await cluster.clock.advance(10 * INTERVAL)

    assert (await cluster.stored(), cluster.events()) == (before, [])


async def test_a_changed_configuration_is_published_at_once() -> None:
    cluster = Cluster()
    await cluster.publish(publication(OTHERS))
    publisher = cluster.publisher(OTHERS)
    async with working(publisher):
        publisher.holds("lock", True)
        await cluster.clock.advance(5)
        publisher.use(cluster.wiring())
        await cluster.clock.advance(1)
        assert await cluster.is_ours()


async def test_the_lease_stays_that_of_the_start() -> None:
    cluster = Cluster()
    await cluster.publish(publication(OTHERS))
    publisher = cluster.publisher(OTHERS)
    async with working(publisher):
        publisher.holds("lock", True)
        publisher.use(cluster.wiring({**OURS, "leaderElection": {"resourceNamespace": "elsewhere", "resourceName": "other"}}))
        await cluster.clock.advance(1)

    assert await cluster.is_ours() and (await cluster.stored())["data"]["leases"] == "locks/lock"


async def test_a_change_by_others_is_given_the_time_in_which_the_file_follows() -> None:
    cluster = Cluster()
    await cluster.publish(publication(OURS))
    publisher = cluster.publisher()
    async with working(publisher):
        publisher.holds("lock", True)
        await cluster.clock.advance(INTERVAL + 1)
        await cluster.publish(publication(OTHERS))
        await cluster.clock.advance(INTERVAL)
        first = await cluster.is_ours()
        await cluster.clock.advance(INTERVAL)
        second = await cluster.is_ours()

    assert (first, second) == (False, True)


@pytest.mark.parametrize("text", ["network: [", "", "scheduler: {profiles: [{name: slurm}]}"])
async def test_an_object_that_is_no_configuration_is_repaired(text: str) -> None:
    cluster = Cluster()
    await cluster.publish(publication(OURS, config_yaml=text))
    publisher = cluster.publisher(namespace="")
    async with working(publisher):
        publisher.holds("lock", True)
        await cluster.clock.advance(1)

    stored = await cluster.stored()
    assert await cluster.is_ours() and stored["data"] == publication(OURS)["data"]


@pytest.mark.parametrize("leads", [True, False])
async def test_beside_an_installation_with_another_lease_a_process_ends_and_leaves_the_object(leads: bool) -> None:
    cluster = Cluster()
    await cluster.publish(publication(OURS))
    publisher = cluster.publisher()
    async with working(publisher):
        publisher.holds("lock", leads)
        await cluster.clock.advance(INTERVAL + 1)
        await cluster.publish(publication({**OTHERS, "leaderElection": {"resourceName": "other"}}))
        before = await cluster.stored()
        await cluster.clock.advance(INTERVAL)
        first = bool(cluster.moved)
        await cluster.clock.advance(3 * INTERVAL)

    assert (first, cluster.moved, await cluster.stored()) == (False, [1], before)
    assert "has the Lease default/other, and this process the Lease locks/lock" in publisher.moved
    assert [event.partition(": ")[0] for event in cluster.events()] == ["configuration not published"]


async def test_a_lease_that_is_named_by_mistake_and_corrected_ends_nothing() -> None:
    cluster = Cluster()
    await cluster.publish(publication(OURS))
    publisher = cluster.publisher()
    async with working(publisher):
        publisher.holds("lock", True)
        await cluster.clock.advance(INTERVAL + 1)
        await cluster.publish(publication({**OURS, "leaderElection": {"resourceName": "other"}}))
        await cluster.clock.advance(INTERVAL)
        await cluster.publish(publication(OURS))
        await cluster.clock.advance(5 * INTERVAL)

    assert (cluster.moved, publisher.moved) == ([], "")


async def test_a_missing_object_is_not_created_and_that_is_logged_once() -> None:
    cluster = Cluster()
    publisher = cluster.publisher()
    async with working(publisher):
        publisher.holds("lock", True)
        await cluster.clock.advance(10 * INTERVAL)
        with pytest.raises(NotFound):
            await cluster.stored()

    assert len(cluster.events()) == 1 and "there is no ConfigMap kube-public/grove-engine" in cluster.events()[0]


async def test_during_an_upgrade_the_object_says_what_the_leader_plans_with() -> None:
    cluster = Cluster()
    await cluster.publish(publication(OTHERS))
    old, new = cluster.publisher(OTHERS), cluster.publisher()
    async with working(old, new):
        old.holds("lock", True)
        await cluster.clock.advance(1)
        await cluster.publish(publication(OURS))  # Helm's upgrade, before the first new pod leads.
        await cluster.clock.advance(3 * INTERVAL)
        meanwhile = await cluster.is_ours()
        old.holds("lock", False)
        new.holds("lock", True)
        await cluster.clock.advance(10 * INTERVAL)

    assert (meanwhile, await cluster.is_ours()) == (False, True)
    assert len(cluster.events()) == 2


async def test_the_version_is_that_of_the_leader() -> None:
    cluster = Cluster()
    await cluster.publish(publication(OURS, version="0.0.9"))
    publisher = cluster.publisher()
    async with working(publisher):
        publisher.holds("lock", True)
        await cluster.clock.advance(1)

    assert (await cluster.stored())["data"]["version"] == "0.1.0"


async def test_with_shards_the_holder_of_the_first_one_publishes_all_leases() -> None:
    cluster = Cluster()
    await cluster.publish(publication(OURS))
    first, second = cluster.publisher(shards=3), cluster.publisher(OTHERS, shards=3)
    async with working(first, second):
        first.holds("lock", True)
        second.holds("lock-shard-1", True)
        second.leading(True)
        await cluster.clock.advance(10 * INTERVAL)

    assert await cluster.is_ours()
    assert (await cluster.stored())["data"]["leases"].split() == ["locks/lock", "locks/lock-shard-1", "locks/lock-shard-2"]


async def test_without_leader_election_the_only_process_publishes() -> None:
    cluster = Cluster()
    election = {"leaderElection": {"enabled": False}}
    await cluster.publish(publication({**OTHERS, **election}))
    publisher = cluster.publisher({**OURS, **election})
    async with working(publisher):
        publisher.leading(True)
        await cluster.clock.advance(1)

    assert await cluster.is_ours() and "leases" not in (await cluster.stored())["data"]


def operator_lease(clock: VirtualClock, **changes: Any) -> dict[str, Any]:
    """The Lease of Grove's operator, renewed now."""
    now = clock.now().strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    spec = {"holderIdentity": OPERATOR, "leaseDurationSeconds": 60, "renewTime": now, "acquireTime": now, "leaseTransitions": 1, **changes}
    meta = {"name": "grove-operator-leader-election", "namespace": "grove-system"}
    return {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": meta, "spec": spec}


OPERATOR = "grove-operator-7d9c8b6f5-x2k4p_0d7a6a3e-8f4b-4a51-9a39-6a1f0c6f2f11"
OF_GROVE = {"leaderElection": {"resourceNamespace": "grove-system", "resourceName": "grove-operator-leader-election"}}


@pytest.mark.parametrize(
    ("changes", "configuration", "ends"),
    [
        ({}, OURS, True),
        ({"holderIdentity": ""}, OURS, False),
        ({"renewTime": "2020-01-01T00:00:00.000000Z"}, OURS, False),
        ({}, OF_GROVE, False),
    ],
    ids=["held", "released", "expired", "the Lease is ours"],
)
async def test_a_process_ends_when_groves_operator_is_started_beside_it(
    changes: dict[str, Any], configuration: dict[str, Any], ends: bool
) -> None:
    cluster = Cluster()
    await cluster.client.create(NAMESPACED, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "grove-system"}})
    publisher = cluster.publisher(configuration)
    async with working(publisher):
        await cluster.clock.advance(3 * INTERVAL)
        before = list(cluster.moved)
        await cluster.client.create(LEASE, "grove-system", operator_lease(cluster.clock, **changes))
        await cluster.clock.advance(INTERVAL)
        await cluster.clock.advance(0)

    assert (before, bool(cluster.moved)) == ([], ends)
    assert ("Grove's operator runs in this cluster" in publisher.moved) == ends
