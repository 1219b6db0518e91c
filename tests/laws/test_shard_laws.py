"""The law of shards: whatever happens to the replicas, no two write in one namespace, and afterwards every namespace has a writer again."""

from collections import Counter
from dataclasses import dataclass
from functools import partial

import anyio
from hypothesis import example, given, note
from hypothesis import strategies as some

from engine.runtime.lease import Durations
from tests.laws.cases import cases
from tests.stories.replicas import Fleet, Replica, fleet, holders, pods_ready, populate, replicas_in, scale_in
from tests.stories.stage import Stage, stage

WITHOUT = ("driver", "autoscaler", "claims", "lws", "deployments")
"""Actors that the sets of these tests do not need."""
DURATIONS = Durations()
TROUBLES = ("kill", "stop", "suspend", "cut off", "cannot renew", "slow", "heal", "start")
RECOVERY = DURATIONS.lease + 5 * 1.2 * DURATIONS.retry
"""Seconds after the last fault within which every shard has a holder that lives.

That is the duration of a lease, and five periods: an attempt that fails because of an old answer, the detection of the new number of
replicas, and that of a lease that is free.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that happens to one of the replicas, some seconds after the last fault."""

    what: str
    replica: int
    after: float


FAULTS = some.builds(Fault, some.sampled_from(TROUBLES), some.integers(0, 4), some.sampled_from((0.0, 0.3, 1.1, 4.0, 9.5, 12.5, 16.0)))


LATE_WRITES = [
    Fault("start", 0, 16.0),
    Fault("slow", 0, 16.0),
    Fault("cannot renew", 0, 0.0),
    Fault("start", 0, 9.5),
    Fault("start", 0, 16.0),
]
"""A replica has something to write just before its renew deadline, and slowly."""


def strike(replicas: Fleet, fault: Fault, shards: int) -> None:
    """Let the fault happen. Without replicas that live, one starts."""
    alive = replicas.alive
    if fault.what == "start" or not alive:
        if len(alive) < 4:
            replicas.start(shards)
        return
    ACTIONS[fault.what](alive[fault.replica % len(alive)])


def cut_off(replica: Replica) -> None:
    """The network no longer carries its requests."""
    replica.is_cut_off = True


def keep_from_renewing(replica: Replica) -> None:
    """The server answers its writes, and not its requests for Leases."""
    replica.cannot_renew = True


def slow_down(replica: Replica) -> None:
    """Its writes take almost as long as the time between the renew deadline and the end of the lease.

    Longer ones are cut by the grace period of `apply`, which a virtual clock does not measure.
    """
    replica.slowness = 4.5


ACTIONS = {
    "kill": Replica.kill,
    "stop": lambda replica: replica.stop.cancel(),
    "suspend": Replica.suspend,
    "cut off": cut_off,
    "cannot renew": keep_from_renewing,
    "slow": slow_down,
    "heal": Replica.heal,
}


async def survive(shards: int, namespaces: int, number: int, faults: list[Fault]) -> None:
    async with stage(without=WITHOUT) as cluster, fleet(cluster) as replicas:
        names = await populate(cluster, namespaces)
        for _ in range(number):
            replicas.start(shards)
        for index, fault in enumerate(faults):
            await cluster.clock.advance(fault.after)
            strike(replicas, fault, shards)
            await scale_in(cluster, names[index % namespaces], 2 + index // namespaces)
        for replica in replicas.alive:
            replica.heal()
        if not replicas.alive:
            replicas.start(shards)

        try:
            await recover(cluster, replicas, shards, names)
        except TimeoutError:
            note(f"{holders(cluster, shards)} {pods_ready(cluster)}\n{replicas.logs}")
            raise

        assert replicas.fouls == []
        assert set(replicas.created.values()) == {1}


async def recover(cluster: Stage, replicas: Fleet, shards: int, names: list[str]) -> None:
    """Wait until every shard has a living holder, within the bound; then until all is settled, and the shards are divided evenly."""

    def all_held() -> bool:
        return {replica.identity for replica in replicas.alive} >= set(holders(cluster, shards))

    await cluster.until(all_held, within=RECOVERY)
    asked = {name: replicas_in(cluster, name) for name in names}
    await cluster.until(lambda: pods_ready(cluster) == Counter(asked), within=120)
    alive = len(replicas.alive)
    fair = {shards // alive, -(-shards // alive)}

    def is_fair() -> bool:
        return all_held() and {replicas.shares(shards)[replica.identity] for replica in replicas.alive} <= fair

    # A replica that has been in trouble until now may be about to lose a lease.
    await cluster.clock.advance(2 * DURATIONS.lease)
    await cluster.until(is_fair, within=60)
    before = holders(cluster, shards)
    await cluster.clock.advance(60)
    assert holders(cluster, shards) == before


@cases(14)
@given(some.integers(2, 5), some.integers(1, 5), some.integers(1, 4), some.lists(FAULTS, max_size=8))
@example(2, 2, 2, LATE_WRITES)
def test_whatever_happens_to_replicas_no_two_write_in_one_namespace_and_every_namespace_has_a_writer_again(
    shards: int, namespaces: int, number: int, faults: list[Fault]
) -> None:
    anyio.run(partial(survive, shards, namespaces, number, faults))
