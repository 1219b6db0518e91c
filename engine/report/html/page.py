"""HTML page: the frame of every document."""

from typing import Final

from engine.report.html.elements import Content, Markup, element
from engine.report.html.style import POLICY, STYLE

HEAD_STYLE: Final = Markup(f"<style>{STYLE}</style>")


def page(title: str, *content: Content, refresh: int = 0) -> str:
    """A complete document without scripts, which loads nothing. `refresh`: seconds after which a browser loads it anew; 0: never.

    It consists of ASCII characters, with references for all others: no encoding of a terminal or a server can damage it.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", http_equiv="refresh", content=refresh) if refresh else None,
        element("title", title),
        element("link", rel="icon", href="data:,"),
        HEAD_STYLE,
    )
    document = f"<!DOCTYPE html>\n{element('html', head, element('body', content), lang='en').source}\n"
    return document.encode("ascii", "xmlcharrefreplace").decode()
