"""`engine schema`: the shape of a document for programs."""

from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import DocumentName
from enginectl.output.schemas import schema


def print_schema(name: DocumentName) -> Exit:
    """Write the JSON Schema of the document."""
    terminal.print_json(schema(name))
    terminal.flush()
    return Exit.DONE
