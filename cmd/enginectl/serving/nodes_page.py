"""Nodes page: racks, NVLink cliques, nodes and GPUs, the workloads on them, and the gangs that wait, as `engine top` shows them."""

from collections.abc import Iterator, Sequence
from typing import Final

from engine.report.alike import blurred, grouped, spread
from engine.report.html.elements import Content, Markup, code, element, items, table
from engine.report.html.page import page
from engine.report.printable import clipped, counted
from enginectl.output.node_table import MAX_NAME, Top, cells_of, domain_header, folded, headers_of, node_groups, occupants_text, totals
from enginectl.serving import page_tables as tables
from resources.reports.node_table import READY, UNKNOWN, NodeRow, NodeTable

BAR: Final = (160, 10)
"""Pixels: the size of the bar that shows how many GPUs are requested."""
MAX_OCCUPANTS: Final = 12
"""Maximum number of replicas listed of one node."""
MAX_WAITING: Final = 50
HEADERS: Final = {"GPUS": "GPUs"}
"""Header of `engine top` -> that of the page, where capitals are not enough."""
RIGHTS: Final = "This is read with the account of engine run: bind the ClusterRole grove:system:grove-engine-reader to it for the rest."


def nodes_page(top: Top, state_line: Content, namespace: str, name: str) -> str:
    """The page. `namespace` and `name`: the set whose nodes are shown; empty: all."""
    about: Content = [" of ", code("/".join(filter(None, (namespace, name))))] if namespace or name else None
    back = element("a", "this set", href=tables.path_of(namespace, name)) if namespace and name else None
    shown = top.table
    notes = [element("p", note, class_="note") for note in top.notes]
    notes += [element("p", f"{kind} objects could not be listed completely: {why}", class_="alert") for kind, why in top.incomplete.items()]
    return page(
        "engine: nodes",
        element(
            "nav", element("a", "all sets", href="/"), back, element("a", "all nodes", href="/top") if about else None, aria_label="Pages"
        ),
        element("header", element("h1", "Nodes and GPUs", about), state_line),
        element(
            "main",
            element("p", element("strong", totals(shown).removeprefix("total").strip()), " ", gpu_bar(shown.rows)),
            notes,
            element("p", RIGHTS, class_="faint") if top.notes else None,
            element("section", element("h2", "Gangs that wait", id="waiting"), list(_waiting(top))),
            element("section", element("h2", "Nodes", id="nodes"), list(_groups(shown))),
        ),
    )


def _waiting(top: Top) -> Iterator[Markup]:
    """The gangs that wait; those that differ in numbers only are told once."""
    if not top.waiting:
        yield element("p", "none of the sets that this process plans for", class_="faint")
    groups = grouped(top.waiting, lambda each: (each.about.namespace, blurred(each.observation), blurred(each.cause), blurred(each.advice)))
    for group in groups[:MAX_WAITING]:
        first, count = group[0], f" ×{len(group)}" if len(group) > 1 else ""
        yield element(
            "div",
            element("strong", f"{first.about.namespace}/{spread(each.observation for each in group)}{count}"),
            element("p", spread(each.cause for each in group)),
            element("p", element("strong", "do: "), first.advice) if first.advice else None,
            class_="alert",
        )
    if more := sum(map(len, groups[MAX_WAITING:])):
        yield element("p", f"{more} more", class_="faint")


def _groups(shown: NodeTable) -> Iterator[Markup]:
    """A table for each rack and island, as long as there is room; then the number of the nodes that are left out."""
    headers = [HEADERS.get(header, header.capitalize()) for header in headers_of(shown)]
    room, left_out = tables.MAX_ROWS, 0
    for title, rows in node_groups(shown):
        lines = folded(rows)
        left_out += sum(map(len, lines[room:]))
        if room > 0:
            yield element("h3", title or "nodes", " ", gpu_bar(rows))
            yield table(counted(len(rows), "node"), headers, [_row(line, shown) for line in lines[:room]])
        room = max(0, room - len(lines))
    if not shown.rows:
        yield element("p", "none", class_="faint")
    if left_out:
        yield element("p", f"{left_out} more nodes; engine top -o json has them all", class_="faint")


def _row(rows: Sequence[NodeRow], shown: NodeTable) -> tuple[Content, ...]:
    """The cells of `engine top`; the replicas on the node as a list."""
    name, *cells, _ = cells_of(rows, has_domains=domain_header(shown))
    texts = occupants_text(rows[0].occupants)
    more = len(texts) - MAX_OCCUPANTS
    listed = items(code(text) for text in texts[:MAX_OCCUPANTS]) if len(texts) > 1 else [code(text) for text in texts]
    gpus, free, state, *domain = cells
    return (
        code(name.strip()),
        gpus,
        free,
        element("span", state, class_=None if rows[0].state in (READY, UNKNOWN) else "bad"),
        *(code(clipped(text, MAX_NAME)) for text in domain),
        [listed, f"{more} more" if more > 0 else None],
    )


def gpu_bar(rows: Sequence[NodeRow]) -> Markup | None:
    """How many GPUs of these nodes are requested, as a bar; None without GPUs, or if they are not known."""
    used, gpus = sum(row.used for row in rows), sum(row.gpus for row in rows)
    if not gpus:
        return None
    width, height = BAR
    filled = round(width * min(1.0, used / gpus))
    return element(
        "svg",
        element("title", f"{used} of {gpus} GPUs requested"),
        element("rect", x=0, y=0, width=width, height=height, class_="room"),
        element("rect", x=0, y=0, width=filled, height=height, class_="used"),
        role="img",
        class_="bar",
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
    )
