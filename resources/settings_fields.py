"""The fields of the operator configuration file: their paths and defaults, and which of them have no effect in this engine."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from resources.schema.issues import Path
from resources.schema.unknown_fields import model_in
from resources.schema.wire import Wire
from resources.settings import GANG_SCHEDULING, Settings

ENTRY: Final = "[]"
"""Stands for the entries of a list in the path of a field, as in `scheduler.profiles[].name`."""
REQUIRED: Final = object()
"""In place of the default of a field that must be given."""

WITHOUT_EFFECT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "runtimeClientConnection.qps": "the rate of requests is not limited, only how many are sent at once",
        "runtimeClientConnection.burst": "the rate of requests is not limited, only how many are sent at once",
        "runtimeClientConnection.contentType": "requests are always JSON",
        "runtimeClientConnection.acceptContentTypes": "answers are always JSON",
        "leaderElection.resourceLock": "the lock is always a Lease",
        "debugging": "there is no profiling endpoint",
        "controllers": "one loop plans all kinds",
    }
)
"""The fields, or sections, that are accepted for compatibility with Grove and have no effect, each with the reason."""
OPTIONS: Final = "scheduler.profiles[].config"
"""The options of a back end, an object of any shape."""
VALUES_WITHOUT_EFFECT: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {("logLevel", "error"): "error is treated as info"},
)
"""The same for single values of fields that otherwise have an effect."""
NEEDS_RESTART: Final[Mapping[str, str]] = MappingProxyType(
    {
        "leaderElection": "the Lease is held with the values at the start",
        "server": "its addresses are bound at the start",
        "namespaces": "what is listed and what the account may do change together",
        "dynamo.enabled": "what is listed and what the account may do change together",
    }
)
"""The fields, or sections, that `engine run` uses when it starts only, each with the reason."""
NOT_PLANNED_WITH: Final[Mapping[str, str]] = MappingProxyType({"authorizer": "only admission depends on it"})
"""The fields, or sections, that no plan depends on, each with the reason."""
PUBLISHED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "leaderElection": "every writer holds the Leases of the installation",
        "topologyAwareScheduling": "decides about the constraints of gangs",
        "network": "decides about fabric domains",
        "scheduler": "decides about the objects of gangs",
        "initContainer": "is part of the pods of cliques that start after others",
        "dynamo": "decides about the objects of graphs",
        "namespaces": "workloads of other namespaces are not managed",
        "limits": "decides how large sets may be",
    }
)
"""The fields, or sections, that an installation publishes because commands plan or write with them, each with the reason."""
NOT_PUBLISHED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "apiVersion": "there is only one",
        "kind": "there is only one",
        "server": "no plan depends on where a process listens",
        "logLevel": "each process has its own log",
        "logFormat": "each process has its own log",
        "authorizer": "only admission depends on it, and it names accounts",
    }
)
"""The fields, or sections, with an effect that an installation does not publish, each with the reason."""


def known_fields(model: type[Wire] = Settings, section: str = "") -> Iterator[tuple[str, Any]]:
    """The path of every field that is no section, and its default as JSON; `REQUIRED` if it has none."""
    for name, field in model.model_fields.items():
        path, inner = f"{section}{field.alias or name}", model_in(field.annotation)
        default = REQUIRED if field.is_required() else field.get_default()
        if inner is None:
            yield path, list(default) if isinstance(default, tuple) else default
        elif isinstance(default, tuple):
            yield path, [entry.body() for entry in default]
            yield from known_fields(inner, f"{path}{ENTRY}.")
        else:
            yield from known_fields(inner, f"{path}.")


def without_effect(config: Any) -> Iterator[tuple[Path, str]]:
    """The path of every field of a parsed configuration file that has no effect, and the reason."""
    for path, value in leaves(config):
        if (reason := reason_without_effect(path, value)) is not None:
            yield path, reason


def reason_without_effect(path: Path, value: Any) -> str | None:
    """Why a field has no effect with this value; None if it has one."""
    field = generic(path)
    if field == OPTIONS and isinstance(value, Mapping) and not value.keys() <= {GANG_SCHEDULING}:
        return f"no scheduler back end has other options than {GANG_SCHEDULING}"
    reasons = (reason for section, reason in WITHOUT_EFFECT.items() if f"{field}.".startswith(f"{section}."))
    return next(reasons, VALUES_WITHOUT_EFFECT.get((field, value)) if isinstance(value, str) else None)


def is_in(field: str, sections: Mapping[str, str]) -> bool:
    """Whether the field, or a section that contains it, is among these."""
    return any(f"{field}.".startswith(f"{section}.") for section in sections)


def is_published(field: str) -> bool:
    """Whether an installation publishes the field."""
    is_unread = field.startswith(f"{OPTIONS}.") and field != f"{OPTIONS}.{GANG_SCHEDULING}"
    return is_in(field, PUBLISHED) and not is_in(field, WITHOUT_EFFECT) and not is_unread


def changed_fields(old: Settings, new: Settings) -> tuple[str, ...]:
    """The paths of the fields with an effect whose values differ, sorted; defaults count as values."""
    dumps = (leaves(settings.model_dump(mode="json", by_alias=True)) for settings in (old, new))
    before, after = ({path: value for path, value in each if value != {}} for each in dumps)
    differing = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return tuple(sorted({field for path in differing if not is_in(field := generic(path), WITHOUT_EFFECT)}))


def generic(path: Path) -> str:
    """The path as text, with `[]` for each index but the last key: an entry of a list without fields stands for the list."""
    return "".join(ENTRY if isinstance(key, int) else f".{key}" for key in path).removeprefix(".").removesuffix(ENTRY)


def leaves(value: Any, model: type[Wire] | None = Settings, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The paths and values of the known fields in a parsed configuration file, except sections and nulls. An opaque object is one value."""
    if model is None:
        if value is not None:
            yield path, value
    elif isinstance(value, Mapping):
        for name, field in model.model_fields.items():
            key = field.alias or name
            if key in value:
                yield from leaves(value[key], model_in(field.annotation), (*path, key))
    elif isinstance(value, list | tuple):
        for index, entry in enumerate(value):
            yield from leaves(entry, model, (*path, index))
