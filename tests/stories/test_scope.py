"""A sync with a focus: what was forecast for the sets in it is done, and the other sets stay as they are."""

import pytest

from engine.runtime.sync_report import Ending
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds
from tests.mnnvl.sets import named
from tests.stories.fabric import rack
from tests.stories.forecasts import forecast_then_sync
from tests.stories.stage import Stage

pytestmark = pytest.mark.anyio


async def revisions(cluster: Stage, name: str) -> dict[str, str]:
    """The revisions of a set and of the objects whose names begin with its name."""
    shown = (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.PODGANG, kinds.SERVICE, kinds.POD, kinds.SERVICE_ACCOUNT)
    objects = [body for kind in shown for body in await cluster.objects(kind)]
    return {
        f"{body['kind']}/{body['metadata']['name']}": body["metadata"]["resourceVersion"]
        for body in objects
        if body["metadata"]["name"].startswith(name)
    }


async def test_the_forecast_of_one_of_two_sets_that_share_a_domain_is_what_sync_does_and_the_other_set_stays_as_it_is() -> None:
    async with rack() as cluster:
        await cluster.apply(named("rack", "other"))
        await cluster.sync()
        await cluster.delete(kinds.SERVICE, "other-0")
        before = await revisions(cluster, "other")

        comparison = await forecast_then_sync(cluster, [named("rack", "mine")])

        comparison.assert_equal()
        assert comparison.ending is Ending.DONE
        assert comparison.forecast is not None
        assert {id.name for id in comparison.forecast.effects} == {"mine"}
        assert await revisions(cluster, "other") == before
        (domain,) = await cluster.objects(COMPUTE_DOMAIN)
        assert [owner["name"] for owner in domain["metadata"]["ownerReferences"]] == ["other", "mine"]
