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


def _require(module: str, message: str) -> None:
    """Raise `InputError` with the message if a library that the module imports is not installed."""
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OWN:
            raise
        raise InputError(message) from error
