"""`engine show`: what a saved plan does."""

from pathlib import Path
from typing import Annotated, Final

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import PlanFormat, ReportFormat, options

EXAMPLES: Final = """
engine show plan.json
engine show plan.json -o html > plan.html
"""


def show(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A plan of `diff --out` or `delete --out`; - for standard input.")],
    format: PlanFormat = ReportFormat.TEXT,
) -> Exit:
    """Show a saved plan as `diff` showed it when it was made.

    No cluster is read, and whether the plan may still be applied is not checked: `sync --plan` does that.

    Signs: + create, ~ patch, scale or status, - delete, ± replace, ⊘ release a finalizer, ? later, ! blocked, · pending.
    """
    from enginectl.actions.show import show_plan
    from enginectl.base.runner import conclude
    from enginectl.input.saved_plans import load_plan
    from enginectl.wiring.configuration import wire

    return conclude(show_plan(wire(options(ctx)), load_plan(file), format), format)
