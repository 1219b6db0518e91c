"""`engine manifests crds`: the CustomResourceDefinitions of our kinds."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.errors import InputError
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from providers.snapshot import as_yaml
from resources.schema.crds import crds

VERSION = 1
"""Version of the JSON document; increased when a field is removed or changes its meaning."""


def print_crds(*, as_json: bool) -> Exit:
    """Write the definitions to stdout, as one JSON document or as a YAML stream."""
    if as_json:
        terminal.print_json({"version": VERSION, "objects": list(crds())})
    else:
        terminal.print_text(yaml_stream(crds()))
    return Exit.DONE


def write_crds(folder: Path) -> Exit:
    """Write each definition to a file named as controller-gen names it, e.g. `grove.io_podcliques.yaml`. Raises `InputError`."""
    for definition in crds():
        file = folder / f"{definition['spec']['group']}_{definition['spec']['names']['plural']}.yaml"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(yaml_stream([definition]), encoding="ascii")
        except OSError as error:
            raise InputError(f"{file}: {(error.strerror or 'cannot be written').lower()}") from None
    return Exit.DONE


def yaml_stream(objects: Iterable[dict[str, Any]]) -> str:
    """The objects as a stream of YAML documents."""
    return "".join(f"---\n{as_yaml(body)}" for body in objects)
