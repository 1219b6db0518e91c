"""`engine schema`: the shape of a document for programs."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import DocumentName


def schema(
    ctx: typer.Context,
    name: Annotated[DocumentName, typer.Argument(metavar="diff|plan|policy|sync", help="The command that writes it; or a policy.")],
) -> Exit:
    """Print the JSON Schema of what `diff -o json` or `sync -o json` writes, of the plans of --out, or of the policies that --policy reads.

    Within a version, keys and values are only added: ignore those that you do not know.
    """
    from enginectl.actions.schema import print_schema

    return print_schema(name)
