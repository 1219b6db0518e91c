"""Behind webhooks: a cluster that asks our rules before every write lets the engine do all of its work, and nobody what must not be."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from engine.errors import Invalid
from engine.runtime.sync_report import Ending
from grove_sandbox.api.webhooks import Webhooks, install
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.stories.pods import images, is_ready
from tests.stories.stage import SETUP, Stage, stage

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def guarded() -> AsyncIterator[Stage]:
    """A cluster with our webhooks, in which sets with accelerators are enrolled."""
    async with stage(nodes=4) as cluster:
        cluster.setup = replace(SETUP, fabrics=(Nvidia(auto=True),))
        install(cluster.api, Webhooks(cluster.setup))
        yield cluster


def trainer(version: int, **spec: Any) -> dict[str, Any]:
    """Two pods with accelerators."""
    container = {"name": "main", "image": f"example/worker:{version}", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return podcliqueset("web", clique("worker", 2, pod_spec={"containers": [container]}, **spec))


async def test_an_enrolled_set_comes_up_is_edited_and_goes_and_no_write_of_ours_is_refused() -> None:
    async with guarded() as cluster:
        await cluster.apply(trainer(1))
        up = await cluster.sync()
        domains, refused = await cluster.names(COMPUTE_DOMAIN), list(cluster.process.refused)
        await cluster.apply(trainer(2))
        edited = await cluster.sync()
        pods = await cluster.objects(kinds.POD)
        refused += cluster.process.refused
        await cluster.delete(kinds.PODCLIQUESET, "web")
        gone = await cluster.sync()

    assert [up.ending, edited.ending, gone.ending] == [Ending.DONE] * 3
    assert domains == {"ComputeDomain web-0"}
    assert images(pods) == {"example/worker:2"}
    assert all(map(is_ready, pods))
    # An Event that an earlier process has written is found by creating it.
    assert [call for call in (*refused, *cluster.process.refused) if not call.startswith("create Event ")] == []


async def test_what_is_refused_leaves_no_trace() -> None:
    async with guarded() as cluster:
        with pytest.raises(Invalid, match='admission webhook "pcs.validating.webhooks.grove.io" denied the request'):
            await cluster.apply(trainer(1, minAvailable=3))

        assert await cluster.names() == set()


async def test_an_edit_that_is_refused_changes_nothing_that_runs() -> None:
    async with guarded() as cluster:
        await cluster.apply(trainer(1))
        await cluster.sync()
        before = await cluster.shape()
        with pytest.raises(Invalid, match="field is immutable"):
            await cluster.apply(trainer(2, roleName="other"))
        await cluster.sync()

        assert await cluster.shape() == before
        assert cluster.process.count == 0
