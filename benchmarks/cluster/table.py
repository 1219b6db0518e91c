"""Table: the figures as Markdown, the ratio to the bare client first; the writes and the profile beside it."""

from collections.abc import Iterable, Sequence

from benchmarks.cluster.figures import Figures, ratio
from benchmarks.cluster.workloads import WORKLOADS

ENGINE, BARE = "engine", "bare client"
WITH_GANGS = "engine with gangs"
"""The engine on a control plane whose kube-scheduler schedules gangs."""
BARE_WITH_GANGS = "bare client with gangs"
WITHOUT_GANGS = {WITH_GANGS: ENGINE, BARE_WITH_GANGS: BARE}
"""Who is measured on such a control plane -> who is measured beside, on one without gangs."""
SUMMARY_HEAD = ("workload", "ready", "changed", "gone", "writes until ready", "CPU until ready", "peak memory")
HEAD = ("ratio", "phase", "engine", "bare client", "writes", "bare writes", "CPU", "peak memory")


def markdown(figures: Sequence[Figures]) -> str:
    """A row for each phase of the engine with an end, in the order of the figures; other operators in columns of their own."""
    others = tuple(dict.fromkeys(each.subject for each in figures if each.subject not in (ENGINE, BARE)))
    by_phase = {(each.workload, each.phase, each.subject): each for each in figures}
    head = [*HEAD, *others]
    lines = [_row(head), _row(["---"] * len(head))]
    workload = ""
    for workload_name, phase in dict.fromkeys((each.workload, each.phase) for each in figures):
        if workload_name != workload:
            workload = workload_name
            title = WORKLOADS[workload].title if workload in WORKLOADS else ""
            lines.append(_row(["", f"**{workload.upper()}** {title}", *[""] * (len(head) - 2)]))
        of = {subject: by_phase.get((workload_name, phase, subject)) for subject in (ENGINE, BARE, *others)}
        lines.append(_row([*_cells(phase, of[ENGINE], of[BARE]), *(_other(of[name], of[BARE]) for name in others)]))
    return "\n".join(lines) + "\n"


def summary(figures: Sequence[Figures]) -> str:
    """A row for each workload: until all is ready, changed and gone, with the ratios to the bare client. Empty unless all were measured."""
    if {each.workload for each in figures} != set(WORKLOADS):
        return ""
    lines = [_row(SUMMARY_HEAD), _row(["---"] * len(SUMMARY_HEAD))]
    for name, workload in WORKLOADS.items():
        ours = [each for each in figures if each.workload == name and each.subject == ENGINE and each.seconds]
        bare = {each.phase: each.end for each in figures if each.workload == name and each.subject == BARE}
        up, gone = ours[0], next(each for each in ours if each.phase == "delete" or each.phase.endswith("→ 0"))
        changed = next((each for each in ours[1:] if each is not gone), None)
        times = [f"{_seconds(each)}{_times(ratio(each.end, bare.get(each.phase)))}" if each else "" for each in (up, changed, gone)]
        if changed:
            times[1] = f"{changed.phase}: {times[1]}"
        peak = max(each.peak_mib for each in ours)
        lines.append(_row((f"**{name.upper()}** {workload.title}", *times, f"{up.writes:,}", f"{up.cpu:.1f} s", f"{peak:.0f} MiB")))
    return "\n".join(lines) + "\n"


def _times(ratio_to_bare: float | None) -> str:
    return f" ({ratio_to_bare:.2f} ×)" if ratio_to_bare is not None else ""


def gang_ratios(figures: Sequence[Figures]) -> str:
    """How many times as long each phase takes with gangs of kube-scheduler, one line each; empty without such figures."""
    ends = {(each.workload, each.phase, each.subject): each for each in figures}
    lines: list[str] = []
    for (workload, phase, subject), gangs in ends.items():
        plain = ends.get((workload, phase, WITHOUT_GANGS.get(subject, "")))
        factor = ratio(gangs.end, plain.end if plain else None)
        if plain is not None and factor is not None:
            used = f"{gangs.writes:,} writes, {plain.writes:,} without; CPU {gangs.cpu:.1f} s, {plain.cpu:.1f} s without"
            seconds = f"{gangs.end:.1f} s, {plain.end:.1f} s without"
            lines.append(f"{workload.upper()} {phase}, {plain.subject}: {factor:.2f} x with gangs ({seconds}; {used})")
    return "\n".join([*lines, ""])


def _cells(phase: str, engine: Figures | None, bare: Figures | None) -> list[str]:
    ratio_to_bare = ratio(engine.end if engine else None, bare.end if bare else None)
    return [
        f"**{ratio_to_bare:.2f}**" if ratio_to_bare is not None else "",
        f"{phase}{_counts(engine)}",
        _seconds(engine),
        _seconds(bare),
        f"{engine.writes:,}" if engine else "",
        f"{bare.writes:,}" if bare else "",
        f"{engine.cpu:.1f} s" if engine else "",
        f"{engine.peak_mib:.0f} MiB" if engine else "",
    ]


def _counts(figures: Figures | None) -> str:
    """The counts that a reader wants to see beside the phase."""
    fewest = figures.counts.get("fewest ready") if figures else None
    return f" (fewest ready: {fewest:,})" if fewest is not None else ""


def _other(figures: Figures | None, bare: Figures | None) -> str:
    """What another operator took, in one cell, and how many times as long as the bare client."""
    if figures is None:
        return ""
    times = ratio(figures.end, bare.end if bare else None)
    seconds = f"{_seconds(figures)} ({times:.2f} x bare)" if times is not None else _seconds(figures)
    used = f"{figures.writes:,} writes, {figures.cpu:.1f} s CPU, {figures.peak_mib:.0f} MiB"
    return f"{seconds}, {used}" if seconds else used


def _seconds(figures: Figures | None) -> str:
    if figures is None or not figures.seconds:
        return ""
    return "not reached" if figures.end is None else f"{figures.end:.1f} s"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def writes_table(figures: Sequence[Figures]) -> str:
    """The writes of the engine by verb and resource: a row for each phase."""
    lines = [_row(("phase", "writes, Events and Leases included")), _row(("---", "---"))]
    for each in figures:
        if each.subject in (ENGINE, WITH_GANGS) and each.by_kind:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in each.by_kind.items())
            how = "" if each.subject == ENGINE else ", with gangs"
            lines.append(_row((f"{each.workload.upper()} {each.phase}{how}", kinds)))
    return "\n".join(lines) + "\n"


def profile_table(figures: Sequence[Figures]) -> str:
    """Where the engine's seconds went: a row for each phase with an end. Empty if it was not asked to tell."""
    profiled = [each for each in figures if each.shares and each.end]
    activities = dict.fromkeys(activity for each in profiled for activity in each.shares)
    if not profiled:
        return ""
    lines = [_row(("phase", "seconds", *activities)), _row(["---"] * (2 + len(activities)))]
    for each in profiled:
        shares = (f"{each.shares.get(activity, 0.0):.1f}" for activity in activities)
        lines.append(_row((f"{each.workload.upper()} {each.phase}", f"{each.end or 0.0:.1f}", *shares)))
    return "\n".join(lines) + "\n"
