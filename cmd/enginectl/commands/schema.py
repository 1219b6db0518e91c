"""`engine schema`: the shape of a document for programs."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import DocumentName


def schema(
    ctx: typer.Context,
    name: Annotated[DocumentName, typer.Argument(metavar="diff|policy|sync", help="The command whose document it is, or a policy.")],
) -> Exit:
    """Print the JSON Schema of what `diff -o json` or `sync -o json` writes, or of the policies that --policy reads.

    Within a version of what `diff` and `sync` write, keys and values are only added: ignore those that you do not know.
    """
    from enginectl.actions.schema import print_schema

    return print_schema(name)
