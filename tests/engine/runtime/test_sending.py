"""Sending: namespaces and roots take turns, whatever each of them asks for."""

import anyio
import pytest
from msgspec.structs import replace

from engine.errors import Forbidden
from engine.plan import Plan
from engine.runtime.apply import Sending
from engine.runtime.refusals import FEW, Refusals
from engine.runtime.turns import BURST
from engine.verb import Verb
from grove_sandbox.clock import VirtualClock
from tests.engine.runtime.fakes import LEAF, ROOT, FakeProvider, body, change, create, leaf, plan
from tests.sending import apply

pytestmark = pytest.mark.anyio


async def order_of(*plans: Plan) -> list[str]:
    """The names of the objects in the order of their calls, one at a time."""
    provider = FakeProvider()
    await apply(plans, provider, VirtualClock(), concurrency=1)
    return [key.rpartition("/")[2] for key in provider.started]


def chain(owner: str, length: int = 3, namespace: str = "default") -> Plan:
    """A plan of creates that follow one another, of a root of that name."""
    names = [f"{owner}-{number}" for number in range(length)]
    creates = [create(name, *names[max(0, place - 1) : place]) for place, name in enumerate(names)]
    return replace(plan(*creates), root=ROOT.id(namespace, owner))


def crowd(owner: str, count: int, namespace: str = "default") -> Plan:
    """A plan of so many creates, of a root of that name."""
    return replace(plan(*(create(f"{owner}-{number}") for number in range(count))), root=ROOT.id(namespace, owner))


@pytest.mark.parametrize("namespace", ["default", "another"])
async def test_a_short_plan_does_not_wait_for_a_long_one(namespace: str) -> None:
    order = await order_of(crowd("large", 500), chain("small", namespace=namespace))

    assert order[:3] == ["small-0", "small-1", "small-2"]


async def test_long_plans_take_turns_and_so_do_namespaces() -> None:
    plans = [crowd("one", 500), crowd("two", 500), crowd("three", 500, "another")]

    order = [name.partition("-")[0] for name in await order_of(*plans)]

    half = order[: 4 * BURST]
    assert half.count("three") == 2 * BURST, "half of the calls are of the one root in the other namespace"
    assert half.count("one") == half.count("two") == BURST


async def test_short_plans_are_completed_one_after_the_other() -> None:
    order = await order_of(*(chain(f"set{number}", namespace=f"n{number % 3}") for number in range(9)))

    assert order == [f"{name.partition('-')[0]}-{place}" for name in order[::3] for place in range(3)]


async def test_what_is_added_later_is_sent_before_the_rest_of_a_long_plan() -> None:
    provider = FakeProvider()
    sending = Sending(provider, VirtualClock(), concurrency=2)
    sending.add([crowd("large", 1000)])
    provider.on_call = lambda key: sending.add([chain("small", namespace="another")]) if key.endswith("/large-400") else None

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sending.run)
        await sending.until(lambda: not sending.plans)
        tasks.cancel_scope.cancel()

    names = [key.rpartition("/")[2] for key in provider.started]
    assert names.index("small-2") - names.index("large-400") < 10


async def test_the_status_of_a_plan_that_is_done_does_not_wait_for_other_plans() -> None:
    provider, status = FakeProvider(body(LEAF, "reported")), change(Verb.STATUS, leaf("reported"), {"status": {"ready": 1}})
    short = replace(plan(create("leaf"), status), root=ROOT.id("another", "short"))

    await apply([crowd("large", 500), short], provider, VirtualClock(), concurrency=2)

    assert provider.started.index(status.key) < 10


async def test_nothing_more_is_sent_of_a_plan_that_is_dropped() -> None:
    provider = FakeProvider()
    sending = Sending(provider, VirtualClock(), concurrency=1)
    sending.add([crowd("large", 100), crowd("other", 10)])
    provider.on_call = lambda key: sending.drop(lambda sent: sent.plan.root.name == "large") if key.endswith("/large-20") else None

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sending.run)
        await sending.until(lambda: not sending.plans)
        tasks.cancel_scope.cancel()

    names = [key.rpartition("/")[2] for key in provider.started]
    assert [name for name in names if name.startswith("large")][-1] == "large-20"
    assert sum(name.startswith("other") for name in names) == 10
    assert len(sending.take_results()) == len(names)


async def test_calls_like_those_that_are_refused_are_left_and_all_others_are_sent() -> None:
    provider, sort = FakeProvider(), 500
    refused = [create(f"refused-{number}") for number in range(sort)]
    after, names = create("last", "refused-400"), [f"other-{number}" for number in range(sort)]
    others = [change(Verb.CREATE, ROOT.id("default", name), body(ROOT, name)) for name in names]
    for operation in refused:
        provider.failing[operation.key] = [Forbidden("no room")]
    sending = Sending(provider, VirtualClock(), concurrency=4, refusals=Refusals(FEW))
    sending.add([replace(plan(*refused, after, *others), root=ROOT.id("default", "mine")), chain("small")])
    await sending.finish()

    assert sum("refused" in key for key in provider.started) < FEW + 4
    assert after.key not in provider.started
    assert {operation.key for operation in others} < set(provider.started)
    assert {f"small-{number}" for number in range(3)} < {key.rpartition("/")[2] for key in provider.started}
    assert len(sending.take_results()) == len(provider.started)
