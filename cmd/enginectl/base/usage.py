"""Usage: errors in the command line, in our words: what is wrong with which option or argument of which command."""

from typing import Any, Final

UNKNOWN: Final = "No such command "


def usage_text(error: Any) -> str:
    """One sentence about an error of the command-line parser: it names the command as the user knows it."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "engine"
    match type(error).__name__:
        case "NoSuchOption":
            return f"{command} has no option {error.option_name}{_suggestion(error.possibilities)}"
        case "MissingParameter":
            return f"{command} needs {_name(error)}"
        case "BadParameter":
            return f"{_name(error)}: {_in_our_words(error.message)}"
        case "BadOptionUsage":
            return f"{error.option_name} needs a value"
    return _of_the_command(command, error.format_message())


def _suggestion(possibilities: Any) -> str:
    names = list(possibilities or ())
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


def _of_the_command(command: str, message: str) -> str:
    """Anything else: an unknown command, or too many arguments."""
    text = message.rstrip(".").replace("'", "")
    if text.startswith(UNKNOWN):
        name, _, suggestion = text.removeprefix(UNKNOWN).partition(". Did you mean ")
        return f"{command} has no command {name}{f'; did you mean {suggestion}' if suggestion else ''}"
    _, is_extra, extra = message.partition("unexpected extra argument")
    return f"{command} does not take {extra.partition(' (')[2].rstrip(')')}" if is_extra else f"{command}: {text}"
