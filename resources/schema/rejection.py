"""Rejection: what a model finds wrong with a body, in the words of whoever wrote the body."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from resources.schema.issues import UNSAID, Fault, Issue, Rejected, shown

Told = Callable[[ErrorDetails, Mapping[str, Any]], tuple[Fault, str]]
"""How an error of the model is told to the author of the manifest."""


def _expected(what: str) -> Told:
    return lambda error, _: (Fault.MALFORMED, f"must be {what}, got {shown(error['input'])}")


def _said(error: ErrorDetails, _: Mapping[str, Any]) -> tuple[Fault, str]:
    return Fault.MALFORMED, f"{error['msg']}, got {shown(error['input'])}"


TOLD: Final[Mapping[str, Told]] = {
    "missing": lambda *_: (Fault.REQUIRED, ""),
    "extra_forbidden": lambda *_: (Fault.UNKNOWN, ""),
    "int_type": _expected("an integer"),
    "float_type": _expected("a number"),
    "bool_type": _expected("true or false"),
    "string_type": _expected("a string"),
    "tuple_type": _expected("a list"),
    "dict_type": _expected("an object"),
    "model_type": _expected("an object"),
    "literal_error": lambda _, detail: (
        Fault.UNSUPPORTED,
        f"supported values: {detail['expected'].replace(' or ', ', ')}".replace("'", '"'),
    ),
    "string_pattern_mismatch": lambda _, detail: (Fault.INVALID, f"must match {detail['pattern']}"),
    "string_too_short": lambda _, detail: (Fault.INVALID, f"must have at least {detail['min_length']} characters"),
    "string_too_long": lambda _, detail: (Fault.INVALID, f"must have at most {detail['max_length']} characters"),
    "too_short": lambda _, detail: (Fault.INVALID, f"must have at least {detail['min_length']} entries"),
    "greater_than": lambda _, detail: (Fault.INVALID, f"must be greater than {detail['gt']}"),
    "less_than_equal": lambda _, detail: (Fault.INVALID, f"must be at most {detail['le']}"),
    "greater_than_equal": lambda _, detail: (Fault.INVALID, f"must be at least {detail['ge']}"),
    "rule": lambda _, detail: (RULED[detail["reason"]], detail["message"]),
}
RULED: Final[Mapping[str, Fault]] = {
    "FieldValueRequired": Fault.REQUIRED,
    "FieldValueInvalid": Fault.INVALID,
    "FieldValueDuplicate": Fault.DUPLICATE,
}
"""Kubernetes' words for the reasons that our rules have."""


def issue(error: ErrorDetails) -> Issue:
    """What the model found, as an issue of the field that it found it in."""
    detail = error.get("ctx", {})
    kind, message = TOLD.get(error["type"], _said)(error, detail)
    # A rule across fields is about more than the one value it was found in; if it has a value to show, it says so.
    value = detail.get("value", UNSAID) if error["type"] == "rule" else error["input"]
    path = (*(part for part in error["loc"] if part != "[key]"), *detail.get("field", ()))
    return Issue(path, kind, message, value)


def rejection(error: ValidationError) -> Rejected:
    """Everything that a model found wrong, as one error."""
    return Rejected(issue(found) for found in error.errors(include_url=False) if not _is_aftermath(found))


def _is_aftermath(error: ErrorDetails) -> bool:
    """Whether a list is called too short only because entries of it are wrong, which is told already."""
    return error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]
