"""`engine review`: the admission rules, offline."""

from pathlib import Path
from typing import Annotated, Final

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import Format, OutputFormat, options

EXAMPLES: Final = """
engine review -f reviews.json
engine review -f - --against live -o text
"""


def review(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Option("--filename", "-f", metavar="FILE", help="AdmissionReviews, one JSON document a line; - for standard input."),
    ] = None,
    against: Annotated[
        str, typer.Option(metavar="live|SNAPSHOT", help="Where rules look up objects that the reviewed one refers to. Default: nowhere.")
    ] = "",
    format: Format = OutputFormat.JSON,
) -> Exit:
    """Answer AdmissionReviews as the webhooks would.

    AdmissionReviews (v1) in, AdmissionReviews out, patch included: one answer a line, in the order of the reviews. Exits with 0 if all
    are allowed, 3 if one is denied, 1 if one cannot be read. Who may change managed objects comes from --config.
    """
    from enginectl.actions.review import review_file
    from enginectl.base.exit_codes import UsageError
    from enginectl.base.runner import conclude
    from enginectl.wiring.configuration import wire

    if file is None:
        raise UsageError("review needs reviews: -f FILE, or -f - for standard input")
    wiring = wire(options(ctx))
    return conclude(review_file(wiring, file, against, format), format)
