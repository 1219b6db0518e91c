"""Tables read as a real API server prints them: `tables.json` holds what one answered for these very objects.

Of some kinds the sandbox shows fewer columns: those that users of workloads look at.
"""

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from grove_sandbox.tables import ages, columns
from grove_sandbox.tables.columns import FORMATTERS, TIMED_FORMATTERS, Column, of_builtin, of_custom
from grove_sandbox.tables.table import table

NOW = datetime.datetime(2026, 11, 21, 12, 0, tzinfo=datetime.UTC)
RECORDED = json.loads((Path(__file__).parent / "tables.json").read_text())
ROWS = [
    pytest.param(sheet, row, id=f"{sheet['resource']}-{row['object']['metadata']['name']}") for sheet in RECORDED for row in sheet["rows"]
]


def columns_of(body: dict[str, Any]) -> tuple[Column, ...]:
    return of_builtin(body["apiVersion"].rpartition("/")[0], body["kind"])


@pytest.mark.parametrize("sheet", [pytest.param(sheet, id=sheet["resource"]) for sheet in RECORDED])
def test_built_in_columns_are_headed_and_ordered_as_on_a_real_server(sheet: dict[str, Any]) -> None:
    headings = [[column.name, column.type, column.format, column.priority] for column in columns_of(sheet["rows"][0]["object"])]
    names = {name for name, *_ in headings}

    assert [column for column in sheet["columns"] if column[0] in names] == headings


@pytest.mark.parametrize(("sheet", "row"), ROWS)
def test_built_in_cells_are_those_of_a_real_server(sheet: dict[str, Any], row: dict[str, Any]) -> None:
    now = datetime.datetime.fromisoformat(sheet["now"])
    recorded = {heading[0]: cell for heading, cell in zip(sheet["columns"], row["cells"], strict=True)}

    cells = {column.name: column.cell(row["object"], now) for column in columns_of(row["object"])}

    assert {name: recorded[name] for name in cells} == cells


def test_every_formatter_is_named_by_a_column_and_every_named_one_exists() -> None:
    document = yaml.load(Path(columns.__file__).with_name("columns.yaml").read_text("utf-8"), yaml.CSafeLoader)
    described = [*document["shared"].values(), *(column for kind in document["kinds"].values() for column in kind)]

    named = {column.get("as", "value") for column in described if isinstance(column, dict)}

    assert {*FORMATTERS, *TIMED_FORMATTERS} == named


WIDGET = {
    "metadata": {"name": "first", "creationTimestamp": "2026-11-21T11:59:59Z", "labels": {"app.kubernetes.io/name": "zed"}},
    "spec": {"replicas": 1, "flag": True, "ratio": 1.5, "parts": [{"name": "a", "count": 2}, {"name": "b"}]},
    "status": {"when": "2026-11-01T00:00:00Z", "conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("integer", ".spec.replicas", 1),
        ("integer", ".spec.flag", None),
        ("string", '.status.conditions[?(@.type=="Ready")].status', "True"),
        ("string", ".status.conditions[?(@.type=='Gone')].status", None),
        ("string", ".spec.parts[*].name", "a"),
        ("string", ".spec.parts[0].name", "a"),
        ("string", ".spec.parts[-1].name", "b"),
        ("string", ".spec.parts[0:1].name", "a"),
        ("string", ".spec.parts[?(@.count>1)].name", "a"),
        ("string", r".metadata.labels.app\.kubernetes\.io/name", "zed"),
        ("string", ".metadata.labels['app.kubernetes.io/name']", "zed"),
        ("string", ".spec.parts", '[{"count":2,"name":"a"},{"name":"b"}]'),
        ("string", ".spec.flag", "true"),
        ("boolean", ".spec.flag", True),
        ("number", ".spec.ratio", 1.5),
        ("date", ".status.when", "20d"),
        ("date", ".status.never", None),
        ("date", ".metadata.name", "<invalid>"),
    ],
)
def test_a_declared_column_reads_its_path_as_its_type(kind: str, path: str, cell: object) -> None:
    column = of_custom([{"name": "X", "type": kind, "jsonPath": path}])[1]

    assert cell == column.cell(WIDGET, NOW)


def test_a_kind_that_declares_no_columns_shows_name_and_age() -> None:
    shown = {column.name: column.cell(WIDGET, NOW) for column in of_custom(())}

    assert {"Name": "first", "Age": "1s"} == shown


@pytest.mark.parametrize("path", ["spec.replicas", ".spec[", ".spec[?(@.a=)]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="JSONPath"):
        of_custom([{"name": "X", "type": "string", "jsonPath": path}])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (7 * 3600 + 60, "7h1m"),
        (8 * 3600, "8h"),
        (2 * 86400, "2d"),
        (3 * 86400 + 3600, "3d1h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_the_longer_a_span_the_coarser_its_age(seconds: int, text: str) -> None:
    assert text == ages.human(seconds)


@pytest.mark.parametrize(
    ("include", "kind"), [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", None), ("None", None)]
)
def test_a_row_brings_as_much_of_its_object_as_was_asked_for(include: str, kind: str | None) -> None:
    row = table([WIDGET], of_custom(()), NOW, meta={}, include=include)["rows"][0]

    assert {"None": None, "Object": WIDGET}.get(
        include, {"kind": kind, "apiVersion": "meta.k8s.io/v1", "metadata": WIDGET["metadata"]}
    ) == row["object"]


def test_only_the_first_table_of_a_watch_is_headed() -> None:
    assert table([WIDGET], of_custom(()), NOW, meta={}, headed=False)["columnDefinitions"] is None
