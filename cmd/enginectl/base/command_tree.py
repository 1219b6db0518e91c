"""The command tree: which commands there are, and what builds one of them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from engine.errors import InputError
from enginectl.base.options import share_options, shared_options

NAMES: Final = (
    "diff",
    "show",
    "sync",
    "delete",
    "run",
    "render",
    "graph",
    "review",
    "status",
    "why",
    "preflight",
    "snapshot",
    "schema",
    "demo",
    "completion",
    "sandbox",
    "manifests",
    "config",
)
"""The commands, in the order in which the help lists them. `enginectl.commands` has a module of each name, with the command in it."""
SANDBOX: Final = frozenset({"demo", "sandbox"})
"""The commands that are in a distribution of their own: entry points of the group `PLUG_INS`."""
PLUG_INS: Final = "engine.commands"
NOT_INSTALLED: Final = "the sandbox is not installed: pip install . ./sandbox, in a checkout of the project"


def command_tree(root: typer.Typer) -> TyperGroup:
    """The root command. A command below it is imported and built when it is looked up, with the options that all commands share."""
    tree = get_group(root)
    tree.commands = Commands(shared_options(tree))  # type: ignore[assignment]
    return tree


class Commands(Mapping[str, Any]):
    """Name -> command below the root, built once."""

    def __init__(self, shared: Sequence[Any]) -> None:
        self._shared = shared
        self._built = cache(self._build)

    def __getitem__(self, name: str) -> Any:
        if name not in NAMES:
            raise KeyError(name)
        return self._built(name)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)

    def _build(self, name: str) -> Any:
        alone = typer.Typer(rich_markup_mode=None)
        command = _installed(name) if name in SANDBOX else getattr(import_module(f"enginectl.commands.{name}"), name)
        if command is None:
            alone.command(name, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(_not_installed)
        elif isinstance(command, typer.Typer):
            alone.add_typer(command)
        else:
            alone.command()(command)
        return share_options(self._shared, get_group(alone)).commands[name]


def _installed(name: str) -> Any:
    """The command of another distribution, or None if none has it."""
    from importlib.metadata import entry_points

    return next((point.load() for point in entry_points(group=PLUG_INS, name=name)), None)


def _not_installed(ctx: typer.Context) -> None:
    """Not installed: a command of the sandbox, a Kubernetes API in memory."""
    raise InputError(NOT_INSTALLED)
