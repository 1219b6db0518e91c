"""`engine review`: the admission rules, offline."""

from pathlib import Path
from typing import Annotated

import typer

from enginectl.diff import Form
from enginectl.exits import Exit
from enginectl.options import Output, options


def review(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Option("--filename", "-f", metavar="FILE", help="Reviews, one JSON document a line; - for standard input.")
    ] = None,
    against: Annotated[
        str, typer.Option(metavar="live|SNAPSHOT", help="Where the references are that rules look at; otherwise none are known.")
    ] = "",
    form: Form = Output.JSON,
) -> Exit:
    """QueryResult AdmissionReviews as the webhooks would.

    AdmissionReview (v1) in, AdmissionReview out, patch included: as many answers as reviews, one a line, in their order. Exit 0
    when all are allowed, 3 when one is denied, 1 when one cannot be read. Who may touch managed objects comes from --config.
    """
    from enginectl import wiring
    from enginectl.reviewing import reviewed
    from enginectl.running import Misuse, concluded

    if file is None:
        raise Misuse("review needs reviews: -f FILE, or -f - for standard input")
    wired = wiring.wired(options(ctx))
    return concluded(reviewed(wired, file, against, form), form)
