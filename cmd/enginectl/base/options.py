"""Options that every command takes, before its name or after it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from engine.version import VERSION
from enginectl.base.exit_codes import UsageError

KEY = "enginectl.options"
"""Where the parsed options are kept in Typer's context."""
COMPLETE: Final = "_ENGINE_COMPLETE"
"""The variable in which a shell asks for completions."""


class LogFormat(StrEnum):
    """How log lines are written."""

    TEXT = "text"
    JSON = "json"


class OutputFormat(StrEnum):
    """How a result is written."""

    TEXT = "text"
    JSON = "json"


class ReportFormat(StrEnum):
    """How a plan is written."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"
    MARKDOWN = "markdown"
    SARIF = "sarif"
    MERMAID = "mermaid"
    DOT = "dot"


class GraphFormat(StrEnum):
    """How a graph of objects is drawn."""

    DOT = "dot"
    MERMAID = "mermaid"
    SVG = "svg"


class DocumentName(StrEnum):
    """A document that has a published schema."""

    DIFF = "diff"
    PLAN = "plan"
    POLICY = "policy"
    SYNC = "sync"


class FieldValidation(StrEnum):
    """What unknown fields of pod specs are, and what an API server would refuse in the pods; the words are kubectl's."""

    STRICT = "strict"
    """Faults: nothing is planned."""
    WARN = "warn"
    IGNORE = "ignore"


class ObjectFormat(StrEnum):
    """How objects are written."""

    YAML = "yaml"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Options:
    """The values of the options that every command takes."""

    kubeconfig: Path | None = None
    context: str = ""
    namespace: str = ""
    all_namespaces: bool = False
    config: Path | None = None
    verbose: bool = False
    log_format: LogFormat | None = None
    """None: text on a terminal and JSON elsewhere."""


Files = Annotated[
    list[Path] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE|DIR",
        help="Manifests; - for standard input. A directory with a kustomization is built. Repeatable.",
    ),
]
Recursive = Annotated[bool, typer.Option("--recursive", "-R", help="Read the directories in the directories of -f as well.")]
Kustomizations = Annotated[
    list[Path] | None,
    typer.Option("--kustomize", "-k", metavar="DIR", help="Manifests that kustomize builds from this directory. Repeatable."),
]
EnableRemote = Annotated[
    bool, typer.Option("--enable-remote", help="Let kustomize fetch what a kustomization names by URL: repositories, files, charts.")
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="[KIND/][NS/]NAME",
        help="Only this workload, e.g. web, pcs/web or prod/web; * in a name stands for any characters, '*' for all. Repeatable.",
    ),
]
Selectors = Annotated[
    list[str] | None,
    typer.Option("--selector", "-l", metavar="SELECTOR", help="Only workloads with these labels, as with kubectl. Repeatable."),
]
Excluded = Annotated[list[str] | None, typer.Option("--exclude", metavar="[KIND/][NS/]NAME", help="Not this workload. Repeatable.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Remove what was applied with the same --applyset before and is not among the manifests any more.")
]
ApplySetParent = Annotated[
    str,
    typer.Option(
        "--applyset",
        metavar="[KIND/]NAME",
        help="The ConfigMap (or secrets/NAME) that records what is applied together.",
        show_default=False,
    ),
]
Validate = Annotated[
    FieldValidation,
    typer.Option(
        "--validate",
        help="Unknown fields of pod specs, and what the API server would refuse in pods: a fault (strict), a warning (warn) or nothing.",
    ),
]
AllowEmpty = Annotated[bool, typer.Option("--allow-empty", help="Allow --prune to remove everything if there is no manifest.")]
AllowReplace = Annotated[
    bool,
    typer.Option("--allow-replace", help="Delete and create anew a PodCliqueSet of a graph that cannot be changed in place."),
]
TakeOver = Annotated[
    bool, typer.Option("--take-over", help="Take over sets whose PodGangs Grove v0.1.0-alpha.12 or later has made (docs/migrating.md).")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip confirmation.")]
Timeout = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="Maximum duration of the whole command, waiting for pods and delays included, e.g. 90s or 5m. What is left then is done "
        "by the next one, or by run.",
    ),
]
ValidFor = Annotated[str, typer.Option("--valid-for", metavar="DURATION", help="How long the saved plan may be applied.")]
PolicyFiles = Annotated[
    list[Path] | None,
    typer.Option("--policy", metavar="FILE|DIR", help="PlanPolicies that the plan and its forecast must fulfil. Repeatable."),
]
Waivers = Annotated[
    list[str] | None,
    typer.Option("--waive", metavar="POLICY/RULE=REASON", help="Do not deny because of this rule, and record why. Repeatable."),
]
Format = Annotated[OutputFormat, typer.Option("--output", "-o", help="Text for people, or one JSON document.")]
PlanFormat = Annotated[
    ReportFormat,
    typer.Option("--output", "-o", help="How the plan is written to standard output: for a terminal, a program, a browser, or a comment."),
]
Reports = Annotated[
    list[str] | None,
    typer.Option("--report", metavar="FORMAT=FILE", help="Write the plan to a file as well, in any format of -o. Repeatable."),
]
Summary = Annotated[
    Path | None, typer.Option("--summary", metavar="FILE", help="Append the plan to this file as Markdown, e.g. $GITHUB_STEP_SUMMARY.")
]
Title = Annotated[
    str, typer.Option("--title", metavar="TEXT", help="What the plan is about: heading and hidden marker of Markdown, e.g. the cluster.")
]
Link = Annotated[str, typer.Option("--link", metavar="URL", help="Where the full report will be: Markdown ends with a link to it.")]
MaxBytes = Annotated[
    int, typer.Option("--max-bytes", metavar="N", min=16_000, help="Maximum size of Markdown: what does not fit is counted.")
]
ShowValues = Annotated[
    bool, typer.Option("--show-values", help="Show the values of environment variables in HTML and Markdown; those of Secrets stay masked.")
]
ForecastPasses = Annotated[
    int | None,
    typer.Option(
        "--forecast-passes", min=1, metavar="N", help="How many passes a forecast simulates. Default: as many as a second or two allows."
    ),
]
AssumeNodes = Annotated[
    bool,
    typer.Option("--assume-nodes", help="Assume that nodes are added for pods without room, e.g. by an autoscaler; read no nodes."),
]


