"""Selectors: label and field selectors, parsed with the error messages of the server."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from msgspec import Struct

from grove_sandbox.kinds.served import Served
from grove_sandbox.product import Body, get, qualified_faults, value_faults
from grove_sandbox.types import names, status

Test = Callable[[Body], bool]


class Selector(Struct, frozen=True):
    """A conjunction of tests; without tests it matches every object."""

    tests: tuple[Test, ...] = ()

    def matches(self, body: Body) -> bool:
        """Whether all tests pass."""
        return all(test(body) for test in self.tests)


def selector(served: Served, labels: str, fields: str) -> Selector:
    """The label and field selectors of a request as one. Raises 400."""
    return Selector((*_label_tests(labels), *(_field_test(term, served) for term in fields.split(",") if term)))


def wants_name(fields: str) -> str:
    """The name that a field selector requires, if that is all it requires; otherwise empty."""
    match = re.fullmatch(r"metadata\.name==?([^,=!]+)", fields)
    return match[1] if match else ""


# --- labels

_TOKEN = re.compile(r"\s*(?:(?P<punctuation>==|!=|=|\(|\)|,|!|>|<)|(?P<word>[^\s=!(),<>]+))")


@lru_cache(maxsize=1024)
def _label_tests(text: str) -> tuple[Test, ...]:
    """The tests of a label selector such as `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`."""
    tokens = _tokens(text)
    tests: list[Test] = []
    while tokens:
        tests.append(_requirement(tokens, text))
        if tokens and tokens.pop(0) != ",":
            raise _unparsable(f"found '{tokens[0] if tokens else ''}', expected: ',' or 'end of string'")
        elif not tokens and text.rstrip().endswith(","):
            raise _unparsable("found '', expected: identifier after ','")
    return tuple(tests)


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unparsable(f"found '{text[at:]}', expected: identifier")
        tokens.append(match["punctuation"] or match["word"])
        at = match.end()
    return tokens


def _requirement(tokens: list[str], text: str) -> Test:
    absent = tokens[0] == "!"
    if absent:
        tokens.pop(0)
    key = tokens.pop(0) if tokens else ""
    if not key or not re.match(r"[^=!(),<>]", key):
        raise _unparsable(f"found '{key}', expected: !, identifier, or 'end of string'")
    if (fault := names.first(qualified_faults(key))) is not None:
        raise _unparsable(f'<nil>: Invalid value: "{key}": {fault}')
    if absent:
        return lambda body: key not in _labels(body)
    if not tokens or tokens[0] == ",":
        return lambda body: key in _labels(body)
    operator = tokens.pop(0)
    if operator in ("in", "notin"):
        values = _values(tokens)
        if operator == "in":
            return lambda body: _labels(body).get(key) in values
        return lambda body: key not in _labels(body) or _labels(body)[key] not in values
    if operator not in ("=", "==", "!=", ">", "<"):
        raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
    value = tokens.pop(0) if tokens and tokens[0] != "," else ""
    if value in _PUNCTUATION:
        raise _unparsable(f"found '{value}', expected: identifier")
    if (fault := names.first(value_faults(value))) is not None:
        raise _unparsable(f'values[0][{key}]: Invalid value: "{value}": {fault}')
    return _COMPARISONS[operator](key, value)


def _values(tokens: list[str]) -> set[str]:
    if not tokens or tokens[0] != "(":
        raise _unparsable(f"found '{tokens[0] if tokens else ''}' expected: '('")
    tokens.pop(0)
    values: set[str] = set()
    last = ","
    while tokens and (token := tokens.pop(0)) != ")":
        if token != ",":
            values.add(token)
        elif last == ",":
            values.add("")
        last = token
    return values


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def _compared(greater: bool) -> Callable[[str, str], Test]:
    def test(key: str, value: str) -> Test:
        bound = _number(value)
        if bound is None:
            raise _unparsable(f"values[0][{key}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer")

        def compare(body: Body) -> bool:
            number = _number(_labels(body).get(key))
            return number is not None and (number > bound if greater else number < bound)

        return compare

    return test


_PUNCTUATION = ("==", "!=", "=", "(", ")", "!", ">", "<")
_COMPARISONS: dict[str, Callable[[str, str], Test]] = {
    "=": lambda key, value: lambda body: _labels(body).get(key) == value,
    "==": lambda key, value: lambda body: _labels(body).get(key) == value,
    "!=": lambda key, value: lambda body: _labels(body).get(key) != value,
    ">": _compared(True),
    "<": _compared(False),
}


def _labels(body: Body) -> Mapping[str, str]:
    return body["metadata"].get("labels") or {}


def _unparsable(detail: str) -> status.StatusError:
    return status.bad_request(f"unable to parse requirement: {detail}")


# --- fields

_COMMON_FIELDS = ("metadata.name", "metadata.namespace")
_EVENT_FIELDS = (
    *(f"involvedObject.{key}" for key in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")),
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    ("", "Event"): _EVENT_FIELDS,
    ("events.k8s.io", "Event"): _EVENT_FIELDS,
    ("", "Namespace"): ("status.phase", "name"),
    ("", "Node"): ("spec.unschedulable",),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP", "spec.type"),
    ("apps", "ReplicaSet"): ("status.replicas",),
    ("batch", "Job"): ("status.successful",),
    ("resource.k8s.io", "ResourceSlice"): ("spec.nodeName", "spec.driver"),
}
_PATHS = {"source": ("source", "component"), "name": ("metadata", "name")}


def _field_test(term: str, served: Served) -> Test:
    match = re.fullmatch(r"([^=!]+)(==|!=|=)(.*)", term)
    if match is None:
        raise status.bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    label, operator, value = match.groups()
    if label not in (*_COMMON_FIELDS, *_FIELDS.get((served.kind.group, served.kind.name), ()), *served.selectable):
        raise _unsupported(served, label)
    path = _PATHS.get(label, tuple(label.split(".")))
    if operator == "!=":
        return lambda body: _text_at(body, path) != value
    return lambda body: _text_at(body, path) == value


def _unsupported(served: Served, label: str) -> status.StatusError:
    if served.custom or (served.kind.group, served.kind.name) in _FIELDS:
        return status.bad_request(f"field label not supported: {label}")
    return status.bad_request(f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def _text_at(body: Body, path: tuple[str, ...]) -> str:
    value = get(body, path)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if path[-1] in ("unschedulable", "hostNetwork") else ""
    return str(value)
