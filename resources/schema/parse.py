"""Parse: bodies of our kinds into models, or into all the issues that stand in the way."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from engine.ids import Kind
from resources.admission.issues import UNSAID, Fault, Issue, Path, Rejected, shown
from resources.kinds import PODCLIQUE, PODCLIQUESET, PODGANG, SCALING_GROUP, TOPOLOGY_BINDING
from resources.schema.meta import Root
from resources.schema.podclique import PodClique
from resources.schema.podcliqueset import PodCliqueSet
from resources.schema.podgang import PodGang
from resources.schema.scaling_group import PodCliqueScalingGroup
from resources.schema.topology import ClusterTopologyBinding

MODELS: Final[Mapping[Kind, type[Root]]] = {
    PODCLIQUESET: PodCliqueSet,
    PODCLIQUE: PodClique,
    SCALING_GROUP: PodCliqueScalingGroup,
    TOPOLOGY_BINDING: ClusterTopologyBinding,
    PODGANG: PodGang,
}
"""The model of each kind that is ours."""


def parse(kind: Kind, body: Any, *, strict: bool = True) -> Root:
    """The model of a body. Raises `Rejected` with everything that is wrong with it.

    Strict, for manifests that somebody wrote: unknown fields are issues, and the object must say which kind it is.
    Otherwise, for live objects: a newer version of the CRD may have added fields, which are not looked at.
    """
    if strict and (wrong := tuple(_mistaken(kind, body))):
        raise Rejected(wrong)
    try:
        return MODELS[kind].model_validate(body, extra="forbid" if strict else "ignore")
    except ValidationError as error:
        raise Rejected(map(_issue, error.errors(include_url=False))) from None


def faults(kind: Kind, body: Any, *, strict: bool = True) -> tuple[Issue, ...]:
    """Everything that is wrong with a body; the same rules as `parse`."""
    try:
        parse(kind, body, strict=strict)
    except Rejected as rejected:
        return rejected.issues
    return ()


def _mistaken(kind: Kind, body: Any) -> Iterator[Issue]:
    """Whether the object says that it is something else; then no other complaint makes sense."""
    if isinstance(body, Mapping):
        for field, expected in (("apiVersion", kind.api_version), ("kind", kind.name)):
            if body.get(field) != expected:
                yield Issue((field,), Fault.MALFORMED, f'must be "{expected}", got {shown(body.get(field))}')


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
    "greater_than_equal": lambda _, detail: (Fault.INVALID, f"must be at least {detail['ge']}"),
    "rule": lambda _, detail: (RULED[detail["reason"]], detail["message"]),
}
RULED: Final[Mapping[str, Fault]] = {"FieldValueRequired": Fault.REQUIRED, "FieldValueInvalid": Fault.INVALID}


def _issue(error: ErrorDetails) -> Issue:
    """What the model found, as an issue of the field that it found it in."""
    detail = error.get("ctx", {})
    kind, message = TOLD.get(error["type"], _said)(error, detail)
    # A rule across fields is about more than one value.
    value = UNSAID if error["type"] == "rule" else error["input"]
    return Issue(_path(error["loc"], detail.get("field", "")), kind, message, value)


def _path(location: Path, below: str) -> Path:
    """Where it is; a rule across fields names the one it is about, seen from the object that has the rule."""
    return (*(part for part in location if part != "[key]"), *(part for part in below.split(".") if part))
