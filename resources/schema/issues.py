"""Issues: field errors of a manifest, as text that is safe to print."""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, Self

from msgspec import Struct
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from engine.errors import InputError
from engine.report.printable import clipped

Path = tuple[str | int, ...]
"""The path of a field: keys and list indices."""
MAX_ISSUES: Final = 20
"""The largest number of issues in the text of one error; further ones are only counted."""
MAX_VALUE: Final = 80
"""The largest number of characters of a value that are shown."""
MAX_TEXT: Final = 400
"""The largest number of characters of a path or a message."""
MAX_BITS: Final = 1024
"""Integers with more bits are shown by their size only."""
NO_VALUE: Final = object()
"""Stands for a value that is not shown; None would be shown as `null`."""


SERVICES = ("spec", "services")
"""The path of a graph's services, whose names Dynamo's operator writes in brackets."""


class Child(str):
    """A key that is written with a dot even if it is no identifier, as Grove writes `metadata.annotations.<key>`."""

    __slots__ = ()


class Entry(int):
    """The index of an entry of a list that texts call by its name, as Dynamo's operator writes `spec.components[<name>]`."""

    name: str

    def __new__(cls, index: int, name: str) -> Self:
        """The index and the name."""
        self = super().__new__(cls, index)
        self.name = name
        return self


class Located(str):
    """The text of a warning, with the path of the field that it is about."""

    __slots__ = ("path",)
    path: Path

    def __new__(cls, text: str, path: Path) -> Self:
        """The text and the path."""
        self = super().__new__(cls, text)
        self.path = path
        return self


class ErrorType(StrEnum):
    """The type of a field error; most are those of Kubernetes, in its words."""

    UNKNOWN = "unknown field"
    MALFORMED = "malformed"
    REQUIRED = "Required value"
    INVALID = "Invalid value"
    UNSUPPORTED = "Unsupported value"
    DUPLICATE = "Duplicate value"
    NOT_FOUND = "Not found"
    FORBIDDEN = "Forbidden"
    TOO_LONG = "Too long"


VALUED: Final = frozenset({ErrorType.INVALID, ErrorType.UNSUPPORTED, ErrorType.DUPLICATE, ErrorType.NOT_FOUND})
"""The types whose text quotes the value, if there is one."""


class Issue(Struct, frozen=True):
    """One field error."""

    path: Path
    type: ErrorType
    message: str = ""
    value: Any = NO_VALUE
    """The value of the field, which the text of the types in `VALUED` quotes."""
    pods_only: bool = False
    """Whether an API server stores the object, and refuses the pods that are made from the pod spec in it."""
    within: str = ""
    """The type of Kubernetes whose field is unknown, for unknown fields of pod specs."""

    @property
    def field(self) -> str:
        """The path as text, e.g. `spec.template.cliques[1].name`."""
        return spelled(self.path)

    @property
    def detail(self) -> str:
        """The text without the field: the type, the value if it is shown, and the message."""
        label = (self.type.value,) if self.type is not ErrorType.MALFORMED else ()
        value = (shown(self.value),) if self.type in VALUED and self.value is not NO_VALUE else ()
        return ": ".join(part for part in (*label, *value, clipped(self.message, MAX_TEXT)) if part)

    def __str__(self) -> str:
        """One line: the field and what is wrong with it."""
        return f"{self.field}: {self.detail}" if self.path else self.detail


class Rejected(InputError):
    """A manifest that is not valid, with all its issues. The text has one line for each issue, up to `MAX_ISSUES`."""

    def __init__(self, issues: Iterable[Issue]) -> None:
        self.issues = tuple(issues)
        more = len(self.issues) - MAX_ISSUES
        lines = [str(issue) for issue in self.issues[:MAX_ISSUES]]
        super().__init__("\n".join(lines + ([f"and {more} more"] if more > 0 else [])))


def duplicates(values: Iterable[tuple[Path, Hashable]]) -> Iterator[Issue]:
    """An issue for every value that repeats an earlier one."""
    earlier: set[Hashable] = set()
    for path, value in values:
        if value in earlier:
            yield Issue(path, ErrorType.DUPLICATE, value=value)
        earlier.add(value)


def spelled(path: Path) -> str:
    """A path as text; a key that is no identifier is in brackets, unless it is a `Child`, and so is the name of a graph's service or of
    an `Entry`."""
    is_service = path[:2] == SERVICES
    parts = (
        f"[{part.name if isinstance(part, Entry) else part}]"
        if isinstance(part, int) or (is_service and position == 2) or not _is_plain(part)
        else f".{part}"
        for position, part in enumerate(path)
    )
    return clipped("".join(parts).removeprefix("."), MAX_TEXT)


