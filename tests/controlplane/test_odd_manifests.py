"""Odd manifests: each is read as a real `kubectl apply` reads it, or refused with its line."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from engine.errors import InputError
from enginectl.input.manifest_files import objects_in
from tests.controlplane.cluster import ControlPlane, Missing, binary

WORKERS: Final = 2
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl notes what it has read."""
REFUSED: Final = re.compile(r"odd\.(yaml|json):[0-9]+: .+")
VALUES: Final = """
0o17 0O17 017 08 019 -017 00 0b11 0B11 0b-1 0_7 0x1F 0X1F 0x_1 -0x1 0x 0xFFFFFFFFFFFFFFFF 0xFFFFFFFFFFFFFFFFF
1_000 1__0 _1 +1 -0 -0.0 0. 5. .5 ._1 .5_0 +.5 -.5e1 1e3 1E3 1.e3 1e 1e+ 1e-7 1e400 1e-400 .5e400 1.0 3.0e2 1e15 1e16 1e20 1e21
9223372036854775807 9223372036854775808 18446744073709551616 -9223372036854775809 12345678901234567890.5 0.30000000000000004
-.inf +.inf .nan 12:30:45 190:20:30 2001-12-14 2001-12-14T21:59:43Z = ~ ~x Null nULL TRUE tRUE y n Y oN no - ? : a:b a#b x: -x
{a} {a:1} {"a":1} [a,] {a:} "" '' 'null' "\\x41\\u00e9\\U0001F600" "\\ud83d\\ude00" "\\ud800" "\\q" é \U0001f600 a\u200bb a\u0085b a\u2028b
""".split()
TAGGED: Final = (
    "!!str 1",
    "!!int '3'",
    "!!float 1",
    "! 1",
    "! a",
    "!!null ''",
    "!!bool 'yes'",
    "!!binary aGk=",
    "!!set {a, b}",
    "!foo 1",
)
KEYS: Final = "y yes on Off 0x10 010 0b1 1_0 +1 -1 1.5 1.0 1e3 .5 null ~ true 2020-01-01 12:30 = 'y' \"\" : <<".split()
HEAD: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"
TWO: Final = HEAD.replace("one", "two")
JSON: Final = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}%s}'
STREAMS: Final[Mapping[str, str | bytes]] = {
    "lines of Windows": HEAD.replace("\n", "\r\n") + "x: |\r\n  a\r\n  b\r\n",
    "two marks": f"\ufeff\ufeff{HEAD}",
    "a mark in a later document": f"{HEAD}---\n\ufeff{TWO}",
    "a mark after a comment": f"{HEAD}---\n# two\n\ufeff{TWO}",
    "a mark before a separator": f"{HEAD}\ufeff---\n{TWO}",
    "a separator with a comment at once": f"{HEAD}---# two\n{TWO}",
    "UTF-16": b"\xff\xfe" + HEAD.encode("utf-16le"),
    "no UTF-8": HEAD.encode() + b"x: \xff\n",
    "separators with spaces": f"---\n---   \n{HEAD}---\t\n{TWO}---\n",
    "a separator with a comment": f"{HEAD}--- # two\n{TWO}",
    "a separator with text": f"{HEAD}---x\n{TWO}",
    "the end of a document": f"{HEAD}...\n---\n{TWO}",
    "text after the end": f"{HEAD}...\ngarbage\n",
    "a separator in a block": f"{HEAD}x: |\n  a\n  ---\n  b\n",
    "a separator that ends a block": f"{HEAD}x: |\n  a\n---\n{TWO}",
    "a block without a line break at the end": f"{HEAD}x: |\n  a",
    "a block that keeps its end": f"{HEAD}x: |+\n  a\n\n\nz: 1\n",
    "folded text": f"{HEAD}x: >\n  a\n  b\n\n  c\n   d\n",
    "text of several lines": f'{HEAD}x: "a\n\n  b \\\n  c"\nz: a\n  b\n',
    "tabs": f"{HEAD}x:\n\ta: 1\n",
    "a tab after a colon": f"{HEAD}x:\ta\n",
    "a key twice": f"{HEAD}x: {{y: 1, 'true': 2}}\n",
    "a merge below its key": f"{HEAD}x: &a {{b: 1}}\nz:\n  b: 2\n  <<: *a\n",
    "a merge above its key": f"{HEAD}x: &a {{b: 1}}\nz:\n  <<: *a\n  b: 2\n",
    "two merges": f"{HEAD}x: &a {{b: 1}}\nw: &c {{b: 2}}\nz:\n  <<: *a\n  <<: *c\n",
    "a merge of a list": f"{HEAD}x: &a {{b: 1}}\nw: &c {{b: 2}}\nz:\n  <<: [*a, *c]\n",
    "an anchor of another document": f"{HEAD}x: &a 1\n---\n{TWO}x: *a\n",
    "an anchor again": f"{HEAD}x: [&a 1, *a, &a 2, *a]\n",
    "an anchor in itself": f"{HEAD}x: &a [*a]\n",
    "a directive": f"%YAML 1.1\n---\n{HEAD}",
    "a list in a list": f"apiVersion: v1\nkind: List\nitems: [{JSON % ''}, null]\n",
    "nothing between": f"{HEAD}---\nnull\n---\n# nothing\n---\n{TWO}",
    "JSON": JSON % ', "x": 1.0, "z": 1e2, "w": 18446744073709551616, "v": -0',
    "JSON twice": f"{JSON % ''}{JSON % ''}",
    "JSON after YAML": f"{HEAD}---\n{JSON % ''}",
    "JSON twice after YAML": f"{TWO}---\n{JSON % ''}\n{JSON % ''}",
    "JSON with null between": f"{JSON % ''}\nnull\n{JSON % ''}",
    "a list of one kind": "apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: one}}]\n",
    "a list without a version": f"kind: List\nitems: [{JSON % ''}]\n",
    "a list of null": f"apiVersion: v1\nkind: List\nitems: null\n---\n{HEAD}",
    "a merge of a truth value": f"{HEAD}z:\n  b: {{c: 1}}\n  <<: {{b: {{c: true}}}}\n",
    "JSON with a key twice": JSON % ', "x": 1, "x": 2',
    "JSON with a comma at its end": JSON % ",",
    "JSON with half a character": JSON % ', "x": "\\ud800"',
    "JSON with control characters": JSON % ', "x": "a\tb"',
    "JSON with an infinite number": JSON % ', "x": 1e400',
    "JSON that is cut off": (JSON % "")[:-1],
    "JSON with a separator": f"{JSON % ''}\n---\n{JSON % ''}",
}
READ_HERE_ONLY: Final = {
    "JSON with a separator": "older releases of kubectl read it",
    "a list in a list": "its items are manifests, too",
    **dict.fromkeys(("a mark after a comment", "a mark before a separator"), "kubectl reads the mark as a part of a name"),
}
"""What this kubectl refuses and the engine reads -> why."""


