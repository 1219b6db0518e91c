"""Extras: optional parts of the installation."""

from importlib import import_module

from engine.errors import InputError

OWN = ("engine", "enginectl", "providers", "resources")
"""Our packages: one of them that cannot be imported is a defect, not a missing extra."""

INSTALL = "pip install '.[policy]', in a checkout of the project"


def require_policies() -> None:
    """Raise `InputError` if the libraries of the extra `policy` are not installed."""
    _require(
        "providers.plan_policies.cel",
        "--policy needs a library that is not installed: pip install '.[policy]', in a checkout of the project",
    )


def missing_tracing() -> str:
    """Which library of the extra `otel` is not installed, and how to install it; empty if all are."""
    try:
        import_module("providers.tracing.export")
    except ModuleNotFoundError as error:
        _raise_if_own(error)
        return f"a library is not installed: {error.name}; pip install '.[otel]', in a checkout of the project"
    return ""


def _require(module: str, message: str) -> None:
    """Raise `InputError` with the message if a library that the module imports is not installed."""
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        _raise_if_own(error)
        raise InputError(message) from error


def _raise_if_own(error: ModuleNotFoundError) -> None:
    """Raise the error if a module of ours is missing, which is a defect."""
    if (error.name or "").partition(".")[0] in OWN:
        raise error
