"""Probes: the process works, and it is ready; what is wrong is named, each check in a line."""

import anyio
import pytest

from engine.errors import ClusterError, Forbidden, Unreachable
from engine.ids import Kind
from enginectl.serving import checks
from enginectl.serving.checks import LONGEST_PAUSE, Health, HealthCheck, Heartbeat, LeadershipCheck
from enginectl.serving.observability import probe_routes
from grove_sandbox.clock import VirtualClock
from providers.cache_state import FRESH_FOR, CacheState
from providers.http.message import IncomingRequest
from providers.kubernetes.connection_pool import DEFAULT_REQUEST_LIMITS
from resources.base.kinds import POD, SERVICE

pytestmark = pytest.mark.anyio

GOOD = HealthCheck("ping", Health)
BAD = HealthCheck("caches", lambda: Health(False, "not confirmed by the API server for 99 s: Pod"))


async def get(path: str, *readiness: HealthCheck, **query: str) -> tuple[int, str]:
    """The status and the text of a probe."""
    routes = probe_routes([GOOD], readiness)
    response = await routes["GET", path](IncomingRequest("GET", path, query))
    return response.status, response.body.decode()


def cache(kind: Kind, age: float, error: ClusterError | None = None, *, is_filled: bool = True) -> CacheState:
    """A cache that was confirmed `age` seconds before the time 1000."""
    return CacheState(kind, "", 1000 - age, is_filled, error, 1)


async def judged(*states: CacheState) -> Health:
    """What the check of these caches says at the time 1000."""
    clock = VirtualClock()
    await clock.advance(1000 - clock.monotonic())
    return checks.caches(lambda: states, clock).judge()


async def test_a_probe_that_is_good_says_ok() -> None:
    assert await get("/readyz", GOOD) == (200, "ok")
    assert await get("/healthz", BAD) == (200, "ok")
    assert await get("/livez", BAD) == (200, "ok")


async def test_a_probe_that_fails_lists_all_checks_and_the_reason() -> None:
    assert await get("/readyz", GOOD, BAD) == (
        500,
        "[+]ping ok\n[-]caches failed: not confirmed by the API server for 99 s: Pod\nreadyz check failed\n",
    )


async def test_verbose_lists_the_checks_of_a_good_probe() -> None:
    leads = LeadershipCheck()
    leads.leading(True)

    assert await get("/readyz", GOOD, leads.check(), verbose="") == (200, "[+]ping ok\n[+]leader-election ok: leads\nreadyz check passed\n")


async def test_a_check_can_be_asked_alone_or_left_out() -> None:
    assert (await get("/readyz/caches", GOOD, BAD))[0] == 500
    assert await get("/readyz/ping", GOOD, BAD) == (200, "ok")
    assert await get("/readyz", GOOD, BAD, exclude="caches") == (200, "ok")


async def test_a_main_loop_that_stands_still_is_noticed() -> None:
    clock = VirtualClock()
    heartbeat = Heartbeat(clock)
    check = checks.main_loop(heartbeat)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(heartbeat.run)
        await clock.advance(10 * LONGEST_PAUSE)
        while_it_runs = check.judge()
        tasks.cancel_scope.cancel()
    await clock.advance(LONGEST_PAUSE + 10)

    assert while_it_runs == Health()
    assert check.judge() == Health(False, f"the main loop has not answered for {LONGEST_PAUSE + 10:.0f} s")


async def test_caches_that_the_server_has_confirmed_are_fresh() -> None:
    assert await judged(cache(POD, FRESH_FOR), cache(SERVICE, 0)) == Health()


async def test_a_stale_cache_is_named_with_its_age() -> None:
    assert await judged(cache(POD, FRESH_FOR + 5, Unreachable("no answer from 10.0.0.1")), cache(SERVICE, 0)) == Health(
        False, "not confirmed by the API server for 90 s: Pod"
    )


def test_a_dead_watch_is_noticed_within_90_seconds() -> None:
    limits = DEFAULT_REQUEST_LIMITS
    an_idle_watch_is_confirmed_every = 62

    assert an_idle_watch_is_confirmed_every < limits.silence
    assert limits.silence + limits.connect < FRESH_FOR < 90


async def test_a_kind_that_we_may_not_read_is_told_and_does_not_count() -> None:
    assert await judged(cache(POD, 9999, Forbidden("system:serviceaccount:x cannot list pods"), is_filled=False)) == Health(
        message="not permitted to read Pod"
    )


async def test_the_first_list_has_the_same_time_as_a_confirmation() -> None:
    assert await judged(cache(POD, 5, is_filled=False)) == Health(message="still listing Pod")
    assert not (await judged(cache(POD, FRESH_FOR + 1, is_filled=False))).is_good


async def test_a_process_that_does_not_lead_is_ready() -> None:
    leadership = LeadershipCheck()

    assert await judged() == Health(message="nothing is watched: this process does not lead")
    assert leadership.check().judge() == Health(message="does not lead")


async def test_what_others_are_responsible_for_can_be_checked_too() -> None:
    is_ready = False
    check = checks.ready("certificates", lambda: is_ready, "the certificates are not ready yet")

    assert check.judge() == Health(False, "the certificates are not ready yet")
    is_ready = True
    assert check.judge() == Health()
