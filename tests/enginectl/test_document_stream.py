"""A stream of documents: each is handed on as soon as it has ended, and a broken one does not affect the others."""

import io
import json
import time
from typing import Any

import pytest

from enginectl.input.document_stream import StreamDocument, read_stream


def read(text: str | bytes, limit: int = 1000) -> list[StreamDocument]:
    """The documents in a text."""
    return list(read_stream(io.BytesIO(text.encode() if isinstance(text, str) else text), limit=limit))


def values(text: str) -> list[Any]:
    """The values of the documents in a text without faults."""
    documents = read(text)
    assert not any(document.fault for document in documents)
    return [document.value for document in documents]


ONE: Any = {"a": [1, {"b": "}{"}], "c": '\\" {'}
TWO: Any = {"d": {}}


@pytest.mark.parametrize(
    "text",
    [
        f"{json.dumps(ONE)}\n{json.dumps(TWO)}\n",
        f"{json.dumps(ONE)}\n\n{json.dumps(TWO)}",
        f"{json.dumps(ONE, indent=2)}\n{json.dumps(TWO, indent=2)}\n",
        f"  {json.dumps(ONE)}\r\n{json.dumps(TWO)}\r\n",
        f"\ufeff{json.dumps(ONE)}\n---\n{json.dumps(TWO)}\n",
        "# first\na: [1, {b: '}{'}]\nc: '\\\" {'\n---\nd: {}\n",
        f"a: [1, {{b: '}}{{'}}]\nc: '\\\" {{'\n{json.dumps(TWO)}\n",
    ],
)
def test_documents_are_separated_however_they_are_written(text: str) -> None:
    assert values(text) == [ONE, TWO]


def test_a_document_is_handed_on_before_the_next_has_come() -> None:
    class Slow(io.BytesIO):
        """A stream that must not be read on."""

        lines = [b'{"a": 1}\n', b"{\n", b' "b": 2\n', b"}\n"]

        def readline(self, size: int | None = -1, /) -> bytes:
            return self.lines.pop(0)

    documents = read_stream(Slow(), limit=100)

    assert [next(documents).value, next(documents).value] == [{"a": 1}, {"b": 2}]


def test_every_document_knows_its_line() -> None:
    documents = read(f"\n{json.dumps(ONE)}\n{json.dumps(TWO, indent=1)}\n# note\na: 1\n")

    assert [document.line for document in documents] == [2, 3, 7]


@pytest.mark.parametrize(
    ("broken", "line", "fault"),
    [
        ('{"a": 1', 1, "not JSON: "),
        ('{"a": 1}}', 1, "not JSON: Extra data"),
        ('{\n "a": 1,\n "b" 2\n}', 3, "not JSON: Expecting ':' delimiter"),
        ('{"a": NaN}', 1, "not JSON: "),
        ('{"a": "\\ud800"}', 1, "not JSON: "),
        ("a: 1\nb: [", 3, "not JSON, and as YAML: not YAML"),
        ("a: 1\na: 2", 2, "not JSON, and as YAML: the key a appears twice"),
        ("a: .nan", 1, "not JSON, and as YAML: .nan is not a JSON number"),
        ("null", 1, "nothing but null"),
        ('{"a": "' + "x" * 1000 + '"}', 1, "larger than the limit of 1000 bytes"),
        ("{\n" + ' "a": 1,\n' * 200 + "}", 1, "larger than the limit of 1000 bytes"),
        ('{"a":' * 1500, 1, "larger than the limit of 1000 bytes"),
    ],
)
def test_a_broken_document_is_reported_with_its_line_and_what_follows_is_read(broken: str, line: int, fault: str) -> None:
    bad, good = read(f'{broken}\n{{"good": true}}\n')

    assert (bad.line, bad.value, good.value) == (line, None, {"good": True})
    assert bad.fault.startswith(fault)


def test_a_line_that_closes_no_bracket_is_a_fault_and_no_recursion() -> None:
    (bad,) = read("{" + '"a":{' * 5000, limit=1 << 20)

    assert bad.fault.startswith("not JSON")


def test_bytes_that_are_not_utf_8_are_a_fault() -> None:
    bad, good = read(b'{"a": "\xff"}\n{"b": 1}')

    assert bad.fault.startswith("not JSON")
    assert good.value == {"b": 1}


def test_a_string_without_its_end_is_read_in_linear_time() -> None:
    text = b'{"' + b'\\"' * 100_000 + b'\n{"a": 1}\n'
    started = time.process_time()
    broken, whole = read_stream(io.BytesIO(text), limit=1 << 20)

    assert (broken.line, broken.fault.startswith("not JSON"), whole.value) == (1, True, {"a": 1})
    assert time.process_time() - started < 5.0
