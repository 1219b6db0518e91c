"""A report as SARIF 2.1.0: what refuses or hinders a plan, at the line of the manifest that it is about."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from posixpath import normpath
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.report.alike import blurred
from engine.report.model import FileLine, Report
from engine.report.printable import clipped
from engine.report.severity import Impediment, ImpedimentKind, impediments_of, root_name
from engine.version import VERSION

MAX_RESULTS: Final = 5_000
"""Maximum number of results, as GitHub shows no more; of the others the number is given."""
MAX_MESSAGE: Final = 1_000
MAX_RULE: Final = 200
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
LOCATED: Final = re.compile(r"(?P<file>.+?):(?P<line>[0-9]{1,9}): (?P<message>.*)", re.DOTALL)
FIELD: Final = re.compile(r"(?P<field>[A-Za-z][\w.\[\]/-]*): .*", re.DOTALL)
DESCRIPTIONS: Final[Mapping[ImpedimentKind, str]] = {
    ImpedimentKind.DENIED: "A guard or a policy refuses the plan.",
    ImpedimentKind.FAILED: "The engine has a defect: this workload could not be planned.",
    ImpedimentKind.FAULT: "What the manifest asks for is wrong.",
    ImpedimentKind.INCOMPLETE: "Not everything could be listed.",
    ImpedimentKind.BLOCKED: "A user or another controller has to act before this can be done.",
    ImpedimentKind.REPEATING: "The workload would be changed again and again, without an end.",
    ImpedimentKind.STUCK: "The workload would wait for something that never happens.",
    ImpedimentKind.BELOW_MINIMUM: "For a time, fewer members would be ready than are needed.",
}


class ScanResult(Struct, frozen=True):
    """One result."""

    rule: str
    level: str
    """`error`, `warning` or `note`."""
    message: str
    description: str
    root: str = ""
    field: str = ""
    place: FileLine | None = None
    waived: str = ""
    """Why it does not count; empty: it does."""

    @property
    def fingerprint(self) -> str:
        """The same in every run for the same rule, workload and field; lines and numbers do not matter."""
        subject = self.field or blurred(self.message)
        return sha256("\0".join((self.rule, self.root, subject)).encode("utf-8", "backslashreplace")).hexdigest()


def located(fault: str) -> tuple[FileLine | None, str]:
    """The place and the rest of a text such as `set.yaml:12: spec.replicas: too many`; no place if it does not begin with one."""
    match = LOCATED.fullmatch(fault)
    return (FileLine(match["file"], int(match["line"])), match["message"]) if match else (None, fault)


def findings(report: Report, places: Mapping[ResourceId, FileLine]) -> Iterator[ScanResult]:
    """What refuses or hinders the plan, the worst first; then warnings of policies, then what was waived.

    `places`: root -> where its manifest is. Findings about other roots, or about the whole plan, are at the first manifest.
    """
    first = min(places.values(), key=lambda place: (place.file, place.line), default=None)
    parents = {root.root: root.parent for root in report.roots}

    def place_of(root: ResourceId | None) -> FileLine | None:
        known = places.get(root) or places.get(parents.get(root) or root) if root else None
        return known or first

    for blocker in impediments_of(report):
        yield _finding(blocker, place_of(blocker.root))
    for violation in (*report.judgement.warned, *report.judgement.waived):
        root = root_name(violation.about) if violation.about else ""
        yield ScanResult(
            violation.rule, "warning", violation.message, "A policy warns.", root, place=place_of(violation.about), waived=violation.waived
        )


def _finding(blocker: Impediment, place: FileLine | None) -> ScanResult:
    kind, root = blocker.kind, root_name(blocker.root) if blocker.root else ""
    own, message = located(blocker.message) if kind is ImpedimentKind.FAULT else (None, blocker.message)
    match = FIELD.fullmatch(message) if kind is ImpedimentKind.FAULT else None
    level = "warning" if kind is ImpedimentKind.BELOW_MINIMUM else "error"
    rule = blocker.rule or str(kind).replace(" ", "-")
    return ScanResult(rule, level, message, DESCRIPTIONS[kind], root, match["field"] if match else "", own or place)


def faults(text: str) -> Iterator[ScanResult]:
    """The findings in the text of an error about manifests, a line for each."""
    for line in text.splitlines():
        place, message = located(line)
        match = FIELD.fullmatch(message)
        description = DESCRIPTIONS[ImpedimentKind.FAULT]
        yield ScanResult("fault", "error", message, description, field=match["field"] if match else "", place=place)


def sarif(every: Iterable[ScanResult], title: str = "", folder: str = "") -> dict[str, Any]:
    """The document. `folder`: paths below it are written relative to it.

    Findings without a file are notifications: a result without a place is refused by those who read it.
    """
    listed = iter(every)
    shown = [replace(finding, rule=clipped(finding.rule, MAX_RULE)) for finding in islice(listed, MAX_RESULTS)]
    left_out = sum(1 for _ in listed)
    results = [finding for finding in shown if _has_file(finding)]
    notifications = [_notification(finding.level, finding.message) for finding in shown if not _has_file(finding)]
    if left_out:
        notifications.append(_notification("warning", f"{left_out} more findings are left out; -o json has all"))
    rules = list(dict.fromkeys(finding.rule for finding in results))
    run = {
        "tool": {"driver": {"name": "engine", "version": VERSION, "rules": [_rule(rule, results) for rule in rules]}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, rules, folder) for finding in results],
    }
    category = {"automationDetails": {"id": f"engine/{title}/"}} if title else {}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{**run, **category}]}


def _has_file(finding: ScanResult) -> bool:
    """Whether it is about a file; standard input is none."""
    return finding.place is not None and not finding.place.file.startswith("<")


def _rule(rule: str, results: Sequence[ScanResult]) -> dict[str, Any]:
    description = next(finding.description for finding in results if finding.rule == rule)
    return {"id": rule, "shortDescription": {"text": description}}


def _result(finding: ScanResult, rules: Sequence[str], folder: str) -> dict[str, Any]:
    assert finding.place is not None
    about = f"{finding.root}: " if finding.root else ""
    physical = {"artifactLocation": {"uri": _uri(finding.place.file, folder)}, "region": {"startLine": max(1, finding.place.line)}}
    logical = {"logicalLocations": [{"fullyQualifiedName": clipped(finding.root, MAX_RULE)}]} if finding.root else {}
    suppressed = {"suppressions": [{"kind": "external", "justification": _plain(finding.waived)}]} if finding.waived else {}
    return {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": finding.level,
        "message": {"text": _plain(f"{about}{finding.message}")},
        "locations": [{"physicalLocation": physical, **logical}],
        "partialFingerprints": {"engine/v1": finding.fingerprint},
        **suppressed,
    }


def _notification(level: str, message: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": _plain(message)}}


def _plain(text: str) -> str:
    """Text without links, which SARIF writes as `[text](target)`. Brackets that cannot be part of one stay as they are."""
    safe = clipped(text, MAX_MESSAGE) or "(no text)"
    return re.sub(r"([\\\[\]])", r"\\\1", safe) if "](" in safe else safe


def _uri(file: str, folder: str) -> str:
    """The path of a file as a URI reference, relative if the path is, or if it is below the folder."""
    path = normpath(file.removeprefix(f"{folder}/") if folder else file)
    return f"file://{quote(path)}" if path.startswith("/") else quote(path)
