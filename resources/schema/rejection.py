"""Rejection: the validation errors of a model as issues of the manifest."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from resources.schema.issues import NO_VALUE, ErrorType, Issue, Rejected, shown

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
