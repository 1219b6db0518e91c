"""Fabric domains of a workload: one line each, and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from engine.report.json import moment_text
from engine.report.printable import Line, clipped, printable
from engine.report.shapes import identity
from resources.domains.cut_off import CutOff
from resources.domains.reach import Split
from resources.domains.status import DomainStatus, State

MAX_LISTED = 10
"""Domains that are listed; of the others the number is given."""
GOOD = frozenset({State.JOINED, State.USED, State.COMPLETED, State.RELEASED, State.EMPTY})


def domain_lines(domains: Sequence[DomainStatus], *, verbose: bool) -> Iterator[Line]:
    """A line for each domain that is listed, and the number of the others."""
    listed = listed_domains(domains, verbose=verbose)
    for domain in listed:
        yield Line(f"  domain {printable(domain.id.name)}: {describe(domain)}", "faint" if is_good(domain) else "later")
    if len(listed) < len(domains):
        yield Line(f"  … {len(domains) - len(listed)} more domains; -v shows all", "faint")


def listed_domains(domains: Sequence[DomainStatus], *, verbose: bool) -> Sequence[DomainStatus]:
    """The domains with a line, those that are not in a good state first: all if `verbose`, else the first `MAX_LISTED`."""
    ordered = sorted(domains, key=is_good)
    return ordered if verbose else ordered[:MAX_LISTED]


def is_good(domain: DomainStatus) -> bool:
    """Whether nothing is wrong with the domain and nothing has to be waited for."""
    return domain.state in GOOD and domain.split is None


def describe(domain: DomainStatus) -> str:
    """The state of a domain in one line, e.g. `joined, 2 of 2 nodes joined, pods: 2 of demo-0-worker`."""
    split = printable(domain.split.summary) if domain.split else ""
    parts = [str(domain.state), nodes_text(domain), split, pods_text(domain), "made by a user" if domain.made_by == "user" else ""]
    if domain.state is State.TERMINATING:
        parts.append(f"finalizers: {', '.join(map(printable, domain.finalizers)) or 'none'}")
    if domain.other_sets:
        parts.append(f"shared with {', '.join(map(printable, domain.other_sets[:MAX_LISTED]))}")
    if domain.why:
        parts.append(clipped(domain.why, 200) + (f" (until {moment_text(domain.until)})" if domain.until else ""))
    if domain.cut:
        # The last part: it ends with a command, which is copied up to the end of the line.
        since = f" since {moment_text(domain.cut.since)}" if domain.cut.since else ""
        parts.append(f"{printable(domain.cut.text)}{since}: {printable(domain.cut.remedy)}")
    return ", ".join(filter(None, parts))


def nodes_text(domain: DomainStatus) -> str:
    """How many of its nodes have joined; empty if no node has joined or is expected to."""
    if domain.joined or domain.expected:
        return f"{domain.ready} of {max(domain.expected, len(domain.joined))} nodes joined"
    return ""


def pods_text(domain: DomainStatus) -> str:
    """How many pods of which clique use it, or how many pods that used it have ended."""
    counts = [f"{count} of {printable(clique)}" for clique, count in (domain.pods or {}).items()]
    return f"pods: {', '.join(counts)}" if counts else f"{domain.ended} pods have ended" if domain.ended else ""


def domain_entry(domain: DomainStatus) -> dict[str, Any]:
    """A domain in the JSON document."""
    return {
        "object": identity(domain.id),
        "state": str(domain.state),
        "madeBy": domain.made_by,
        "shared": domain.shared,
        "replica": domain.replica,
        "nodes": {
            "expected": domain.expected,
            "ready": domain.ready,
            "joined": [{"name": node.node, "island": node.island, "ready": node.ready} for node in domain.joined],
        },
        "split": split_entry(domain.split) if domain.split else None,
        "pods": {"byClique": dict(domain.pods or {}), "ended": domain.ended},
        "others": list(domain.other_sets),
        "why": domain.why,
        "until": moment_text(domain.until),
        "finalizers": list(domain.finalizers),
        "cutOff": cut_off_entry(domain.cut) if domain.cut else None,
    }


def split_entry(split: Split) -> dict[str, Any]:
    """How the nodes of a domain are separated, in the JSON document."""
    return {"islands": [{"name": island, "nodes": count} for island, count in split.islands], "nodesInNone": list(split.outside)}


def cut_off_entry(cut: CutOff) -> dict[str, Any]:
    """The pods that are cut off from a domain, in the JSON document."""
    return {"pods": list(cut.pods), "link": cut.link, "since": moment_text(cut.since), "do": cut.remedy}
