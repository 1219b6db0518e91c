"""The `engine` command: parses the command line, runs the command, and returns its exit code.

Nothing slow is imported here or at the top of a command's file: commands import what they need when they run, so that `engine --help`
is fast. The file of a command is imported when the command line names it.
"""

import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from types import FrameType
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_group

from engine.errors import InputError
from engine.runtime.garbage_collection import leave_to_exit, pause_gc
from enginectl.base.exit_codes import Exit, SignalReceived, UsageError, meaning
from enginectl.base.options import COMPLETE, declare, share_options, shared_options

DOCUMENTING = frozenset({"diff", "sync", "delete", "show", "status", "top", "why", "preflight"})
"""The commands that write one JSON document to stdout with `-o json`, whatever happens."""

TAKING_FILES: Final = frozenset(
    {"-f", "--filename", "-k", "--kustomize", "--base", "--policy", "--plan", "--out", "--config", "--kubeconfig"}
)
"""Options before a word that names a file."""
MAY_BE_EMPTY: Final = frozenset({"--kubeconfig"})
"""Those whose empty value is the default, as for kubectl."""
FILES_MAY_FOLLOW, NO_FILES = 0, 4
"""The last line for kubectl: directives of Cobra."""


class Root(TyperGroup):
    """The root command. Its help lists the commands below it without importing them."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))


engine = typer.Typer(
    name="engine",
    cls=Root,
    help="Declarative desired state for AI inference workloads on Kubernetes: what `diff` shows is what `sync` and `run` do.",
    epilog="Exit codes: 0 done, 1 failed, 2 changes (--detailed-exitcode), 3 denied, 4 not as approved, 5 incomplete, 6 lease taken, "
    "7 preflight failed, 8 not settled, 9 would not settle, 64 usage error.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    callback=declare,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> int:
    """The command line of this process, to its end. Returns the exit code."""
    pause_gc()
    try:
        return app()
    finally:
        leave_to_exit()


def complete_for_kubectl() -> int:
    """What kubectl asks a plugin for its completions with: writes those of `kubectl grove WORDS`, then whether files may follow."""
    words = ["engine", *(sys.argv[1:] or [""])]
    os.environ.update({COMPLETE: "complete_bash", "COMP_WORDS": shlex.join(words), "COMP_CWORD": str(len(words) - 1)})
    code = app([])
    sys.stdout.write(f":{FILES_MAY_FOLLOW if words[-2] in TAKING_FILES else NO_FILES}\n")
    return code


def app(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code. An exception is reported in one line; its traceback only with `-v`."""
    previous = signal.signal(signal.SIGTERM, _on_sigterm)
    words = sys.argv[1:] if arguments is None else list(arguments)
    _replace_closed_streams()
    try:
        code = _run_reporting_errors(words)
    except BrokenPipeError:
        # The reader of our output has gone.
        code = Exit.FAILED
    finally:
        signal.signal(signal.SIGTERM, previous)
        _discard_unwritten_output()
    return code


def _replace_closed_streams() -> None:
    """Where the process was started without stdout or stderr, what is written there is lost."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def _discard_unwritten_output() -> None:
    """Discard what stdout and stderr could not take: Python would fail again when it flushes them at exit, and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run_reporting_errors(words: Sequence[str]) -> Exit:
    try:
        return _run(words)
    except typer.TyperException as error:
        return _report_usage_error(error, words)
    except KeyboardInterrupt as interrupt:
        return _report_signal(interrupt)
    except Exception as error:
        return _report_failure(error, words)
    except BaseExceptionGroup as group:
        # The second signal ends everything at once: it arrives in a group, with the errors of the tasks that it ended.
        return _report_signal(next((leaf for leaf in _leaves(group) if isinstance(leaf, KeyboardInterrupt)), group))


def _run(words: Sequence[str]) -> Exit:
    """Run the command. Not through Typer's own `main`, which has other exit codes and handles signals itself."""
    root = root_command()
    if COMPLETE in os.environ:
        from enginectl.commands.completion import answer_shell

        return answer_shell(root)
    from enginectl.base import terminal

    terminal.begin()
    refuse_nameless(words)
    try:
        with root.make_context("engine", list(words)) as context:
            code = Exit(root.invoke(context) or 0)
    except typer.Exit as end:
        code = Exit(end.exit_code)
    terminal.flush()
    return code


def refuse_nameless(words: Sequence[str]) -> None:
    """Raise `UsageError` for an option whose file has an empty name, as of a variable that is not set: it would be the current directory,
    or no file at all."""
    for option, value in pairwise([part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]):
        if value == "" and option in TAKING_FILES - MAY_BE_EMPTY:
            raise UsageError(f"{option} needs the name of a file")


