"""`engine manifests`: what a cluster must be given before the engine can work in it, computed from the same tables as the code."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from enginectl import output
from enginectl.exits import Exit
from enginectl.options import Output

VERSION = 1
"""Of the JSON document; grows when a field changes its meaning or goes."""

manifests = typer.Typer(name="manifests", help="Print what a cluster must be given first.", no_args_is_help=True)


@manifests.callback()
def group() -> None:
    """Print what a cluster must be given first."""


@manifests.command()
def crds(
    form: Annotated[Output, typer.Option("--output", "-o", help="A YAML stream, or one JSON document.", show_default=False)] = Output.TEXT,
    folder: Annotated[Path | None, typer.Option("--dir", metavar="DIR", help="Write each into a YAML file in DIR.")] = None,
) -> Exit:
    """Print the CustomResourceDefinitions of our kinds, for `kubectl apply --server-side -f -`."""
    from enginectl.running import Misuse
    from resources.schema.crds import crds

    definitions = crds()
    if folder and form is Output.JSON:
        raise Misuse("--dir writes YAML files; leave -o json out")
    if folder:
        write(folder, definitions)
    elif form is Output.JSON:
        output.say_document({"version": VERSION, "objects": list(definitions)})
    else:
        output.say_raw(stream(definitions))
    return Exit.DONE


def write(folder: Path, definitions: Iterable[dict[str, Any]]) -> None:
    """Each definition into a file of its own, named as controller-gen names them: `grove.io_podcliques.yaml`."""
    from engine.errors import InputError

    for definition in definitions:
        file = folder / f"{definition['spec']['group']}_{definition['spec']['names']['plural']}.yaml"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(stream([definition]), encoding="ascii")
        except OSError as error:
            raise InputError(f"{file}: {(error.strerror or 'cannot be written').lower()}") from None


def stream(objects: Iterable[dict[str, Any]]) -> str:
    """The objects as a stream of YAML documents."""
    from providers.snapshot import as_yaml

    return "".join(f"---\n{as_yaml(body)}" for body in objects)
