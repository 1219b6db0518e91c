"""`engine render`: the desired objects, without a cluster."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import EnableRemote, FieldValidation, Files, Kustomizations, ObjectFormat, Recursive, Validate, options


def render(
    ctx: typer.Context,
    files: Files = None,
    recursive: Recursive = False,
    kustomizations: Kustomizations = None,
    enable_remote: EnableRemote = False,
    validate: Validate = FieldValidation.STRICT,
    format: Annotated[ObjectFormat, typer.Option("--output", "-o", help="A YAML stream, or one JSON document.")] = ObjectFormat.YAML,
) -> Exit:
    """Print the desired objects of manifests.

    Needs no cluster; equal input gives equal bytes. Names of pods are computed from the namespace and name of the workload instead of
    its uid.
    """
    from enginectl.actions.render import render_roots
    from enginectl.base.exit_codes import UsageError
    from enginectl.input.roots import ManifestSources, load_roots
    from enginectl.wiring.cluster import EMPTY
    from enginectl.wiring.configuration import wire

    if not (files or kustomizations):
        raise UsageError("render needs manifests: -f FILE")
    wiring = wire(options(ctx), validation=validate)
    roots = load_roots(wiring, ManifestSources(files or (), kustomizations or (), recursive, enable_remote), against=EMPTY)
    return render_roots(wiring, roots, as_json=format is ObjectFormat.JSON)
