"""The driver over time: the order of events in the life of a domain."""

import pytest

from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, DOMAIN_LABEL
from resources.base.kinds import DAEMON_SET, POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from sandbox.tests.actors.domains import CONTROLLER, EVERYBODY, NO_CONTROLLER, NODES, OTHERS, Domains, domain, member, serving
from sandbox.tests.actors.manifests import gang
from sandbox.tests.actors.stage import Stage, on, running
from sandbox.tests.actors.test_actors import UnreliableClient, play_for
from tests.stories.domains import assert_invariants, violations

pytestmark = pytest.mark.anyio

OURS = "grove.io/computedomain-finalizer"
WORKERS = ("w-0", "w-1")
SETTLED_TURN, LAST_TURN = 45, 60
"""The turn of the loop from which on no actor changes anything, so that every turn before it is tried, and one that is late enough."""


async def come_up(stage: Stage, domains: Domains) -> str:
    """A domain, and once its template is there a gang of two in it; the domain's uid."""
    uid = await domains.create(domain("nvbw-0", finalizers=(OURS,)))
    await stage.turn(0.05)
    (template,) = (await stage.client.list(RESOURCE_CLAIM_TEMPLATE, "ml")).items
    assert (template["metadata"]["name"], template["metadata"]["labels"][DOMAIN_LABEL]) == ("nvbw-0", uid)
    await stage.create(gang("g", {"w": (2, WORKERS)}), *(member(name, "nvbw-0", gang="g", clique="w") for name in WORKERS))
    return uid


async def test_set_up() -> None:
    async with serving() as (stage, domains):
        uid = await come_up(stage, domains)
        assert await domains.status("nvbw-0") == ("Ready", [])
        assert await domains.finalizers("nvbw-0") == [OURS, DOMAIN_LABEL]

        await stage.turn(0.5)
        assert {await stage.node_of(name) for name in WORKERS} == {"node-0000", "node-0001"}
        assert await domains.labelled() == {"node-0000": uid, "node-0001": uid}
        await assert_invariants(stage.client)

        await stage.turn(1)
        assert await domains.status("nvbw-0") == ("NotReady", [("node-0000", 0, "NotReady"), ("node-0001", 1, "NotReady")])
        assert [await stage.is_ready(name) for name in WORKERS] == [False, False]

        await stage.turn(3)
        assert await domains.status("nvbw-0") == ("Ready", [("node-0000", 0, "Ready"), ("node-0001", 1, "Ready")])
        assert [await stage.is_ready(name) for name in WORKERS] == [True, True]
        await assert_invariants(stage.client)


async def test_deletion_in_the_right_order() -> None:
    async with serving() as (stage, domains):
        uid = await come_up(stage, domains)
        await stage.turn(6)
        for name in WORKERS:
            await stage.client.delete(POD, "ml", name)
        for _ in range(8):
            await stage.turn(0.5)
            await assert_invariants(stage.client)
        assert (await stage.names(POD), await stage.names(RESOURCE_CLAIM), await domains.labelled()) == (set(), set(), {})
        assert (await domains.daemons(), await domains.status("nvbw-0")) == ([], ("Ready", []))

        await domains.delete("nvbw-0")
        await stage.turn(0.5)
        assert await domains.finalizers("nvbw-0") == [OURS]
        assert (await domains.made(uid, RESOURCE_CLAIM_TEMPLATE), await domains.made(uid, DAEMON_SET)) == ([], [])
        await stage.client.patch(COMPUTE_DOMAIN, "ml", "nvbw-0", {"metadata": {"finalizers": None}})
        assert await domains.get("nvbw-0") is None
        await assert_invariants(stage.client)


async def test_deletion_while_the_controller_is_down() -> None:
    async with serving(*OTHERS, "driver", options=NO_CONTROLLER) as (stage, domains):
        async with on(stage, "driver", options=CONTROLLER):
            uid = await come_up(stage, domains)
            await stage.turn(6)
            assert await stage.is_ready("w-0")
        for name in WORKERS:
            await stage.client.delete(POD, "ml", name)
        await stage.turn(5)
        assert (await stage.names(POD), await domains.labelled()) == (set(), {})

        await domains.delete("nvbw-0")
        await stage.turn(3600)
        assert await domains.finalizers("nvbw-0") == [OURS, DOMAIN_LABEL]
        assert len(await domains.made(uid, RESOURCE_CLAIM_TEMPLATE)) == 2

        async with on(stage, "driver", options=CONTROLLER):
            await stage.turn(1)
            assert await domains.finalizers("nvbw-0") == [OURS]
            assert await domains.made(uid, RESOURCE_CLAIM_TEMPLATE) == []


