"""`engine completion`: completes command lines in a shell."""

import os
from collections.abc import Sequence
from contextlib import redirect_stderr, suppress
from enum import StrEnum
from io import StringIO
from typing import Annotated, Any, Final

import typer

from engine.errors import EngineError
from enginectl.base.exit_codes import Exit
from enginectl.base.options import COMPLETE, Options, options

PROGRAM: Final = "engine"
PATIENCE: Final = 2.0
"""Seconds after which the objects of a cluster are not waited for any more."""
WORKLOADS: Final = ("podcliquesets", "dynamographdeployments")


class Shell(StrEnum):
    """A shell that can ask for completions."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def objects(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names of the objects of a kind behind `KIND/`, or else those of the workloads in the namespace.

    Nothing if the cluster does not say within `PATIENCE`.
    """
    word, slash, _ = incomplete.rpartition("/")
    names = (f"{word}{slash}{name}" for name in _names_of(options(ctx), [word] if slash else WORKLOADS))
    return sorted(name for name in names if name.startswith(incomplete))


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names of the namespaces. Nothing if the cluster does not say within `PATIENCE`, e.g. because they may not be listed."""
    return sorted(name for name in _names_of(options(ctx), ["namespaces"]) if name.startswith(incomplete))


def _names_of(given: Options, words: Sequence[str]) -> set[str]:
    """The names of the objects of these kinds, as many as the cluster tells."""
    names: set[str] = set()
    # A shell shows nothing but completions.
    with suppress(Exception), redirect_stderr(StringIO()):
        import anyio

        anyio.run(read_names, given, words, names)
    return names


async def read_names(given: Options, words: Sequence[str], names: set[str]) -> None:
    """Add the names of the objects of these kinds, in the namespace that the options name."""
    import anyio

    from enginectl.actions.explain import kinds_called
    from enginectl.wiring.configuration import default_namespace, wire
    from enginectl.wiring.connection import connect

    wiring = wire(given)
    namespace = "" if given.all_namespaces else given.namespace or default_namespace(wiring)
    with anyio.move_on_after(PATIENCE):
        async with connect(wiring) as (client, _):
            for word in words:
                with suppress(EngineError):
                    kind = (await kinds_called(client, wiring, word))[0]
                    listing = await client.list(kind, namespace if kind.namespaced else "")
                    names.update(body["metadata"]["name"] for body in listing.items)


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> Exit:
    """Print the script with which a shell completes `engine` commands, e.g. for `source <(engine completion bash)`."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    from enginectl.base import terminal

    terminal.print_text(f"{get_completion_script(prog_name=PROGRAM, complete_var=COMPLETE, shell=shell.value)}\n")
    return Exit.DONE


def answer_shell(root: Any) -> Exit:
    """Print the completions of the command line that the shell has put into the environment."""
    from typer.completion import completion_init, shell_complete  # type: ignore[attr-defined]
    from typer.core import CompletionItem  # type: ignore[attr-defined]

    for option in root.params:
        if option.name == "namespace":
            option.shell_complete = lambda ctx, incomplete: [CompletionItem(name) for name in namespaces(ctx, incomplete)]
    completion_init()
    return Exit(shell_complete(root, {}, PROGRAM, COMPLETE, os.environ[COMPLETE]))
