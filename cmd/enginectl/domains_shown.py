"""Domains shown: the fabric domains of a workload, a line each, and in a document."""

from collections.abc import Iterator, Sequence
from typing import Any

from engine.report.json import identity, moment_text
from engine.report.line import Line
from engine.report.printable import clipped, printable
from resources.domains.status import DomainStatus, State

SHOWN = 10
"""Domains that are shown one by one; of the others there is only the number."""
GOOD = frozenset({State.JOINED, State.USED, State.COMPLETED, State.EMPTY})


def lines(found: Sequence[DomainStatus], *, verbose: bool) -> Iterator[Line]:
    """Those that are not well first, then the others."""
    ordered = sorted(found, key=lambda one: one.state in GOOD)
    shown = ordered if verbose else ordered[:SHOWN]
    for one in shown:
        yield Line(f"  domain {printable(one.id.name)}: {told(one)}", "faint" if one.state in GOOD else "held")
    if len(shown) < len(ordered):
        yield Line(f"  … {len(ordered) - len(shown)} more domains; -v shows all", "faint")


def told(one: DomainStatus) -> str:
    """How a domain is doing, in a line."""
    parts = [str(one.state), nodes(one), users(one), maker(one)]
    if one.state is State.TERMINATING:
        parts.append(f"held by {', '.join(map(printable, one.finalizers)) or 'nobody'}")
    if one.others:
        parts.append(f"shared with {', '.join(map(printable, one.others[:SHOWN]))}")
    if one.why:
        parts.append(clipped(one.why, 200) + (f" (until {moment_text(one.until)})" if one.until else ""))
    return ", ".join(filter(None, parts))


def nodes(one: DomainStatus) -> str:
    """How many nodes are in it; nothing where nobody is or is to be."""
    if one.joined or one.expected:
        return f"{one.ready} of {max(one.expected, len(one.joined))} nodes joined"
    return ""


def users(one: DomainStatus) -> str:
    """Who claims a place in it."""
    counts = [f"{count} of {printable(clique)}" for clique, count in (one.pods or {}).items()]
    return f"pods: {', '.join(counts)}" if counts else f"{one.ended} pods have ended" if one.ended else ""


def maker(one: DomainStatus) -> str:
    """Who has made it, where that is not us."""
    return "made by a user" if one.maker == "user" else ""


def entry(one: DomainStatus) -> dict[str, Any]:
    """A domain in the document."""
    return {
        "object": identity(one.id),
        "state": str(one.state),
        "madeBy": one.maker,
        "shared": one.shared,
        "replica": one.replica,
        "nodes": {
            "expected": one.expected,
            "ready": one.ready,
            "joined": [{"name": each.node, "island": each.island, "ready": each.ready} for each in one.joined],
        },
        "pods": {"byClique": dict(one.pods or {}), "ended": one.ended},
        "others": list(one.others),
        "why": one.why,
        "until": moment_text(one.until),
        "finalizers": list(one.finalizers),
    }
