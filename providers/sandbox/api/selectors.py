"""Selectors: which objects of a collection are meant, by label and by field."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from providers.sandbox.kinds.served import Served
from providers.sandbox.types import names, status

Body = Mapping[str, Any]
Test = Callable[[Body], bool]


@dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of tests; none: everything matches."""

    tests: tuple[Test, ...] = ()

    def matches(self, body: Body) -> bool:
        """Whether the object is meant."""
        return all(test(body) for test in self.tests)


def selector(served: Served, labels: str, fields: str) -> Selector:
    """Both selectors of a request. Raises the server's 400."""
    return Selector((*_label_tests(labels), *_field_tests(served, fields)))


def wants_name(fields: str) -> str:
    """The one name that a field selector asks for, or empty."""
    match = re.fullmatch(r"metadata\.name==?([^,=!]+)", fields)
    return match[1] if match else ""


# --- labels

_TOKEN = re.compile(r"\s*(?:(?P<punctuation>==|!=|=|\(|\)|,|!|>|<)|(?P<word>[^\s=!(),<>]+))")


def _label_tests(text: str) -> list[Test]:
    """Parse `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`."""
    tokens = _tokens(text)
    tests: list[Test] = []
    while tokens:
        tests.append(_requirement(tokens, text))
        if tokens and tokens.pop(0) != ",":
            raise _unparsable(f"found '{tokens[0] if tokens else ''}', expected: ',' or 'end of string'")
        elif not tokens and text.rstrip().endswith(","):
            raise _unparsable("found '', expected: identifier after ','")
    return tests


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
    if (fault := names.first(names.qualified_faults(key))) is not None:
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
    if (fault := names.first(names.value_faults(value))) is not None:
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

_EVERY = ("metadata.name", "metadata.namespace")
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
    ("", "Event"): (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("events.k8s.io", "Event"): (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("", "Namespace"): ("status.phase", "name"),
    ("", "Node"): ("spec.unschedulable",),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP", "spec.type"),
    ("apps", "ReplicaSet"): ("status.replicas",),
    ("batch", "Job"): ("status.successful",),
    ("resource.k8s.io", "ResourceSlice"): ("spec.nodeName", "spec.driver"),
}
_ELSEWHERE = {"source": ("source", "component"), "name": ("metadata", "name")}


def _field_tests(served: Served, text: str) -> list[Test]:
    return [_field_test(term, served) for term in text.split(",") if term]


def _field_test(term: str, served: Served) -> Test:
    match = re.fullmatch(r"([^=!]+)(==|!=|=)(.*)", term)
    if match is None:
        raise status.bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    label, operator, value = match.groups()
    if label not in (*_EVERY, *_FIELDS.get((served.kind.group, served.kind.name), ()), *served.selectable):
        raise _unsupported(served, label)
    path = _ELSEWHERE.get(label, tuple(label.split(".")))
    if operator == "!=":
        return lambda body: _text_at(body, path) != value
    return lambda body: _text_at(body, path) == value


def _unsupported(served: Served, label: str) -> status.StatusError:
    if served.custom or (served.kind.group, served.kind.name) in _FIELDS:
        return status.bad_request(f"field label not supported: {label}")
    return status.bad_request(f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def _text_at(body: Any, path: tuple[str, ...]) -> str:
    for key in path:
        body = body.get(key) if isinstance(body, Mapping) else None
    if isinstance(body, bool):
        return "true" if body else "false"
    if body is None:
        return "false" if path[-1] in ("unschedulable", "hostNetwork") else ""
    return str(body)
