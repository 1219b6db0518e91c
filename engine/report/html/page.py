"""HTML page: the frame of every document, and its style sheet, for screens of any width, light and dark, and for paper."""

from base64 import b64encode
from hashlib import sha256
from typing import Final

from engine.report.html.elements import Content, Markup, element

STYLE: Final = """\
:root { color-scheme: light dark; --text: #1b1f24; --page: #ffffff; --faint: #57606a; --line: #d0d7de; --box: #f6f8fa; --link: #0550ae;
  --create: #116329; --patch: #7a4e00; --delete: #a40e26; --replace: #6639ba; --release: #1b6a75; --good: #116329; --bad: #a40e26; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --page: #0d1117; --faint: #9aa5b1; --line: #3d444d; --box: #161b22;
  --link: #79c0ff; --create: #56d364; --patch: #e3b341; --delete: #ff9492; --replace: #d2a8ff; --release: #76e3ea; --good: #56d364;
  --bad: #ff9492; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; color: var(--text); background: var(--page); line-height: 1.45;
  font-family: system-ui, sans-serif; font-size: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: .3rem 0; } h2 { font-size: 1.2rem; margin: 1.6rem 0 .4rem; } h3 { font-size: 1rem; margin: 0; }
p, ul { margin: .4rem 0; } ul { padding-left: 1.2rem; } a { color: var(--link); } nav a { margin-right: 1rem; }
section { border-top: 1px solid var(--line); }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; unicode-bidi: isolate; }
td, th, li, caption { unicode-bidi: isolate; }
pre { background: var(--box); padding: .6rem; max-height: 30rem; overflow: auto; white-space: pre-wrap; }
.scroll { overflow-x: auto; margin: .5rem 0; } .scroll table { min-width: 42rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; color: var(--faint); padding: .2rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .5rem .3rem 0; text-align: left; vertical-align: top; min-width: 4.5rem;
  overflow: clip; }
th[scope=col] { overflow-wrap: normal; } th[scope=row] { font-weight: normal; } .two th[scope=row] { width: 38%; }
.lead { border: 1px solid var(--line); background: var(--box); margin: .8rem 0; } .lead th[scope=row] { width: 9rem; font-weight: 600; }
.lead th, .lead td { padding: .4rem .8rem; } .lead caption { padding: .2rem 0; } .lead ul { font-size: .95em; }
details { margin: .3rem 0; } summary { cursor: pointer; } summary h3 { display: inline; }
.faint { color: var(--faint); } .part { color: var(--faint); font-size: .85em; display: block; }
.alert { border-left: .3rem solid var(--bad); background: var(--box); padding: .5rem .8rem; margin: .5rem 0; }
.note { border-left: .3rem solid var(--line); padding: .1rem .8rem; margin: .4rem 0; color: var(--faint); }
.create, .create rect { color: var(--create); stroke: var(--create); } .patch, .scale { color: var(--patch); }
.patch rect, .scale rect, .status rect { stroke: var(--patch); } .status { color: var(--faint); }
.delete, .delete rect { color: var(--delete); stroke: var(--delete); }
.replace, .replace rect { color: var(--replace); stroke: var(--replace); }
.release, .release rect { color: var(--release); stroke: var(--release); } .later, .blocked { color: var(--patch); }
.later rect, .blocked rect { stroke: var(--patch); stroke-dasharray: 5 3; } .pending { color: var(--faint); }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
.word { white-space: nowrap; }
del { color: var(--delete); text-decoration: none; } ins { color: var(--create); text-decoration: none; }
svg { background: var(--box); max-width: none; } svg text { fill: var(--text); stroke: none; font: 12px ui-monospace, monospace; }
.bar { background: none; vertical-align: middle; }
svg rect { fill: var(--page); stroke: var(--line); }
svg path.edge { stroke: var(--faint); fill: none; } svg marker path { fill: var(--faint); }
svg rect.used { fill: var(--link); stroke: none; }
svg text.column { fill: var(--faint); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
@media print { body { max-width: none; } details:not([open]) > summary { list-style: none; } pre { max-height: none; overflow: visible; }
  .scroll { overflow: visible; } tr, li { break-inside: avoid; } nav { display: none; } }
"""


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


STYLE_HASH: Final = b64encode(sha256(STYLE.encode()).digest()).decode()
POLICY: Final = f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
"""The content security policy of every page: it loads nothing, runs nothing, sends nothing; its only style is `STYLE`."""
