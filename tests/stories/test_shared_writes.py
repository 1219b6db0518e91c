"""An object that several roots write in one pass is written for one of them, and what was forecast is what is written."""

from collections.abc import Awaitable, Callable, Mapping

import pytest

from engine.errors import ClusterError, Forbidden
from engine.runtime.sync_report import Ending
from enginectl.actions.planning import first_pass_of
from resources.base import kinds
from resources.preview.forecasting import forecast_of
from tests.mnnvl.sets import named
from tests.stories.fabric import domains, rack, uids
from tests.stories.forecasts import comparison
from tests.stories.process import Call
from tests.stories.stage import Stage
from tests.stories.test_unlisted_objects import patches, refused

pytestmark = pytest.mark.anyio

SHARING = ("one", "three", "two")


async def all_are_deleted(cluster: Stage) -> None:
    for name in SHARING:
        await cluster.delete(kinds.PODCLIQUESET, name)


async def two_are_deleted(cluster: Stage) -> None:
    for name in SHARING[:2]:
        await cluster.delete(kinds.PODCLIQUESET, name)


async def all_are_scaled_to_nothing(cluster: Stage) -> None:
    for name in SHARING:
        await cluster.scale(kinds.PODCLIQUESET, name, 0)


async def one_leaves_and_others_join(cluster: Stage) -> None:
    await cluster.delete(kinds.PODCLIQUESET, "one")
    for name in ("four", "five"):
        await cluster.apply(named("rack", name))


EDITS: Mapping[Callable[[Stage], Awaitable[None]], bool] = {
    all_are_deleted: False,
    two_are_deleted: True,
    all_are_scaled_to_nothing: False,
    one_leaves_and_others_join: True,
}
"""Edit -> whether a set still uses the domain afterwards."""


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
async def test_sets_that_leave_or_join_a_shared_domain_at_once_write_it_one_after_the_other(
    edit: Callable[[Stage], Awaitable[None]],
) -> None:
    async with rack() as cluster:
        for name in SHARING:
            await cluster.apply(named("rack", name))
        assert (await cluster.sync()).ending is Ending.DONE
        before = uids(cluster)
        await edit(cluster)

        forecast = forecast_of(first_pass_of(await cluster.look()))
        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert refused(cluster.process) == []
        comparison(forecast, report).assert_equal()
        assert forecast is not None
        done = (result.operation for result in report.results)
        assert patches(forecast.operations()) == patches(done)
        assert (uids(cluster).get("rack") == before["rack"]) is EDITS[edit]


def refusing(name: str) -> Callable[[Call], ClusterError | None]:
    """The API server refuses every change of the set of that name itself."""
    return lambda call: Forbidden("not this set") if call == ("patch", kinds.PODCLIQUESET, name) else None


async def test_a_set_that_cannot_be_written_holds_back_no_other_set_that_joins_the_same_domain() -> None:
    async with rack() as cluster:
        await cluster.apply(named("rack", "two"))
        assert (await cluster.sync()).ending is Ending.DONE
        before, ours = uids(cluster), cluster.start()
        ours.refuses = refusing("a")
        for name in ("a", "b"):
            await cluster.apply(named("rack", name))

        await cluster.sync(ours, patience=120)

        assert owners(cluster) == {"b", "two"}
        assert uids(cluster) == before
        assert [name for name in cluster.there(kinds.POD) if name.startswith("b-0-")]


async def test_a_set_that_cannot_be_written_holds_back_no_other_set_that_is_deleted() -> None:
    async with rack() as cluster:
        await cluster.apply(named("rack", "two"))
        assert (await cluster.sync()).ending is Ending.DONE
        ours = cluster.start()
        ours.refuses = refusing("a")
        await cluster.apply(named("rack", "a"))
        await cluster.delete(kinds.PODCLIQUESET, "two")

        await cluster.sync(ours, patience=120)

        assert [*cluster.there(kinds.PODCLIQUESET)] == ["a"]


def owners(cluster: Stage) -> set[str]:
    """The sets that use the domain."""
    return {owner["name"] for owner in domains(cluster)["rack"]["metadata"]["ownerReferences"]}
