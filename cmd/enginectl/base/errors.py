"""Errors that end a command with an exit code of their own."""

from engine.errors import InputError


class UsageError(InputError):
    """The command line cannot be used: an option names something that does not exist, or two options exclude each other. Exit code 64."""


class MissingRequirement(InputError):
    """The cluster lacks what the configuration needs, or what is installed in it does not allow what was asked. Exit code 7."""
