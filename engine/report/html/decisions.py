"""What a reviewer decides on, at the top of a page: restarts, GPUs, availability, deletions, how long it takes, and what is left."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from engine.forecast.cluster_model import Level
from engine.forecast.forecast import End, Forecast
from engine.operation import Delete, Operation, Replace, WriteStatus
from engine.report.alike import blurred, grouped, spread
from engine.report.forecast_text import LONG, counts_text, duration_text
from engine.report.html.elements import Content, Markup, code, element, items, table
from engine.report.meaning import change_of, headline
from engine.report.model import Report, RootReport
from engine.report.printable import counted
from engine.report.severity import end_of, level_text, levels_of, root_name

CAPTION: Final = "In all passes, until nothing is left to do"
HEADERS: Final = ("Workload", "What happens", "Restarted", "Deleted", "Lowest ready", "Takes", "Ends")
RESTARTED: Final = ("restarted", "replaced")
REMOVED: Final = ("removed",)
ADDED: Final = ("added", "made")
"""The last words of effects."""
GONE: Final = ("delete", "prune")
"""What happens to a workload that is deleted."""
SHOWN: Final = 3
"""Maximum number of workloads, kinds or groups that are named in one cell; of the others the number is given."""
KINDS: Final = 5


def decisions(report: Report) -> Iterator[Markup]:
    """A table of what is decided on, about all workloads together. Nothing without a forecast: only that knows it."""
    if (forecast := report.forecast) is None:
        return
    counts = Counter[str]()
    for effects in forecast.effects.values():
        counts.update(effects.counts)
    rows: tuple[tuple[str, Content], ...] = (
        ("Restarted", _effects(counts, RESTARTED, "patch")),
        ("Below minimum", _below_minimum([level for root in report.roots for level in levels_of(report, root)])),
        ("Deleted", _all_deleted(report, forecast, counts)),
        ("Added", _effects(counts, ADDED, "create")),
        ("Takes", _duration(forecast)),
        ("Left", _left(report)),
    )
    body = [element("tr", element("th", title, scope="row"), element("td", content)) for title, content in rows]
    yield element("table", element("caption", CAPTION), element("tbody", body), class_="lead")


def decision_table(report: Report, roots: Sequence[RootReport], links: Sequence[str]) -> Markup:
    """A row for each of these workloads with the same facts; `links` lead to their sections. Only for reports with a forecast."""
    rows = [_row(report, root, link) for root, link in zip(roots, links, strict=True)]
    return table(f"{len(rows)} workloads with something to report", HEADERS, rows)


def _row(report: Report, root: RootReport, link: str) -> tuple[Content, ...]:
    forecast = report.forecast
    assert forecast is not None
    effects = forecast.effects.get(root.root)
    counts = effects.counts if effects else {}
    words = headline(root, forecast)
    lowest = next(iter(levels_of(report, root)), None)
    deleted = ", ".join(filter(None, (counts_text(_chosen(counts, REMOVED)), _deleted(forecast.operations_of(root.root)))))
    is_wrong = bool(root.objections or root.problems or root.error) or root.root in report.unsettled
    return (
        [element("a", code(root_name(root.root)), href=link), element("span", root.root.kind, class_="part")],
        element("span", words, class_="bad" if is_wrong else "delete" if change_of(root, forecast) in GONE else None),
        counts_text(_chosen(counts, RESTARTED)) or "-",
        deleted or "-",
        element("span", f"{lowest.lowest} (min {lowest.minimum})", class_="bad" if lowest.falls_below else None) if lowest else "-",
        _length(forecast, [each.after for each in forecast.passes if any(map(_is_write, each.operations.get(root.root, ())))]) or "-",
        element("span", str(end_of(report, root) or ""), class_="bad" if root.root in report.unsettled else None),
    )


def _chosen(counts: Mapping[str, int], words: Sequence[str]) -> dict[str, int]:
    """The effects that end with one of these words."""
    return {what: count for what, count in counts.items() if count and what.rpartition(" ")[2] in words}


def _effects(counts: Mapping[str, int], words: Sequence[str], tone: str) -> Markup:
    """These effects as a text, e.g. `24 pods restarted (192 GPUs)`."""
    text = counts_text(_chosen(counts, words))
    return element("span", text, class_=tone) if text else _nothing()


def _nothing() -> Markup:
    return element("span", "nothing", class_="faint")


def _below_minimum(levels: Sequence[Level]) -> Content:
    """How many objects fall below their minimum, and which."""
    below = [level for level in levels if level.falls_below]
    if not below:
        return _nothing()
    groups = levels_alike(below)
    named = items([code(name), f": {level_text(level)}"] for level, name in groups[:SHOWN])
    more = len(groups) - SHOWN
    return [
        element("strong", f"{counted(len(below), 'object')} for a time", class_="bad"),
        named,
        element("p", f"{more} more like these", class_="faint") if more > 0 else None,
    ]


def levels_alike(levels: Sequence[Level]) -> list[tuple[Level, str]]:
    """The first of the levels that have equal numbers and names that differ in numbers only, with one name for them; in order."""
    groups = grouped(
        levels, lambda each: (each.id.kind, blurred(each.id.name), each.before, each.lowest, each.minimum, each.unit, each.falls_below)
    )
    return [
        (group[0], f"{group[0].id.kind}/{spread(each.id.name for each in group)}{f' ×{len(group)}' if len(group) > 1 else ''}")
        for group in groups
    ]


def _all_deleted(report: Report, forecast: Forecast, counts: Mapping[str, int]) -> Content:
    """The workloads, the pods and the other objects that are deleted for good."""
    gone = [root.root for root in report.roots if change_of(root, forecast) in GONE]
    more = f" and {len(gone) - SHOWN} more" if len(gone) > SHOWN else ""
    workloads = f"{', '.join(f'{id.kind}/{root_name(id)}' for id in gone[:SHOWN])}{more}" if gone else ""
    collected = f"{forecast.collected} deleted by Kubernetes" if forecast.collected else ""
    others = ", ".join(filter(None, (counts_text(_chosen(counts, REMOVED)), _deleted(forecast.operations()), collected)))
    if not workloads and not others:
        return _nothing()
    return [
        element("strong", "whole workloads: ", workloads, class_="bad") if workloads else None,
        element("br") if workloads and others else None,
        element("span", others, class_="delete"),
    ]


def _deleted(operations: Iterator[Operation]) -> str:
    """The objects that are deleted or replaced by kind, without pods: those are removed or restarted."""
    kinds: dict[str, Counter[str]] = {"deleted": Counter(), "replaced": Counter()}
    for operation in operations:
        if isinstance(operation, Delete | Replace) and operation.id.kind != "Pod":
            kinds["deleted" if isinstance(operation, Delete) else "replaced"][operation.id.kind] += 1
    texts = []
    for word, of_word in kinds.items():
        if of_word:
            named = [counted(count, kind) for kind, count in of_word.most_common(KINDS)]
            rest = of_word.total() - sum(count for _, count in of_word.most_common(KINDS))
            texts.append(f"{', '.join(named)}{f' and {rest} others' if rest else ''} {word}")
    return ", ".join(texts)


def _duration(forecast: Forecast) -> Content:
    """How many passes write something, and when the last one begins."""
    times = [each.after for each in forecast.passes if any(map(_is_write, each.all_operations()))]
    if not times:
        return _nothing()
    return f"{_length(forecast, times)}; the time that pods take to start and to end comes on top"


def _length(forecast: Forecast, times: Sequence[timedelta]) -> str:
    """`2 passes`, or `384 passes, the last one after 6m23s`; empty without any."""
    if not times:
        return ""
    at_least = "" if forecast.is_finished and not forecast.repeating else "at least "
    return f"{at_least}{counted(len(times), 'pass')}{f', the last one after {duration_text(times[-1])}' if times[-1] > LONG else ''}"


def _is_write(operation: Operation) -> bool:
    return not isinstance(operation, WriteStatus)


def _left(report: Report) -> Content:
    """Which workloads do not settle, and how many objects a user or another controller has to act on."""
    unsettled = [root for root in report.roots if root.root in frozenset(report.unsettled)]
    texts = [f"{root_name(root.root)} {end_of(report, root) or End.STUCK}" for root in unsettled[:SHOWN]]
    if len(unsettled) > SHOWN:
        texts.append(f"{len(unsettled) - SHOWN} more do not settle")
    if report.blocked:
        texts.append(f"{counted(report.blocked, 'object')} blocked: a user or another controller has to act first")
    return element("span", "; ".join(texts), class_="bad") if texts else _nothing()
