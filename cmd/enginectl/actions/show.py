"""`engine show`: the report of a saved plan."""

from engine.approval.saved_plan import SavedPlan
from engine.report.printable import Line, clipped
from enginectl.actions.diff import write_report
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import ReportFormat
from enginectl.wiring.configuration import Wiring

WIDTH = 200


def show_plan(wiring: Wiring, plan: SavedPlan, format: ReportFormat) -> Exit:
    """Write what was approved, in text after what it was made from."""
    if format is ReportFormat.TEXT:
        terminal.print_lines(head(plan))
    write_report(wiring, plan.report, plan.created_at, format)
    return Exit.DONE


def head(plan: SavedPlan) -> list[Line]:
    """When, by which engine and for what the plan was made, and how it is recognised."""
    namespaces = ", ".join(plan.scope.namespaces) or "all"
    applyset = [Line(f"  applyset   {clipped(str(parent), WIDTH)}", "faint")] if (parent := plan.scope.applyset) is not None else []
    removed = [
        Line(f"  removes    {clipped(str(id), WIDTH)} (uid {clipped(removal.uid, 80)}): {clipped(removal.why, WIDTH)}")
        for id, removal in plan.approval.removals.items()
    ]
    judged = [Line(f"  policy     {clipped(name, WIDTH)} ({clipped(value, 12)})") for name, value in plan.policies.items()]
    waived = [Line(f"  waived     {clipped(rule, WIDTH)}: {clipped(why, WIDTH)}") for rule, why in plan.waivers.items()]
    return [
        Line(f"plan {clipped(plan.digest, 80)}", "head"),
        Line(f"  made       {plan.created_at:%Y-%m-%d %H:%M:%S} UTC by engine {clipped(plan.circumstances.engine, 40)}", "faint"),
        Line(f"  valid      until {plan.expires_at:%Y-%m-%d %H:%M:%S} UTC", "faint"),
        Line(f"  cluster    {clipped(plan.circumstances.cluster, 80) or 'not recorded'}", "faint"),
        Line(f"  namespaces {clipped(namespaces, WIDTH)}", "faint"),
        *applyset,
        *removed,
        *judged,
        *waived,
    ]