def odd_files() -> Iterator[tuple[str, bytes, str]]:
    """The name of each file, its content, and how its name ends."""
    yield from ((f"value {text}", f"{HEAD}x: {text}\n".encode(), "yaml") for text in (*VALUES, *TAGGED))
    yield from ((f"key {text}", f"{HEAD}x:\n  {text}: 1\n".encode(), "yaml") for text in KEYS)
    for name, text in STREAMS.items():
        suffix = "json" if name.startswith("JSON with") else "yaml"
        yield name, text if isinstance(text, bytes) else text.encode(), suffix


def read_by_kubectl(plane: ControlPlane, folder: Path, numbered: tuple[int, tuple[str, bytes, str]]) -> list[Any] | None:
    """The objects that `kubectl apply` reads in a file; None if it refuses it."""
    number, (_, content, suffix) = numbered
    file = folder / f"{number}.{suffix}"
    file.write_bytes(content)
    words = [binary("kubectl"), "--kubeconfig", str(plane.kubeconfig()), "-n", "default", "apply", "--validate=ignore", "--dry-run=server"]
    done = subprocess.run([*words, "-o", "json", "-f", str(file)], capture_output=True, timeout=120, check=False)
    if done.returncode:
        return None
    answer = json.loads(done.stdout)
    return [
        plain(json.loads(body["metadata"]["annotations"][LAST_APPLIED], parse_int=number_of_json))
        for body in (answer["items"] if answer["kind"] == "List" else [answer])
    ]


def number_of_json(text: str) -> int | float:
    """A number as kubectl has it: beyond int64 a float, which it writes without a fraction."""
    return int(text) if -(2**63) <= int(text) < 2**63 else float(text)


def plain(body: dict[str, Any]) -> Any:
    """The object without what kubectl adds to it."""
    metadata = {key: value for key, value in body["metadata"].items() if key not in ("annotations", "namespace")}
    return {**body, "metadata": metadata}


def read_here(content: bytes, suffix: str) -> list[Any] | str:
    """The objects that the engine reads, or why it refuses the file."""
    try:
        return [plain(dict(each.body)) for each in objects_in(content, f"odd.{suffix}")]
    except InputError as error:
        return str(error)


@pytest.mark.e2e
def test_odd_manifests_are_what_kubectl_reads_or_are_refused_with_their_line(api_server: ControlPlane, tmp_path: Path) -> None:
    try:
        binary("kubectl")
    except Missing as missing:
        pytest.skip(str(missing))
    files = list(odd_files())
    with ThreadPoolExecutor(WORKERS) as pool:
        answers = list(pool.map(partial(read_by_kubectl, api_server, tmp_path), enumerate(files)))

    wrong = []
    for (name, content, suffix), theirs in zip(files, answers, strict=True):
        ours = read_here(content, suffix)
        if isinstance(ours, str):
            is_right = bool(REFUSED.match(ours))
        elif theirs is None:
            is_right = name in READ_HERE_ONLY
        else:
            is_right = json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True)
        if not is_right:
            wrong.append((name, ours, theirs))
    assert len(files) > 150 and wrong == []
