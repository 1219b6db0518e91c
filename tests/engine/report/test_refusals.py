"""What policies say in reports: above everything else, bounded, and harmless whatever is in it."""

import pytest
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.judgement import Enforcement, Judgement, Violation
from engine.report.html.document import html
from engine.report.json import document, printed
from engine.report.model import Report
from engine.report.refusals import MOST
from engine.report.text import text
from engine.verb import Verb
from tests.engine.report.hostile import HOSTILE
from tests.engine.report.plans import ROOT, operation, pod, report_of
from tests.laws.toy import START

DENIED = Violation("p/deny", Enforcement.DENY, "no")
WARNED = Violation("p/warn", Enforcement.WARN, "careful", ROOT)
AUDITED = Violation("p/audit", Enforcement.AUDIT, "noted")


def judged(*violations: Violation, notes: tuple[str, ...] = ()) -> Report:
    """A report of one operation about which policies say this."""
    return replace(report_of(operation(Verb.DELETE, pod("simple-0-worker-aaaaa"))), judgement=Judgement(violations, notes))


def lines(report: Report, *, verbose: bool = False) -> list[str]:
    """The report as text, up to the first workload."""
    listed = [line.text for line in text(report, verbose=verbose)]
    return listed[: listed.index("default/simple: update")]


def test_what_denies_comes_first_and_what_is_only_recorded_not_at_all() -> None:
    waived = replace(DENIED, rule="p/waived", waived="agreed"), replace(AUDITED, rule="p/other", waived="agreed")

    assert lines(judged(AUDITED, WARNED, DENIED, *waived, notes=("p/x is ignored",))) == [
        "denied by p/deny: no",
        "warned by p/warn (PodCliqueSet/default/simple): careful",
        "waived p/waived: no (reason: agreed)",
        "note: p/x is ignored",
    ]


def test_only_open_violations_that_deny_deny() -> None:
    assert judged(DENIED).denied
    assert not judged(WARNED, AUDITED, replace(DENIED, waived="agreed")).denied


def test_many_violations_are_counted_unless_everything_is_wanted() -> None:
    report = judged(*(replace(WARNED, rule=f"p/{number}") for number in range(MOST + 3)))

    assert lines(report)[-1] == "… and 3 more like these; -v shows all"
    assert (len(lines(report)), len(lines(report, verbose=True))) == (MOST + 1, MOST + 3)


@pytest.mark.parametrize("nasty", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_is_in_it_is_harmless(nasty: str) -> None:
    about = ResourceId("grove.io", "PodCliqueSet", nasty, nasty)
    violation = Violation(f"p/{nasty}", Enforcement.DENY, nasty, about)
    report = judged(violation, replace(violation, waived=nasty), notes=(nasty,))

    shown = lines(report)
    assert len(shown) == 3
    assert all(line.isprintable() and len(line) < 2_000 for line in shown)
    assert all(character.isprintable() or character == "\n" for character in printed(document(report)))
    page = html(report, START)
    assert page.isascii() and "<script" not in page and "<img" not in page
