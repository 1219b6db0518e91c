"""Judging: what the policies that a user has named say about a plan and its forecast."""

from anyio import to_thread
from msgspec.structs import replace

from engine.report.model import Report
from engine.runtime.passes import Pass
from enginectl.input.plan_policies import Policies


async def judged(report: Report, observed: Pass, policies: Policies) -> Report:
    """The report of this pass with what the policies say about it; the report itself if there are none."""
    if not policies.rules:
        return report
    return await to_thread.run_sync(lambda: _judged(report, observed, policies))


def _judged(report: Report, observed: Pass, policies: Policies) -> Report:
    from providers.policies.process import expressions_of_child  # Needs an extra, as everything of that folder does.
    from resources.plan_policies.judge import judge
    from resources.plan_policies.plan_data import plan_data

    with expressions_of_child() as expressions:
        data = plan_data(report, observed.world, observed.now)
        return replace(report, judgement=judge(policies.rules, data, expressions, policies.waivers))
