"""Shapes: the types of API objects, with the rules by which their parts are owned and merged.

Built-in types are read from `shapes.txt`, one type a line (recorded by tests/contract/record_shapes.py from a real server):

    Type: field=TYPE field=TYPE …        a leading `@` owns the whole value at once

    s string · b boolean · i int32 · l int64 · n number · y bytes · q quantity · x integer or string · t time · u micro time
    o anything · Name a type of the table · {T} map · [T] atomic list · [*T] set · [k1,k2|T] list keyed by k1 and k2
    behind a list: ~key merged by key in a strategic patch, ~ alone as a set
    before a type: ! always written · ^ always written, null if need be · ? kept when zero · none: dropped when zero
    between the two: @ owned at once;  behind the type: =JSON, its default
"""

from functools import cache
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

ABSENT: Any = object()
"""No default: `None` would be one."""


class Shape(Struct, eq=False):
    """One node of a type. It changes only while it is built, because types refer to themselves."""

    type: str
    """`object`, `array`, `string`, `boolean`, `integer`, `number`, `any`, `quantity`, `int-or-string`, `time`, `bytes`."""
    name: str = ""
    """The type's own name, for error texts."""
    format: str = ""
    fields: dict[str, "Shape"] = field(default_factory=dict)
    values: "Shape | None" = None
    items: "Shape | None" = None
    atomic: bool = False
    is_set: bool = False
    keys: tuple[str, ...] = ()
    merge_key: str | None = None
    """None: a strategic patch replaces the list; empty: it merges scalars as a set."""
    presence: str = "?"
    """`!` always written, `^` always written and null where absent, `?` kept when zero, empty: dropped when zero."""
    default: Any = ABSENT
    defaults: dict[str, Any] = field(default_factory=dict)
    """The defaults of the fields, in a custom kind."""
    open: bool = False
    """Unknown fields are kept."""
    nullable: bool = False
    embedded: bool = False
    """A whole object with apiVersion, kind and metadata."""

    def child(self, key: str) -> "Shape":
        """The shape below a key of an object."""
        return self.fields.get(key) or self.values or ANY

    @property
    def item(self) -> "Shape":
        """The shape of a list's members."""
        return self.items or ANY


ANY = Shape("any", open=True)

_LETTERS = {
    "s": ("string", ""),
    "b": ("boolean", ""),
    "i": ("integer", "int32"),
    "l": ("integer", "int64"),
    "n": ("number", ""),
    "y": ("bytes", ""),
    "q": ("quantity", ""),
    "x": ("int-or-string", ""),
    "t": ("time", ""),
    "u": ("time", "micro"),
    "o": ("any", ""),
}


class _Table:
    """The parsed table. A type is stored before its fields are built, because types refer to themselves."""

    def __init__(self, text: str) -> None:
        self.rows = dict(line.split(":", 1) for line in text.splitlines())
        self.types: dict[str, Shape] = {}

    def type(self, name: str) -> Shape:
        if name not in self.types:
            row = self.rows[name].strip()
            shape = self.types[name] = Shape("object", name=name.rpartition(".")[2], atomic=row.startswith("@"))
            for part in row.removeprefix("@").split():
                key, text = part.split("=", 1)
                shape.fields[key] = self.member(text)
        return self.types[name]

    def member(self, text: str) -> Shape:
        presence = text[0] if text[0] in "!^?" else ""
        text, _, default = text.removeprefix(presence).partition("=")
        shape = replace(self.parse(text), presence=presence)
        shape.default = orjson.loads(default) if default else ABSENT
        return shape

    def parse(self, text: str) -> Shape:
        if text[0] == "@":
            return replace(self.parse(text[1:]), atomic=True)
        if text[0] == "{":
            return Shape("object", values=self.parse(text[1:-1]))
        if text[0] == "[":
            return self._list(text)
        if text in _LETTERS:
            kind, form = _LETTERS[text]
            return Shape(kind, format=form, open=kind == "any")
        return self.type(text)

    def _list(self, text: str) -> Shape:
        body, _, merge = text[1:].rpartition("]")
        keys, bar, item = body.rpartition("|") if not body.startswith("[") else ("", "", body)
        is_set = item.startswith("*")
        return Shape(
            "array",
            items=self.parse(item.removeprefix("*")),
            keys=tuple(keys.split(",")) if bar else (),
            is_set=is_set,
            atomic=not bar and not is_set,
            merge_key=merge.strip("~") if "~" in merge else None,
        )


@cache
def _table() -> _Table:
    return _Table(Path(__file__).with_name("shapes.txt").read_text(encoding="utf-8"))


def builtin(name: str) -> Shape:
    """The shape of a built-in type, such as `Pod` or `ObjectMeta`."""
    return _table().type(name)
