"""`engine render`: the desired objects, without any cluster."""

from enum import StrEnum
from typing import Annotated

import typer

from enginectl.diff import Files
from enginectl.exits import Exit
from enginectl.options import options


class Rendering(StrEnum):
    """How objects are written."""

    YAML = "yaml"
    JSON = "json"


def render(
    ctx: typer.Context,
    files: Files = None,
    form: Annotated[Rendering, typer.Option("--output", "-o", help="A YAML stream, or one JSON document.")] = Rendering.YAML,
) -> Exit:
    """Print every object that manifests stand for.

    Needs no cluster; equal input gives equal bytes. In names of pods the namespace and name of the workload stand for its uid.
    """
    from enginectl import output, wiring
    from enginectl.rendering import rendered
    from enginectl.running import Misuse
    from providers.snapshot import as_yaml

    if not files:
        raise Misuse("render needs manifests: -f FILE")
    wired = wiring.wired(options(ctx))
    objects, problems = rendered(wired, wiring.manifests(wired, files, against=wiring.NOTHING))
    if form is Rendering.JSON:
        output.say_document({"version": 1, "objects": objects})
    else:
        for body in objects:
            output.say_raw(f"---\n{as_yaml(body)}")
    for problem in problems:
        output.fault(problem)
    return Exit.FAILED if problems else Exit.DONE
