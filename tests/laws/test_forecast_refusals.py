"""The law of forecasts where the API server refuses: quotas, refused pods, and rights that a reader or a writer lacks."""

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as some

from engine.errors import ClusterError, Forbidden
from engine.forecast.forecast import End, Forecast
from engine.observed import live
from engine.runtime.sync_report import Ending
from enginectl.actions.planning import first_pass_of
from resources.base import kinds
from resources.preview.facts import Facts
from resources.preview.forecasting import forecast_of
from resources.preview.shown import shown
from tests.builders import applying
from tests.laws.test_forecast_laws import ROOT, histories
from tests.stories.forecasts import Comparison, comparison
from tests.stories.process import Call
from tests.stories.refusing import Quota, pods_of_image, refuse
from tests.stories.stage import Stage, stage

Body = dict[str, Any]
WRITERS_LACK = (kinds.POD, kinds.SERVICE, kinds.PODCLIQUE, kinds.PODGANG, kinds.ROLE, kinds.SECRET, kinds.SERVICE_ACCOUNT)
"""Kinds that an account may not create or delete."""


async def forecast_and_sync(
    cluster: Stage, manifest: Body, *, quota: Quota | None = None, lacks: Callable[[Call], ClusterError | None] = lambda call: None
) -> tuple[End, Comparison]:
    """What a preview shows of the end, and a sync after it, by an account without some rights; both know the quota."""
    if quota is not None:
        quota.count()
    reader = cluster.start()
    reader.refuses = lacks
    first = first_pass_of(await cluster.look([manifest], ours=reader), applying([manifest]))
    quotas = tuple(live(dict(body)) for body in cluster.there(kinds.RESOURCE_QUOTA).values())
    seen = shown(first, forecast_of(first), Facts(quotas))
    writer = cluster.start()
    writer.refuses = lacks
    report = await cluster.sync(writer, manifests=[manifest])
    return end_of(seen.forecast), comparison(seen.forecast, report)


def end_of(forecast: Forecast | None) -> End:
    """How it ends for the set; without a forecast nothing is left."""
    return forecast.end_of(ROOT) if forecast is not None else End.SETTLED


def assert_within(done: Comparison) -> None:
    """Nothing was done that was not forecast."""
    assert Counter(done.operations) <= Counter(done.forecast_operations)
    assert done.fields <= done.forecast_fields


@given(histories(), some.integers(0, 14), some.booleans())
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_set_settles_within_a_quota_if_and_only_if_that_is_forecast(history: list[Body], spare: int, early: bool) -> None:
    async def story() -> None:
        async with stage(nodes=30) as cluster:
            quota = Quota(cluster.api, spare) if early else None
            for manifest in history[:3]:
                end, done = await forecast_and_sync(cluster, manifest, quota=quota)
                event(f"quota: {end}")
                assert (end is End.SETTLED) is (done.ending is Ending.DONE), (end, done.ending)
                if end is End.SETTLED:
                    done.assert_equal()
                else:
                    assert done.ending is Ending.STUCK
                    assert_within(done)
                quota = quota or Quota(cluster.api, len(cluster.there(kinds.POD)) + spare // 3)

    anyio.run(story)


@given(histories(), some.integers(1, 3))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_a_server_refuses_of_a_new_template_is_forecast(history: list[Body], version: int) -> None:
    async def story() -> None:
        async with stage(nodes=30) as cluster:
            refuse(cluster.api, pods_of_image(f"example/worker:{version}"))
            for manifest in history[:3]:
                end, done = await forecast_and_sync(cluster, manifest)
                event(f"refused: {end} {done.ending}")
                if end is not End.SETTLED:
                    assert done.ending is Ending.STUCK
                    done.assert_equal()
                else:  # Nothing tells before what a new set, or a pod more, is refused.
                    assert done.ending in (Ending.DONE, Ending.STUCK)
                    assert_within(done)

    anyio.run(story)


@some.composite
def lacking(draw: Any) -> Callable[[Call], ClusterError | None]:
    """An account that may not create, patch or delete objects of a kind."""
    kind = draw(some.sampled_from(WRITERS_LACK))
    verbs = draw(some.sampled_from((("create",), ("delete",), ("patch",), ("create", "patch", "delete"))))

    def refuses(call: Call) -> ClusterError | None:
        verb, of, name = call
        if verb in verbs and of == kind:
            return Forbidden(f'{of.plural} "{name}" is forbidden: User "u" cannot {verb} resource "{of.plural}"')
        return None

    return refuses


@given(histories(), some.lists(lacking(), min_size=2, max_size=2))
@settings(max_examples=7, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_an_account_without_rights_leaves_is_forecast_for_one_that_has_them(
    history: list[Body], accounts: list[Callable[[Call], ClusterError | None]]
) -> None:
    async def story() -> None:
        async with stage(nodes=30) as cluster:
            for manifest, lacks in zip(history, accounts, strict=False):
                end, done = await forecast_and_sync(cluster, copy.deepcopy(manifest), lacks=lacks)
                event(f"lacking: {done.ending}")
                assert done.ending in (Ending.DONE, Ending.FAILED)
                assert_within(done)
                end, done = await forecast_and_sync(cluster, manifest)
                assert (end, done.ending) == (End.SETTLED, Ending.DONE)
                done.assert_equal()

    anyio.run(story)


def without_secrets(call: Call) -> ClusterError | None:
    """A reader: may not list Secrets, nor write anything."""
    verb, kind, name = call
    if verb not in ("get", "list") or (verb == "list" and kind == kinds.SECRET):
        return Forbidden(f'{kind.plural} "{name}" is forbidden: User "r" cannot {verb} resource "{kind.plural}"')
    return None


@given(histories(), some.integers(1, 30))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_a_reader_sees_in_the_middle_of_a_rollout_is_what_a_writer_does(history: list[Body], quarters: int) -> None:
    async def story() -> None:
        async with stage(nodes=30) as cluster:
            for manifest in history[:2]:
                await cluster.sync(manifests=[manifest], patience=quarters / 4)
                reader = cluster.start()
                reader.refuses = without_secrets
                first = first_pass_of(await cluster.look([manifest], ours=reader), applying([manifest]))
                assert not reader.writes
                comparison(forecast_of(first), await cluster.sync(manifests=[manifest])).assert_equal()

    anyio.run(story)
