"""The client without HTTP keeps the same promises as any other."""

from contextlib import aclosing

import anyio
import pytest

from engine import errors
from engine.runtime.provider import Client
from grove_sandbox.api.verbs import Api
from grove_sandbox.clients.inprocess import InProcessClient
from sandbox.tests.in_memory import CONFIG, POD, TOY, config, fresh, pod
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio


def client(api: Api | None = None) -> Client:
    """A client of a fresh API."""
    return InProcessClient(api or fresh(), "tester")


async def test_refusals_are_the_engines_own_errors() -> None:
    ours = client()
    made = await ours.create(CONFIG, "default", config("a"))

    with pytest.raises(errors.AlreadyExists):
        await ours.create(CONFIG, "default", config("a"))
    with pytest.raises(errors.NotFound):
        await ours.get(CONFIG, "default", "none")
    with pytest.raises(errors.NotFound):
        await ours.list(TOY)
    with pytest.raises(errors.Conflict):
        await ours.replace(CONFIG, "default", "a", config("a", resourceVersion="1"))
    with pytest.raises(errors.Conflict):
        await ours.delete(CONFIG, "default", "a", uid="another")
    with pytest.raises(errors.Invalid, match="Unsupported value") as refused:
        await ours.create(POD, "default", pod("p", restartPolicy="Perhaps"))
    with pytest.raises(errors.Forbidden):
        await ours.create(POD, "default", pod("p", serviceAccountName="nobody"))
    assert refused.value.reason == "Invalid"
    assert made["metadata"]["managedFields"][0]["manager"] == "tester"


async def test_a_watch_from_a_list_on_misses_nothing() -> None:
    ours = client()
    listing = await ours.list(CONFIG, "default")
    await ours.create(CONFIG, "default", config("a"))
    await ours.delete(CONFIG, "default", "a")

    async with aclosing(ours.watch(CONFIG, "default", since=listing.revision)) as events:
        seen = [(await anext(events))[0], (await anext(events))[0]]

    assert seen == ["ADDED", "DELETED"]


async def test_a_watch_from_a_forgotten_revision_says_expired() -> None:
    api = fresh(history=1)
    ours = client(api)
    start = api.revision
    for number in range(5):
        await ours.create(CONFIG, "default", config(f"c{number}"))

    with pytest.raises(errors.Expired):
        async with aclosing(ours.watch(CONFIG, since=start)) as events:
            await anext(events)


async def test_what_was_sent_may_be_changed_afterwards() -> None:
    ours = client()
    body = config("a", labels={"x": "1"})
    await ours.create(CONFIG, "default", body)

    body["metadata"]["labels"]["x"] = "2"

    assert (await ours.get(CONFIG, "default", "a"))["metadata"]["labels"] == {"x": "1"}


async def test_a_dry_run_leaves_nothing_behind() -> None:
    ours = InProcessClient(fresh(), "tester")

    await ours.trying().create(CONFIG, "default", config("a"))

    assert "a" not in [item["metadata"]["name"] for item in (await ours.list(CONFIG, "default")).items]


async def test_subresources_are_read_and_posted_to() -> None:
    ours = client()
    await ours.create(POD, "default", pod("p"))

    await ours.create(POD, "default", {"target": {"kind": "Node", "name": "n"}}, name="p", subresource="binding")
    await ours.patch(POD, "default", "p", {"status": {"phase": "Running"}}, subresource="status")

    bound = await ours.get(POD, "default", "p", subresource="status")
    assert (bound["spec"]["nodeName"], bound["status"]["phase"]) == ("n", "Running")


async def test_every_kind_is_named_once() -> None:
    with anyio.fail_after(PATIENCE):
        kinds = await client().kinds()

    assert len({(kind.group, kind.name) for kind in kinds}) == len(kinds)