async def test_a_domain_that_is_deleted_under_its_pods() -> None:
    async with serving() as (stage, domains):
        uid = await come_up(stage, domains)
        await stage.turn(6)
        await domains.delete("nvbw-0")

        await stage.turn(0.1)
        assert (await domains.labelled(), await domains.finalizers("nvbw-0")) == ({}, [OURS])
        assert (await domains.made(uid, RESOURCE_CLAIM_TEMPLATE), await domains.made(uid, DAEMON_SET)) == ([], [])
        assert {one.partition(":")[0] for one in await violations(stage.client)} == {"I1"}

        await stage.turn(1.5)
        assert await domains.daemons() == []
        assert [await stage.is_ready(name) for name in WORKERS] == [True, True]

        await stage.turn(6)
        for name in WORKERS:
            (container,) = (await stage.pod(name))["status"]["containerStatuses"]
            assert container["lastState"]["terminated"]["reason"] == "IMEXLost"
            await stage.client.delete(POD, "ml", name)
        await stage.turn(5)
        assert (await stage.names(POD), await stage.names(RESOURCE_CLAIM), await domains.labelled()) == (set(), set(), {})
        assert await domains.finalizers("nvbw-0") == [OURS]


@pytest.mark.parametrize("seed", range(6))
async def test_lost_answers_and_conflicts_cost_time_only(seed: int) -> None:
    async with running(*EVERYBODY, options=NODES, client=lambda api: UnreliableClient(api, seed)) as stage:
        domains = Domains(stage)
        await stage.turn(5)
        uid = await domains.create(domain("nvbw-0", finalizers=(OURS,)))
        await stage.turn(30)
        await stage.create(gang("g", {"w": (2, WORKERS)}), *(member(name, "nvbw-0", gang="g", clique="w") for name in WORKERS))
        await stage.turn(200)
        assert [await stage.is_ready(name) for name in WORKERS] == [True, True]
        status, nodes = await domains.status("nvbw-0")
        assert (status, {name for name, _, _ in nodes}) == ("Ready", {"node-0000", "node-0001"})
        assert [(index, ready) for _, index, ready in nodes] == [(0, "Ready"), (1, "Ready")]
        await assert_invariants(stage.client)

        for name in WORKERS:
            await stage.client.delete(POD, "ml", name)
        await stage.turn(200)
        await domains.delete("nvbw-0")
        await stage.turn(1200)
        assert (await stage.names(POD), await stage.names(RESOURCE_CLAIM), await domains.labelled()) == (set(), set(), {})
        assert (await domains.finalizers("nvbw-0"), await domains.daemons()) == ([OURS], [])
        assert (await domains.made(uid, RESOURCE_CLAIM_TEMPLATE), await domains.made(uid, DAEMON_SET)) == ([], [])


async def test_actors_can_be_restarted_at_any_time_with_the_same_result() -> None:
    async with running() as stage:
        domains = Domains(stage)
        async with on(stage, *EVERYBODY, options=NODES):
            await stage.turn(1)
            await domains.create(domain("nvbw-0"))
        await stage.create(gang("g", {"w": (2, WORKERS)}), *(member(name, "nvbw-0", gang="g", clique="w") for name in WORKERS))
        for turns in range(1, LAST_TURN):
            await play_for(stage, turns, NODES)
            if turns % 10 == 0:
                await stage.clock.advance(1)
        async with on(stage, *EVERYBODY, options=NODES):
            await stage.turn(60)
            assert [await stage.is_ready(name) for name in WORKERS] == [True, True]
            await assert_invariants(stage.client)
            for name in WORKERS:
                await stage.client.delete(POD, "ml", name)
        for turns in range(1, LAST_TURN):
            await play_for(stage, turns, NODES)
            if turns % 10 == 0:
                await stage.clock.advance(1)
            if turns == SETTLED_TURN:
                settled = stage.api.revision
        assert settled == stage.api.revision
        async with on(stage, *EVERYBODY, options=NODES):
            await stage.turn(60)
            assert (await stage.names(POD), await stage.names(RESOURCE_CLAIM), await domains.labelled()) == (set(), set(), {})