@cache
def root_command() -> TyperGroup:
    """The root of the commands."""
    return command_tree(engine)


def _report_signal(interrupt: BaseException) -> Exit:
    from enginectl.base.runner import report_signal

    return report_signal(interrupt.code if isinstance(interrupt, SignalReceived) else Exit.INTERRUPTED)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    from enginectl.base.runner import leaves

    return leaves(group)


def _report_usage_error(error: typer.TyperException, words: Sequence[str]) -> Exit:
    """Write what is wrong with the command line and how to get help; the help itself if there is no command at all."""
    from enginectl.base import terminal
    from enginectl.base.usage import named_command, usage_text

    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{error.format_message()}\n")
        return Exit.USAGE
    context = getattr(error, "ctx", None)
    path, command = (context.command_path, context.command) if context is not None else named_command(root_command(), words)
    message = usage_text(error, path, command)
    terminal.error(message)
    _write_error_document(words, [message], Exit.USAGE)
    terminal.notice(f"try `{path} --help`")
    terminal.notice(meaning(Exit.USAGE))
    return Exit.USAGE


def _report_failure(error: Exception, words: Sequence[str]) -> Exit:
    from enginectl.base import terminal
    from enginectl.base.runner import error_messages, report_failure

    code = report_failure(error, verbose="-v" in words or "--verbose" in words)
    _write_error_document(words, error_messages(error), code)
    terminal.notice(meaning(code))
    return code


def _write_error_document(words: Sequence[str], messages: Sequence[str], code: Exit) -> None:
    """Where a command that writes a JSON document fails before that: a document that says why."""
    if asks_for_json(words):
        from enginectl.base import terminal

        terminal.print_error_document(messages, code)


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether a command line asks one of the commands in `DOCUMENTING` for JSON. It may be wrong in other respects."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    is_json = any(word in ("-ojson", "--output=json") or (word in ("-o", "--output") and value == "json") for word, value in pairs)
    return is_json and not DOCUMENTING.isdisjoint(words)


def _on_sigterm(number: int, frame: FrameType | None) -> NoReturn:
    raise SignalReceived(Exit.TERMINATED)


SUMMARIES: Final[Mapping[str, str]] = {
    "diff": "Show what a sync would do, and why.",
    "show": "Show a saved plan as `diff` showed it when it was made.",
    "sync": "Apply the plan until every workload is settled.",
    "delete": "Delete workloads with everything they have.",
    "run": "Reconcile continuously, as the holder of the lease.",
    "render": "Print the desired objects of manifests.",
    "graph": "Draw the desired objects of manifests and what they depend on.",
    "review": "Answer AdmissionReviews as the webhooks would.",
    "status": "Show the state of each workload.",
    "top": "Show nodes with their GPUs, and the workloads on them.",
    "why": "Explain the state of one object.",
    "preflight": "Check whether the cluster has what the configuration needs.",
    "snapshot": "Write the observed objects to a file for `diff --against`.",
    "schema": "Print the JSON Schema of a document or of a kind.",
    "demo": "Show preview, sync, scaling and teardown of an example.",
    "completion": "Print the script with which a shell completes `engine` commands.",
    "sandbox": "A Kubernetes API in memory.",
    "manifests": "Print what must be installed in a cluster first.",
    "config": "Check or show the operator configuration.",
}
"""The commands, in the order in which the help lists them, and how the help of each begins: to list them, none is imported.

`enginectl.commands` has a module of each name, with the command in it."""
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
        if name not in SUMMARIES:
            raise KeyError(name)
        return self._built(name)

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)

    def _build(self, name: str) -> Any:
        alone = typer.Typer(rich_markup_mode=None)
        module = None if name in SANDBOX else import_module(f"enginectl.commands.{name}")
        command = _installed(name) if module is None else getattr(module, name)
        if command is None:
            alone.command(name, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(_not_installed)
        elif isinstance(command, typer.Typer):
            alone.add_typer(command)
        else:
            alone.command(epilog=getattr(module, "EXAMPLES", None))(command)
        return share_options(self._shared, get_group(alone)).commands[name]


def _installed(name: str) -> Any:
    """The command of another distribution, or None if none has it."""
    from importlib.metadata import entry_points

    return next((point.load() for point in entry_points(group=PLUG_INS, name=name)), None)


def _not_installed(ctx: typer.Context) -> None:
    """Not installed: a command of the sandbox, a Kubernetes API in memory."""
    raise InputError(NOT_INSTALLED)
