"""Extras: optional parts of the installation."""

from importlib import import_module

from engine.errors import InputError

OWN = ("engine", "enginectl", "providers", "resources")


def require_sandbox() -> None:
    """Raises `InputError` if the libraries of the extra `sandbox` are not installed."""
    try:
        import_module("providers.sandbox.process")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OWN:
            raise
        raise InputError("the sandbox is not installed: pip install 'grove-engine[sandbox]'") from error
