"""Usage: errors in the command line, in our words: what is wrong with which option or argument of which command."""

import os.path
from collections.abc import Mapping, Sequence
from typing import Any, Final

UNKNOWN: Final = "No such command "
MANIFESTS: Final = (".yaml", ".yml", ".json")
"""How the names of files with manifests end."""

COMMANDS: Final[Mapping[str, str]] = {
    "apply": "engine sync -f FILE",
    "create": "engine sync -f FILE",
    "get": "engine status",
    "list": "engine status",
    "describe": "engine why KIND/NAME",
    "explain": "engine why KIND/NAME",
    "events": "engine why KIND/NAME",
    "plan": "engine diff -f FILE",
    "validate": "engine diff --against empty -f FILE",
    "lint": "engine diff --against empty -f FILE",
    "destroy": "engine delete NAME",
    "logs": "kubectl logs",
    "exec": "kubectl exec",
    "edit": "kubectl edit",
    "scale": "kubectl scale",
    "version": "engine --version",
    "help": "engine --help",
}
"""A command that kubectl and other tools have -> what does the same here."""
ALIKE: Final = len("--") + 3
"""Options with that many equal characters at the beginning are suggested alone."""
NO_VALUES: Final[Mapping[str, str]] = {"--dry-run": "`engine diff --server-dry-run` lets the API server check what would be written"}
"""An option without a value -> what is meant by one of kubectl's values."""


def usage_text(error: Any, path: str, command: Any) -> str:
    """One sentence about an error of the command-line parser in the command of that path, e.g. `engine sandbox up`."""
    match type(error).__name__:
        case "NoSuchOption":
            return f"{path} has no option {error.option_name}{_suggestion(error.option_name, error.possibilities)}"
        case "MissingParameter":
            return f"{path} needs {_name(error)}"
        case "BadParameter":
            return f"{_name(error)}: {_in_our_words(error.message)}"
        case "BadOptionUsage" if error.message.endswith("does not take a value."):
            return f"{error.option_name} takes no value{_without_value(error.option_name, command)}"
        case "BadOptionUsage":
            return f"{error.option_name} needs a value"
    return _of_the_command(path, error.format_message(), command)


def named_command(root: Any, words: Sequence[str]) -> tuple[str, Any]:
    """The command that a command line names, with its path: for errors that do not tell it."""
    path = "engine"
    for word in words:
        if word in getattr(root, "commands", ()):
            path, root = f"{path} {word}", root.commands[word]
    return path, root


def _without_value(option: str, command: Any) -> str:
    """What to write instead of a value of an option that takes none."""
    opposite = next((param.secondary_opts[0] for param in command.params if option in param.opts and param.secondary_opts), "")
    hint = NO_VALUES.get(option, f"the opposite is {opposite}" if opposite else "")
    return f"; {hint}" if hint else ""


def _suggestion(option: str, possibilities: Any) -> str:
    """What may have been meant: options that begin with the same letters, or else similar ones."""
    similar = list(possibilities or ())
    names = [name for name in similar if name[:ALIKE] == option[:ALIKE]] or similar
    return f"; did you mean {' or '.join(names)}?" if names else ""


def _name(error: Any) -> str:
    """The longest spelling of the option, or the argument as the help shows it."""
    param = error.param
    if param is None:
        return str(error.param_hint or "an argument")
    return str(max(param.opts, key=len)) if param.param_type_name == "option" else str(param.make_metavar(error.ctx))


def _in_our_words(message: str) -> str:
    """The parser's sentence about a value, without its quotes, its full stop and its notation for ranges."""
    text = message.rstrip(".").replace("'", "")
    value, is_range, bounds = text.partition(" is not in the range ")
    if is_range:
        lowest, _, rest = bounds.partition("<=x<=")
        return f"{value} must be from {lowest} to {rest}" if rest else f"{value} must be at least {bounds.removeprefix('x>=')}"
    return text.replace("is not a valid int range", "is not an integer").replace("is not a valid integer", "is not an integer")


def _of_the_command(path: str, message: str, command: Any) -> str:
    """Anything else: an unknown command, or too many arguments."""
    text = message.rstrip(".").replace("'", "")
    if text.startswith(UNKNOWN):
        name, _, suggestion = text.removeprefix(UNKNOWN).partition(". Did you mean ")
        other = COMMANDS.get(name) if path == "engine" else None
        hint = f"; use `{other}`" if other else f"; did you mean {suggestion}" if suggestion else ""
        return f"{path} has no command {name}{hint}"
    _, is_extra, extra = message.partition("unexpected extra argument")
    words = extra.partition(" (")[2].rstrip(")")
    return f"{path} does not take {words}{_as_files(words.split(), command)}" if is_extra else f"{path}: {text}"


def _as_files(words: Sequence[str], command: Any) -> str:
    """How to name files that were given as arguments to a command with -f, e.g. by `-f *.yaml`."""
    takes_files = any("-f" in param.opts for param in command.params)
    if not (takes_files and all(word.endswith(MANIFESTS) or os.path.exists(word) for word in words)):
        return ""
    return f"; name manifests with {' '.join(f'-f {word}' for word in words)}"
