"""HTML elements: the only place where text becomes HTML. Everything is escaped; markup comes from `element` alone."""

import html
import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from engine.report.printable import clipped

LONGEST: Final = 2000
"""Maximum number of characters of one text or attribute."""
LONGEST_NAME: Final = 300
LONGEST_LINE: Final = 160
VOID: Final = frozenset({"br", "link", "meta"})
"""Elements without an end tag."""
ALLOWED: Final = re.compile(
    r"a|b|body|br|caption|code|dd|del|details|div|dl|dt|footer|g|h[1-6]|head|header|html|ins|li|link|main|marker|meta|nav|ol|p|path|pre|rect"
    r"|section|span|strong|summary|svg|table|tbody|td|text|th|thead|time|title|tr|ul"
)
"""Elements that can be made: none of them runs a script, loads anything or sends anything."""
ATTRIBUTE: Final = re.compile(r"(?!on|style$|src)[a-z]([a-z0-9-]*)")
LINK: Final = re.compile(r"#[\w-]*|/(?!/)[\w./%?=&~-]*(#[\w-]*)?|data:,")
"""The targets of links: places in the document, and paths of the same server. Names in them are percent-encoded."""


class Markup(Struct, frozen=True):
    """HTML that is safe to put into a document."""

    source: str

    def __len__(self) -> int:
        return len(self.source)


Content: TypeAlias = "Markup | str | int | None | Iterable[Content]"
"""What elements contain: markup as it is, anything else as text. None and empty sequences are nothing."""


def element(name: str, /, *content: Content, **attributes: str | int | bool | None) -> Markup:
    """An element. `_` in the name of an attribute stands for `-`, and one at its end is dropped: `class_`. None and False: no attribute.

    Raises `ValueError` for elements, attributes and links that could run a script or load something: that is a defect of the caller.
    """
    if not ALLOWED.fullmatch(name):
        raise ValueError(f"the element {name} is not allowed")
    start = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items() if value is not None and value is not False)}>"
    return Markup(start if name in VOID else f"{start}{joined(content).source}</{name}>")


def _attribute(key: str, value: str | int | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not ATTRIBUTE.fullmatch(name.lower()):
        raise ValueError(f"the attribute {name} is not allowed")
    if name == "href" and not LINK.fullmatch(str(value)):
        raise ValueError("a link may only lead to a place in the document or a path of the same server")
    return f" {name}" if value is True else f' {name}="{html.escape(clipped(str(value), LONGEST), quote=True)}"'


def joined(content: Content) -> Markup:
    """The content as one piece of markup."""
    return content if isinstance(content, Markup) else Markup("".join(_sources(content)))


def _sources(content: Content) -> Iterable[str]:
    if isinstance(content, Markup):
        yield content.source
    elif isinstance(content, str | int):
        yield escaped(str(content))
    elif content is not None:
        for each in content:
            yield from _sources(each)


def escaped(text: str) -> str:
    """The text as content of an element: at most `LONGEST` characters, control and bidirectional characters visible, no markup."""
    return html.escape(clipped(text, LONGEST), quote=False)


def text_block(lines: Sequence[str]) -> Markup:
    """The lines as preformatted text, each clipped to `LONGEST_LINE` characters."""
    return element("pre", [Markup(f"{escaped(clipped(line, LONGEST_LINE))}\n") for line in lines], tabindex=0)


def table(caption: str, headers: Sequence[str], rows: Iterable[Sequence[Content]]) -> Markup:
    """A table with a caption; the first cell of each row is its heading. One with more than two columns can be scrolled sideways."""
    head = element("tr", [element("th", header, scope="col") for header in headers])
    body = [element("tr", element("th", first, scope="row"), [element("td", cell) for cell in rest]) for first, *rest in rows]
    content = (element("caption", caption), element("thead", head), element("tbody", body))
    if len(headers) <= 2:
        return element("table", *content, class_="two")
    return element("div", element("table", *content), class_="scroll", role="region", aria_label=caption, tabindex=0)


def items(content: Iterable[Content]) -> Markup | None:
    """A list with an entry for each content; None if there are none."""
    entries = [element("li", each) for each in content]
    return element("ul", entries) if entries else None


def folded(summary: Content, *content: Content, is_open: bool = False) -> Markup:
    """Content below a line that opens and closes it."""
    return element("details", element("summary", summary), *content, open=is_open)


def code(text: str) -> Markup:
    """A name or a value as it is written, clipped to `LONGEST_NAME` characters."""
    return element("code", clipped(text, LONGEST_NAME))
