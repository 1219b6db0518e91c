"""The nodes of a cluster and the workloads on them: lines for people, and the JSON document of `engine top`."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from engine.report.printable import Line, clipped, counted, printable, some
from enginectl.output.tables import table
from resources.ports.checks import Diagnosis
from resources.reports.node_table import READY, UNKNOWN, NodeRow, NodeTable, Occupant

VERSION: Final = 1
"""Version of the JSON document; increased when a field is removed or changes its meaning."""
HEADERS = ("NODE", "GPUS", "FREE", "STATE", "WORKLOADS")
DOMAIN: Final = "DOMAIN"
"""The header of the last column but one, which is there if a node runs a pod of a domain."""
SHOWN: Final = 4
"""How many workloads of a node are named, without `-v`."""
MAX_NAME, MAX_TEXT = 63, 2000


class Top(Struct, frozen=True):
    """What `engine top` shows."""

    table: NodeTable
    waiting: tuple[Diagnosis, ...] = ()
    """What gangs wait for that have no room."""
    notes: tuple[str, ...] = ()
    """What could not be read, and what follows from it."""
    incomplete: Mapping[str, str] = {}
    """Kind -> why it could not be listed completely."""


def top_lines(top: Top, *, verbose: bool) -> Iterator[Line]:
    """The table, a line for each rack and island above its nodes, then the totals and the gangs that wait."""
    shown = top.table
    if shown.rows:
        groups = [(title, folded(group) if not verbose else [(row,) for row in group]) for title, group in node_groups(shown)]
        has_domains = domain_header(shown)
        rows_of_cells = [cells_of(rows, verbose=verbose, has_domains=has_domains) for _, group in groups for rows in group]
        head, *cells = table(headers_of(shown), rows_of_cells)
        yield Line(head, "head")
        lines = iter(cells)
        for title, group in groups:
            if title:
                yield Line(title, "head")
            for rows in group:
                yield Line(next(lines), "" if rows[0].state in (READY, UNKNOWN) else "bad")
    if shown.rows or not top.incomplete:
        yield Line(totals(shown))
    for diagnosis in top.waiting:
        yield Line("")
        yield Line(f"waiting  {clipped(f'{diagnosis.about.namespace}/{diagnosis.observation}', MAX_TEXT)}", "later")
        yield Line(f"         {clipped(diagnosis.cause, MAX_TEXT)}")
        if diagnosis.advice:
            yield Line(f"         {clipped(diagnosis.advice, MAX_TEXT)}")


def domain_header(shown: NodeTable) -> bool:
    """Whether the table has a column for domains: a node runs a pod of one."""
    return any(row.domain for row in shown.rows)


def headers_of(shown: NodeTable) -> tuple[str, ...]:
    """The headers of the table, those of the cells of `cells_of`."""
    return (*HEADERS[:-1], DOMAIN, HEADERS[-1]) if domain_header(shown) else HEADERS


def node_groups(shown: NodeTable) -> Iterator[tuple[str, tuple[NodeRow, ...]]]:
    """The nodes of each rack and island, with what stands above them."""
    for place, group in groupby(shown.rows, key=lambda row: (row.rack, row.island)):
        rows = tuple(group)
        yield _title(place, rows, shown.noun), rows


def folded(rows: Sequence[NodeRow]) -> list[tuple[NodeRow, ...]]:
    """The nodes in their order; neighbours that are alike and have no pods of sets are together."""
    return [
        each
        for alike, group in groupby(rows, key=lambda row: (row.gpus, row.used, row.state, row.domain) if not row.occupants else row.name)
        for each in ([tuple(group)] if isinstance(alike, tuple) else [(row,) for row in group])
    ]


def cells_of(rows: Sequence[NodeRow], *, has_domains: bool, verbose: bool = False) -> tuple[str, ...]:
    """The cells of one node, or of several that are alike. `has_domains`: whether one of them is for the domain."""
    row, count = rows[0], len(rows)
    texts = occupants_text(row.occupants)
    name = (
        clipped(row.name, MAX_NAME) if count == 1 else f"{count} nodes: {clipped(row.name, MAX_NAME)} … {clipped(rows[-1].name, MAX_NAME)}"
    )
    known = row.state != UNKNOWN
    return (
        f"  {name}",
        f"{count * row.used} of {count * row.gpus}" if known else f"{row.used} of ?",
        str(count * row.free) if known else "?",
        row.state,
        *([clipped(row.domain, MAX_NAME) or "-"] if has_domains else ()),
        ", ".join(texts) if verbose else some(texts, SHOWN),
    )


def occupants_text(occupants: Sequence[Occupant]) -> list[str]:
    """Each replica with its cliques and their pods, e.g. `default/serving-0 (leader 1, worker 3)`."""
    texts = []
    for (namespace, workload, replica), cliques in groupby(occupants, key=lambda each: (each.namespace, each.workload, each.replica)):
        pods = ", ".join(f"{printable(each.clique)} {each.pods}" for each in cliques)
        texts.append(f"{printable(namespace)}/{printable(workload)}-{printable(replica)} ({pods})")
    return texts


def _title(place: tuple[str, str], rows: Sequence[NodeRow], noun: str) -> str:
    """What stands above the nodes of a rack and island; empty where neither is known."""
    rack, island = place
    parts = [f"rack {clipped(rack, MAX_NAME)}" if rack else "", f"{noun} {clipped(island, MAX_NAME)}" if noun and island else ""]
    if not any(parts):
        return f"without {noun}" if noun and any(row.gpus for row in rows) else ""
    return f"{', '.join(filter(None, parts))}: {_gpus(rows)}"


def _gpus(rows: Sequence[NodeRow]) -> str:
    used, gpus, free = (sum(values) for values in zip(*((row.used, row.gpus, row.free) for row in rows), strict=True))
    return f"{used} of {gpus} GPUs, {free} free"


def totals(shown: NodeTable) -> str:
    """One line about all nodes."""
    others = f"{counted(shown.others, 'other node')}" if shown.others else ""
    if not shown.rows:
        return f"no node has GPUs or pods of a set{f'; {others}' if others else ''}"
    if all(row.state == UNKNOWN for row in shown.rows):
        return f"total  {counted(len(shown.rows), 'node')}, {counted(sum(row.used for row in shown.rows), 'GPU')} requested by sets"
    parts = [
        counted(shown.racks, "rack") if shown.racks else "",
        counted(shown.islands, shown.noun) if shown.islands else "",
        counted(len(shown.rows), "node"),
        _gpus(shown.rows),
        others,
    ]
    return f"total  {', '.join(filter(None, parts))}"


def top_document(top: Top) -> dict[str, Any]:
    """The JSON document: complete, names as they are."""
    return {
        "version": VERSION,
        "nodes": [node_entry(row) for row in top.table.rows],
        "otherNodes": top.table.others,
        "island": top.table.noun or None,
        "waiting": [
            {
                "namespace": each.about.namespace,
                "gang": each.about.name,
                "observation": each.observation,
                "cause": each.cause,
                "advice": each.advice or None,
            }
            for each in top.waiting
        ],
        "notes": list(top.notes),
        "incomplete": dict(top.incomplete),
    }


def node_entry(row: NodeRow) -> dict[str, Any]:
    """One node. What is not known of it is null."""
    known = row.state != UNKNOWN
    return {
        "name": row.name,
        "rack": row.rack or None,
        "island": row.island or None,
        "state": row.state,
        "domain": row.domain or None,
        "gpus": {"allocatable": row.gpus if known else None, "requested": row.used, "free": row.free if known else None},
        "pods": [asdict(each) for each in row.occupants],
    }