def shown(value: Any) -> str:
    """A scalar as JSON, clipped and without control characters; for a list or an object only `a list` or `an object`."""
    if isinstance(value, str):
        return clipped(json.dumps(value[: MAX_VALUE * 2], ensure_ascii=False), MAX_VALUE)
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"a number of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float):
        return clipped(json.dumps(value), MAX_VALUE)
    return "a list" if isinstance(value, list | tuple) else "an object"


def _is_plain(part: str) -> bool:
    return isinstance(part, Child) or _is_word(part)


def _is_word(key: str) -> bool:
    return key.replace("-", "_").isidentifier()


Describe = Callable[[ErrorDetails, Mapping[str, Any]], tuple[ErrorType, str]]
"""An error of the model and its context -> the type and the message of an issue."""


def _expected(what: str) -> Describe:
    """Describes an error as `must be <what>, got <the value>`."""
    return lambda error, _: (ErrorType.MALFORMED, f"must be {what}, got {shown(error['input'])}")


def _any_other(error: ErrorDetails, _: Mapping[str, Any]) -> tuple[ErrorType, str]:
    return ErrorType.MALFORMED, f"{error['msg']}, got {shown(error['input'])}"


BY_ERROR: Final[Mapping[str, Describe]] = {
    "missing": lambda *_: (ErrorType.REQUIRED, ""),
    "extra_forbidden": lambda *_: (ErrorType.UNKNOWN, ""),
    "int_type": _expected("an integer"),
    "float_type": _expected("a number"),
    "bool_type": _expected("true or false"),
    "string_type": _expected("a string"),
    "tuple_type": _expected("a list"),
    "dict_type": _expected("an object"),
    "model_type": _expected("an object"),
    "literal_error": lambda _, detail: (
        ErrorType.UNSUPPORTED,
        f"supported values: {detail['expected'].replace(' or ', ', ')}".replace("'", '"'),
    ),
    "string_pattern_mismatch": lambda _, detail: (ErrorType.INVALID, f"must match {detail['pattern']}"),
    "string_too_short": lambda _, detail: (ErrorType.INVALID, f"must have at least {detail['min_length']} characters"),
    "string_too_long": lambda _, detail: (ErrorType.INVALID, f"must have at most {detail['max_length']} characters"),
    "too_short": lambda _, detail: (ErrorType.INVALID, f"must have at least {detail['min_length']} entries"),
    "too_long": lambda _, detail: (ErrorType.INVALID, f"must have at most {detail['max_length']} entries"),
    "greater_than": lambda _, detail: (ErrorType.INVALID, f"must be greater than {detail['gt']}"),
    "less_than_equal": lambda _, detail: (ErrorType.INVALID, f"must be at most {detail['le']}"),
    "greater_than_equal": lambda _, detail: (ErrorType.INVALID, f"must be at least {detail['ge']}"),
    "rule": lambda _, detail: (BY_REASON[detail["reason"]], detail["message"]),
}
BY_REASON: Final[Mapping[str, ErrorType]] = {
    "FieldValueRequired": ErrorType.REQUIRED,
    "FieldValueInvalid": ErrorType.INVALID,
    "FieldValueDuplicate": ErrorType.DUPLICATE,
    "FieldValueNotSupported": ErrorType.UNSUPPORTED,
}
"""The error type for the `reason` of a `Rule`."""


def issue(error: ErrorDetails) -> Issue:
    """The issue for one validation error."""
    detail = error.get("ctx", {})
    type_, message = BY_ERROR.get(error["type"], _any_other)(error, detail)
    # The error of a rule has the whole object as its input: the rule itself says which value is shown, if any.
    value = detail.get("value", NO_VALUE) if error["type"] == "rule" else error["input"]
    path = (*(part for part in error["loc"] if part != "[key]"), *detail.get("field", ()))
    return Issue(path, type_, message, value)


def rejection(error: ValidationError) -> Rejected:
    """All validation errors as one `Rejected`."""
    return Rejected(issue(details) for details in error.errors(include_url=False) if not _is_consequence(details))


def _is_consequence(error: ErrorDetails) -> bool:
    """Whether a list counts as too short only because some of its entries are invalid, which are reported themselves."""
    return error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]