def print_version(wanted: bool) -> None:
    """Callback of `--version`. Raises `typer.Exit`, which ends the command."""
    if wanted:
        typer.echo(f"engine {VERSION}")
        raise typer.Exit


def declare(
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Kubeconfig. Default: KUBECONFIG, ~/.kube/config, or the pod's service account.")
    ] = None,
    context: Annotated[str, typer.Option(metavar="NAME", help="Context of the kubeconfig.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="Namespace. Default: that of the context.")] = "",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Use all namespaces.")] = False,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Operator configuration.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show everything, and log in detail.")] = False,
    log_format: Annotated[LogFormat | None, typer.Option(help="Format of log lines.")] = None,
    version: Annotated[bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the release and end.")] = False,
) -> None:
    """Declare the options on the root command; `share_options` adds them to every command."""


def shared_options(root: TyperGroup) -> list[Any]:
    """The options of the root, which keep their values for the commands below it."""
    names = {option.name for option in fields(Options)}
    shared = [param for param in root.params if param.name in names]
    for param in shared:
        param.callback = keep_value
    return shared


def share_options(shared: Sequence[Any], group: TyperGroup) -> TyperGroup:
    """Add these options to every command of a group. A command that has an option of the same name keeps its own.

    The help lists those with a short form first, and ends with the examples, which are the epilog of the command.
    """
    names = {param.name for param in shared}
    for command in subcommands(group):
        own = {param.name for param in command.params}
        params = [*command.params, *(param for param in shared if param.name not in own)]
        command.params = sorted(params, key=is_rare)
        if command.epilog:
            command.epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in command.epilog.strip().splitlines())])
        command.callback = without_arguments(names - own, command.callback)
    return group


def is_rare(param: Any) -> bool:
    """Whether it is an option that is only spelled out."""
    return param.param_type_name == "option" and all(len(name) > len("-x") for name in param.opts)


def subcommands(group: TyperGroup) -> list[Any]:
    """Every command below a group, at any depth."""
    commands: list[Any] = []
    for command in group.commands.values():
        commands.append(command)
        if isinstance(command, TyperGroup):
            commands += subcommands(command)
    return commands


def without_arguments(names: set[str], callback: Any) -> Any:
    """The callback, called without the arguments of these names: it does not declare them."""
    return callback and (lambda **values: callback(**{name: value for name, value in values.items() if name not in names}))


def keep_value(ctx: Any, param: Any, value: Any) -> Any:
    """Callback of an option: keeps its value in the context. A default does not replace a value given further left on the command line."""
    if value not in (None, "", False, param.get_default(ctx)):
        ctx.meta.setdefault(KEY, {})[param.name] = value
    return value


def options(ctx: typer.Context) -> Options:
    """The values of the options that every command takes."""
    values = dict(ctx.meta.get(KEY, {}))
    return Options(**{name: TYPES.get(name, lambda value: value)(value) for name, value in values.items()})


def parse_seconds(text: str, option: str, *, zero: bool = False) -> float:
    """The seconds of a duration such as `90s`, `1h30m` or a bare number; 0 only with `zero`. Raises `UsageError` that names the option."""
    from engine.duration import nanoseconds  # `--help` needs none of it.

    try:
        seconds = nanoseconds(f"{text}s" if text.replace(".", "", 1).isdecimal() else text) / 1e9
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None
    if seconds < 0 or (seconds == 0 and not zero):
        raise UsageError(f"{option} {text}: must {'not be negative' if zero else 'be greater than zero'}")
    return seconds


TYPES: dict[str, Any] = {"kubeconfig": Path, "config": Path, "log_format": LogFormat}
"""Name of an option -> the type that its value is converted to. Other values stay as they are."""
