"""Scenarios: sequences of requests, and their answers without what differs from run to run.

A scenario runs in a namespace of its own, `{ns}`. The answers of the real server are in `golden/`; the sandbox must give the same ones.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Send = Callable[[str, str, Any, str], Awaitable[tuple[int, Any]]]
"""Sends method, path, body and content type; returns the code and the body of the answer, for a watch the list of its events."""

HOW = {
    "json": "application/json",
    "merge": "application/merge-patch+json",
    "json-patch": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One request. `keep` names values of the answer (dotted paths) that later steps write as `{name}`.

    The answer to a step without a title is not recorded, because it depends on timing. In addition to the methods of HTTP there are
    WATCH, which reads events; AWAIT, which repeats a GET until it succeeds and the answer has the values of the body, if there is one;
    and ENSURE, a POST of an object that may exist.
    """

    title: str
    method: str
    path: str
    body: Any = None
    how: str = "json"
    keep: Mapping[str, str] = field(default_factory=dict)


def watched(title: str, path: str, **query: str) -> Step:
    """A step that reads the events since the kept revision."""
    parameters = "&".join(f"{key}={value}" for key, value in {"watch": "true", "timeoutSeconds": "{seconds}", **query}.items())
    return Step(title, "WATCH", f"{path}?{parameters}")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named sequence of requests."""

    name: str
    steps: tuple[Step, ...]


async def play(scenario: Scenario, send: Send, namespace: str, seconds: int) -> list[dict[str, Any]]:
    """The comparable answers to the steps with a title. Each watch lasts so many seconds."""
    values = {"ns": namespace, "seconds": str(seconds)}
    symbols = Symbols(namespace)
    answers = []
    for step in scenario.steps:
        code, body = await send(step.method, filled(step.path, values), filled(step.body, values), HOW[step.how])
        values |= {name: _at(body, path) for name, path in step.keep.items()}
        if step.title:
            answers.append({"step": step.title, "code": code, "answer": symbols.plain(body)})
    return answers


def filled(value: Any, values: Mapping[str, str]) -> Any:
    """The value with every `{name}` replaced by the value kept under that name."""
    match value:
        case str():
            for name, text in values.items():
                value = value.replace(f"{{{name}}}", str(text))
            return value
        case Mapping():
            return {filled(key, values): filled(item, values) for key, item in value.items()}
        case list() | tuple():
            return [filled(item, values) for item in value]
    return value


def _at(body: Any, path: str) -> Any:
    for key in path.split("."):
        body = body[int(key)] if isinstance(body, list) else body[key]
    return body


_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
_ADDRESS = re.compile(r"\b10\.0\.\d+\.\d+\b")
_REVISION = re.compile(r"(ResourceVersion in the precondition|ResourceVersion in record|resource version:|current:) ?\(?\d+\)?( \(\d+\))?")
_BODY = re.compile(r'"\{.*\}"')
_TOKEN_FAULT = re.compile(r"(continue key is not valid: ).*")
_STRUCT = re.compile(r'\{"(D|d)evices":\{.*\}(?=: field is immutable)')
_DIFFERENCE = re.compile(r"(previously negative\)\n).*", re.DOTALL)
_FIVE = r"[bcdfghjklmnpqrstvwxz2456789]{5}"


class Symbols:
    """Names for values that differ between runs. Within a scenario a value always gets the same name."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._known: dict[str, dict[str, str]] = {}
        self._generated: set[str] = set()

    def plain(self, body: Any) -> Any:
        """The answer with symbols."""
        if isinstance(body, list) and all(isinstance(event, Mapping) and "type" in event for event in body):
            return [self._event(event) for event in body if event["type"] != "BOOKMARK" or "annotations" in event["object"]["metadata"]]
        return self._walk(body, ())

    def _event(self, event: Mapping[str, Any]) -> Any:
        if event["type"] == "BOOKMARK":
            # Its revision depends on everything else that is written to the server.
            return {"type": "BOOKMARK", "annotations": event["object"]["metadata"]["annotations"]}
        return self._walk(event, ())

    def _symbol(self, type_: str, value: str) -> str:
        known = self._known.setdefault(type_, {})
        return known.setdefault(value, f"<{type_}-{len(known) + 1}>")

    def _walk(self, value: Any, path: tuple[str, ...]) -> Any:
        match value:
            case Mapping():
                if base := value.get("generateName"):
                    self._generated.add(str(base))
                if value.get("reason") in ("Invalid", "Conflict"):
                    value = _ordered(value)
                return {self._text(key): self._walk(item, (*path, key)) for key, item in value.items() if not _noise(path, key, value)}
            case list():
                items = [self._walk(item, path) for item in value]
                return sorted(items, key=_manager) if path[-1:] == ("managedFields",) else items
            case str():
                return self._leaf(value, path)
        return value

    def _leaf(self, text: str, path: tuple[str, ...]) -> str:
        if path[-2:] == ("metadata", "resourceVersion"):
            return self._symbol("rv", text)
        if path[-2:] == ("status", "token"):
            return "<token>"
        if path[-1:] == ("continue",):
            return "<token>" if text else ""
        return self._text(text)

    def _text(self, text: str) -> str:
        text = text.replace(self._namespace, "{ns}")
        text = _UID.sub(lambda match: self._symbol("uid", match[0]), text)
        text = _TIME.sub("<time>", text)
        text = _TOKEN_VOLUME.sub("kube-api-access-?????", text)
        text = _ADDRESS.sub("<address>", text)
        text = _TOKEN_FAULT.sub(r"\1<fault>", text)
        text = _BODY.sub("<body>", text) if "patch: Invalid value" in text or text.startswith('Invalid value: "{') else text
        text = _STRUCT.sub("<struct>", text)
        text = _DIFFERENCE.sub(r"\1<difference>", text)
        text = _REVISION.sub(lambda match: f"{match[1]} <rv>", text)
        for base in self._generated:
            text = re.sub(re.escape(base) + _FIVE + r"\b", f"{base}?????", text)
        return text


def _ordered(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The refusal with its causes sorted and without duplicates: a server reports them in any order, some repeatedly."""
    causes = (status.get("details") or {}).get("causes") or []
    once = {f"{cause['field']}: {cause['message']}": cause for cause in causes}
    if not causes:
        return status
    if status["reason"] == "Conflict":
        return {**status, "details": {"causes": [once[text] for text in sorted(once)]}}
    head, _, tail = status["message"].partition(" is invalid: ")
    texts = [text for text in sorted(once) if text in tail]
    return {
        **status,
        "message": f"{head} is invalid: {'; '.join(texts)}",
        "details": {**status["details"], "causes": [once[text] for text in sorted(once)]},
    }


def _noise(path: tuple[str, ...], key: str, parent: Mapping[str, Any]) -> bool:
    """Whether the value is left out: the revision of a list, and what discovery says of the storage."""
    return key == "storageVersionHash" or key == "resourceVersion" and path == ("metadata",) and "uid" not in parent


def _manager(entry: Any) -> tuple[str, str, str]:
    return entry.get("operation", ""), entry.get("manager", ""), entry.get("subresource", "")
