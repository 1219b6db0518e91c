"""Extras: optional parts of the installation."""

from importlib import import_module

from engine.errors import InputError

OWN = ("engine", "enginectl", "providers", "resources")
"""Our packages: one of them that cannot be imported is a defect, not a missing extra."""


def require_sandbox() -> None:
    """Raise `InputError` if the libraries of the extra `sandbox` are not installed."""
    try:
        import_module("providers.sandbox.process")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OWN:
            raise
        raise InputError("the sandbox is not installed: pip install 'grove-engine[sandbox]'") from error
