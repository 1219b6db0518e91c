"""Options: those that every command takes, before its name or after it."""

from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

KEY = "enginectl.options"


class LogFormat(StrEnum):
    """How log lines are written."""

    TEXT = "text"
    JSON = "json"


class Output(StrEnum):
    """How an answer is written."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for with the options that every command takes."""

    kubeconfig: Path | None = None
    context: str = ""
    namespace: str = ""
    all_namespaces: bool = False
    config: Path | None = None
    verbose: bool = False
    log_format: LogFormat | None = None
    """Otherwise text on a terminal and JSON elsewhere."""


def declare(
    kubeconfig: Annotated[Path | None, typer.Option(metavar="FILE", help="Otherwise KUBECONFIG, ~/.kube/config or the pod's own.")] = None,
    context: Annotated[str, typer.Option(metavar="NAME", help="Context of the kubeconfig.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="Otherwise that of the context.")] = "",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Pass at all namespaces.")] = False,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Operator configuration.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="UpdateAllowance nothing out, and log what happens.")] = False,
    log_format: Annotated[LogFormat | None, typer.Option(help="How log lines are written.")] = None,
) -> None:
    """Declare the options on the root command; `everywhere` hands them on."""


def everywhere(root: TyperGroup) -> TyperGroup:
    """The command tree, each command taking the root's options beside its own; one that has an option of that name keeps its own."""
    names = {option.name for option in fields(Options)}
    shared = [param for param in root.params if param.name in names]
    for param in shared:
        param.callback = remember
    for command in branches(root):
        own = {param.name for param in command.params}
        command.params = [*command.params, *(param for param in shared if param.name not in own)]
        command.callback = without(names - own, command.callback)
    return root


def branches(group: TyperGroup) -> list[Any]:
    """Every command below a group."""
    found: list[Any] = []
    for command in group.commands.values():
        found.append(command)
        if isinstance(command, TyperGroup):
            found += branches(command)
    return found


def without(names: set[str], callback: Any) -> Any:
    """A command's function, called without the options that it has not declared."""
    return callback and (lambda **given: callback(**{name: value for name, value in given.items() if name not in names}))


def remember(ctx: Any, param: Any, value: Any) -> Any:
    """Keep what was said; what was not said does not undo what was said further left."""
    if value not in (None, "", False, param.get_default(ctx)):
        ctx.meta.setdefault(KEY, {})[param.name] = value
    return value


def options(ctx: typer.Context) -> Options:
    """What was asked for with the options that every command takes."""
    said = dict(ctx.meta.get(KEY, {}))
    return Options(**{name: KINDS.get(name, lambda value: value)(value) for name, value in said.items()})


KINDS: dict[str, Any] = {"kubeconfig": Path, "config": Path, "log_format": LogFormat}
