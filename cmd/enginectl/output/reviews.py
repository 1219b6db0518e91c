"""Admission decisions as lines for people."""

from collections.abc import Iterator

from engine.report.json import one_line
from engine.report.printable import Line, clipped, printable
from resources.admission.json_patch import json_patch
from resources.admission.request import Decision, Request
from resources.admission.review import refusal

MAX_VALUE = 400
"""Characters of a path, value or warning that are shown."""


def decision_lines(request: Request, decision: Decision) -> Iterator[Line]:
    """The request, whether it is allowed, and every field that is wrong or changed."""
    head = f"{request.act} {printable(str(request.id))}"
    if decision.allowed:
        yield Line(f"{head}: allowed", "good")
        steps = json_patch(request.body, decision.body) if request.body is not None and decision.body is not None else []
        for step in steps:
            value = f" {one_line(step['value'])}" if "value" in step else ""
            yield Line(f"  {step['op']} {clipped(step['path'], MAX_VALUE)}{clipped(value, MAX_VALUE)}", "faint")
    else:
        yield Line(f"{head}: denied ({refusal(request.id, decision)['reason']})", "bad")
        for fault in (decision.denial,) if decision.denial else decision.issues:
            yield Line(f"  {clipped(str(fault), 2 * MAX_VALUE)}")
    for warning in (*decision.warnings, *filter(None, [decision.gangs])):
        yield Line(f"  warning: {clipped(warning, MAX_VALUE)}", "later")
