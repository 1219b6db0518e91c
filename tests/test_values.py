"""Decisions are made from values, never from texts for people; and what a preview shows is put together in one place."""

import ast
from collections.abc import Iterator

import pytest

from tests.test_layout import SANDBOX, SOURCES, Rule, Source

REASONS = frozenset({"why", "message", "messages", "reason", "error", "errors", "fault", "faults", "problem", "warning", "note", "remedy"})
"""What texts for people are called."""
READING = frozenset({"startswith", "endswith", "find", "index", "search", "match", "fullmatch", "findall"})
"""Calls by which a text is recognised."""
READS_TEXTS = {
    "engine/report/sarif.py": "takes file and line from the beginning of faults, as problem matchers do",
    "cmd/enginectl/base/usage.py": "the errors of typer are texts and nothing else",
    "cmd/enginectl/input/kustomize.py": "the errors of kubectl are texts and nothing else",
    "providers/kubernetes/errors.py": "a Status tells refusals by a role, a quota and admission apart by its message alone",
    "providers/fabrics/nvidia/pod_messages.py": "the scheduler and the kubelet say why a pod does not start in messages alone",
}
"""The files where texts of others become values, each with its reason."""


def decides_by_values(source: Source) -> Iterator[tuple[int, str]]:
    """Nothing is decided by the wording of a reason, a message or an error: reasons are values."""
    if source.path in READS_TEXTS or not source.layer or source.layer.startswith(SANDBOX):
        return
    for node in source.nodes:
        match node:
            case ast.Compare(ops=ops, comparators=[*_, last]) if isinstance(ops[-1], ast.In | ast.NotIn) and text_name(last) in REASONS:
                yield node.lineno, f"looks for a text in `{ast.unparse(last)}`"
            case ast.Call(func=ast.Attribute(value=value, attr=method), args=args) if method in READING:
                if any(text_name(each) in REASONS for each in (value, *args)):
                    yield node.lineno, f"reads the text of `{ast.unparse(node)[:80]}`"


def adds_nothing_to_plans(source: Source) -> Iterator[tuple[int, str]]:
    """What is shown of a plan is put together in one place, `resources/preview/shown.py`: commands and pages add nothing to plans."""
    if not source.path.startswith("cmd/"):
        return
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Name(id="Plan")):
                yield node.lineno, "makes a plan"
            case ast.Call(func=ast.Name(id="replace"), keywords=keywords):
                if added := {keyword.arg for keyword in keywords} & {"notes", "deferred", "pending", "problems", "operations"}:
                    yield node.lineno, f"adds {', '.join(sorted(map(str, added)))} to a plan"


def text_name(node: ast.expr) -> str:
    """The last name of an expression that stands for a text: of `x.why`, `str(x.why)` and `x.why.lower()` it is `why`."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return text_name(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="lower" | "casefold" | "strip")):
            return text_name(inner)
    return ""


@pytest.mark.parametrize("rule", [decides_by_values, adds_nothing_to_plans], ids=lambda rule: rule.__name__)
def test_every_file(rule: Rule) -> None:
    assert [f"{source.path}:{line}: {what}" for source in SOURCES for line, what in rule(source)] == []
