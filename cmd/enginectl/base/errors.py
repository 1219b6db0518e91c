"""Errors that end a command with an exit code of their own."""

from engine.errors import InputError


class UsageError(InputError):
    """The command line cannot be used: an option names something that does not exist, or two options exclude each other. Exit code 64."""


class MissingRequirement(InputError):
    """The cluster does not serve a kind that the configuration needs. Exit code 7."""
