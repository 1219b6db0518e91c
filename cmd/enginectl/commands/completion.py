"""`engine completion`: completes command lines in a shell."""

import os
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import COMPLETE

PROGRAM: Final = "engine"


class Shell(StrEnum):
    """A shell that can ask for completions."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> Exit:
    """Print the script with which a shell completes `engine` commands, e.g. for `source <(engine completion bash)`."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    from enginectl.base import terminal

    terminal.print_text(f"{get_completion_script(prog_name=PROGRAM, complete_var=COMPLETE, shell=shell.value)}\n")
    return Exit.DONE


def answer_shell(root: Any) -> Exit:
    """Print the completions of the command line that the shell has put into the environment."""
    from typer.completion import completion_init, shell_complete  # type: ignore[attr-defined]

    completion_init()
    return Exit(shell_complete(root, {}, PROGRAM, COMPLETE, os.environ[COMPLETE]))
