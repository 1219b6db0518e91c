"""Announcement: what `sync` writes to stderr, before its first write, of what a preview shows besides the plan.

If it fails, the sync goes on.
"""

from typing import Final

from msgspec.structs import replace

from engine.intent import Intent
from engine.report.model import Report, without_notes
from engine.report.text import remark_lines
from engine.runtime.clock import cancelled_at
from engine.runtime.passes import Engine, Pass
from enginectl.actions.facts import with_requirements
from enginectl.actions.planning import write_notices
from enginectl.actions.preview import Preview, shown_and_facts, shown_if_possible
from enginectl.base import terminal
from enginectl.base.runner import report_internal_error
from enginectl.wiring.configuration import Wiring
from resources.ports.configuration import Configuration
from resources.preview.facts import NO_FACTS, FirstPass
from resources.preview.forecasting import can_be_forecast, objects_of, restricted
from resources.preview.pod_patterns import with_patterns
from resources.preview.shown import gang_notices

MOST_WORK: Final = 20_000
"""How much work, as `engine.forecast.simulation` counts it, the forecast of an announcement may be: a few seconds of it."""
WORK_PER_SECOND: Final = 500
"""How much of it for each second that is left to the sync."""
WORK_OF_OBJECT: Final = 10
"""How much of it counts as used by each object to begin with: there is no forecast for more than 2,000 objects."""
SHARE: Final = 0.25
"""The part of the time left after which an unfinished announcement is written without facts and forecast."""
TOO_LARGE: Final = "room and quotas are not checked before this sync: that would take too much of its time; see `engine diff`"
NOT_IN_TIME: Final = "room and quotas are not checked before this sync: they could not be read in time"
NO_ANNOUNCEMENT: Final = "what speaks against the plan is not told before it is applied"


class Announcement:
    """What one sync writes besides its result, at most once: after its preview if it makes one, else before its first write."""

    def __init__(self, wiring: Wiring, *, is_due: bool) -> None:
        self._wiring = wiring
        self.is_due = is_due
        """Whether it is still to be made."""

    def of_preview(self, seen: Preview, *, is_shown: bool) -> None:
        """Write the obstacles of a plan that was previewed. `is_shown`: whether a gate writes them."""
        if self.is_due and not is_shown:
            write_remarks(self._wiring, seen.report, seen.intent)
        self.is_due = False

    async def of_first_pass(self, engine: Engine[Configuration], first: FirstPass, left: float, *, assume_nodes: bool) -> None:
        """See `announce`."""
        self.is_due = False
        await announce(self._wiring, engine, first, left, assume_nodes=assume_nodes)

    def of_last_pass(self, current: Pass[Configuration]) -> None:
        """Write which gangs no scheduler places, if nothing else was announced: nothing had to be written."""
        if self.is_due:
            write_notices(gang_notices(current.world, current.planned.plans, self._wiring.configuration))


async def announce(wiring: Wiring, engine: Engine[Configuration], first: FirstPass, left: float, *, assume_nodes: bool) -> None:
    """Write to stderr what a preview shows besides the plan; `engine` reads the facts. `left`: the seconds that the sync has.

    Large workloads are not forecast if that would take too much of that time. Failures, and facts that are not read in time, are noted.
    """
    clock, verbose = wiring.clock, wiring.options.verbose
    first = replace(first, work=min(MOST_WORK, WORK_PER_SECOND * left))
    is_large = can_be_forecast(first) and objects_of(restricted(first)) * WORK_OF_OBJECT > first.work
    try:
        async with cancelled_at(clock, clock.monotonic() + SHARE * left) as limit:
            first = await with_requirements(engine, first)
            seen, _ = await shown_and_facts(wiring, engine, first, only_next=is_large, assume_nodes=assume_nodes)
        if limit.cancelled_caught:
            seen = shown_if_possible(first, None, NO_FACTS, verbose=verbose)
    except Exception as error:
        report_internal_error(error, verbose=verbose, about=NO_ANNOUNCEMENT)
        return
    write_notices(seen.notices)
    write_notices([NOT_IN_TIME] if limit.cancelled_caught else [TOO_LARGE] if is_large else [])
    write_remarks(wiring, seen.report, first.intent)


def write_remarks(wiring: Wiring, report: Report, intent: Intent) -> None:
    """Write the obstacles of a plan to stderr, before anything is applied, less the warnings about manifests that are there already."""
    for line in remark_lines(with_patterns(without_notes(report, intent.warned)), verbose=wiring.options.verbose):
        terminal.notice(line)
