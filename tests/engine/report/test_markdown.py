"""What a reviewer reads in a comment, and what hostile names cannot do to it."""

import html as entities
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from engine.forecast.cluster_model import Assumption, Effects, Level
from engine.forecast.forecast import Forecast, ForecastPass
from engine.ids import ResourceId
from engine.operation import Cause, Operation
from engine.plan import Enforcement, Judgement, Objection, Plan, Violation, Wait
from engine.reason import Reason
from engine.report.markdown.document import KEPT, markdown
from engine.report.markdown.inert import cell, code, fenced, html_code, prose
from engine.report.markdown.overview import marker
from engine.report.model import SMALLEST, Report, compose
from engine.verb import Verb
from tests.engine.report.hostile import HOSTILE
from tests.engine.report.plans import ROOT, change, operation, patch, pod, replica_of, report_of
from tests.engine.report.test_html import hostile_report, plan_of_size, replicas

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
AT = datetime(2026, 1, 2, tzinfo=UTC)
MARKUP = (
    "@everyone please",
    "#1 GH-1 https://evil.example www.evil.example me@evil.example",
    "[click](javascript:alert(1)) ![x](http://evil.example/x.png)",
    "a|b|c\n|---|---|",
    "``` `` ` ~~~~ ~~~",
    "</code></summary></details><script>alert(1)</script>",
    "**bold** _em_ ~~gone~~ <b>x</b> &lt;b&gt;",
    "# heading\n- list\n> quote\n\n~~~\nout of the fence",
    "$`math`$ :smile: \\| \\`",
    "<!-- engine:diff prod -->",
)
WRITTEN = {"details", "summary", "code", "sub"}
"""The elements of HTML that we write ourselves."""
SPANS = {"text", "code_inline", "strong_open", "strong_close", "softbreak", "html_inline"}


class Elements(HTMLParser):
    """The elements of raw HTML; they must be closed in the order in which they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.met = set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert attrs == []
        self.open.append(tag)
        self.met.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def spans(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield from token.children or ()


def check_inert(text: str) -> None:
    """Whatever the names were: only elements of ours, no links but our own, no mentions, no markup of others."""
    tokens = READER.parse(text)
    raw = Elements()
    for token in [*tokens, *spans(tokens)]:
        if token.type in ("html_block", "html_inline"):
            raw.feed(token.content)
    assert raw.open == [] and raw.met <= WRITTEN
    assert {token.type for token in spans(tokens)} <= SPANS
    plain = " ".join(token.content for token in spans(tokens) if token.type == "text")
    assert not re.search(r"@|://|www\.|#\d|[<>|`*$\\~\[\]]", plain)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200b]", text)


def forecast(*levels: Level, counts: dict[str, int] | None = None, left: tuple[Wait, ...] = (), finished: bool = True) -> Forecast:
    """A forecast of the root with these effects."""
    passes = (ForecastPass(timedelta(), {ROOT: (operation(Verb.DELETE, pod("p")),)}),)
    return Forecast(
        AT, passes, finished, {ROOT: Plan(ROOT, pending=left)}, {ROOT: Effects(counts or {}, levels)}, frozenset({Assumption.CAPACITY})
    )


def with_forecast(report: Report, forecast: Forecast, *violations: Violation) -> Report:
    return Report(report.roots, report.objections, report.incomplete, forecast, Judgement(violations))


def test_a_report_begins_with_its_marker_the_numbers_and_the_worst() -> None:
    low = Level(ResourceId("grove.io", "PodClique", "default", "simple-0-a"), 2, 0, 2, 1)
    blocked = (Wait(pod("b"), "its name is taken", blocked=True),)
    report = with_forecast(
        report_of(patch(ROOT, change("spec.image", "a/b:1", "a/b:2")), deferred=blocked),
        forecast(low, counts={"pods restarted": 24, "GPUs restarted": 192}),
        Violation("prod/restarts", Enforcement.DENY, "many restarts"),
        Violation("prod/digests", Enforcement.WARN, "image by tag", ROOT),
    )

    assert markdown(report, title="prod", link="https://ci.example/1") == (
        "<!-- engine:diff prod -->\n"
        "### engine: 1 denied, 1 blocked, 1 below minimum, 24 pods restart in `prod`\n\n"
        "Next pass: 1 patch, 1 blocked.\n\n"
        "In all: 1 to delete; 24 pods restarted (192 GPUs).\n\n"
        "| set | change | restarted | lowest/min | ends |\n|---|---|---|---|---|\n"
        "| `default/simple` | update | 24, 192 GPUs | **0/1** | settled |\n\n"
        "**Denied** `prod/restarts`: many restarts\n\n"
        "**Blocked** `default/simple`: `Pod/b`: its name is taken\n\n"
        "**Below minimum** `default/simple`: `simple-0-a`: 0 of 2 pods ready, minimum 1\n\n"
        "**Warning** `prod/digests` `default/simple`: image by tag\n\n"
        "<details><summary><code>default/simple</code>: 1 patch, 1 blocked</summary>\n\n"
        "- `~` patch `PodCliqueSet/simple`: the template changed\n\n"
        '  ~~~diff\n  - spec.image: "a/b:1"\n  + spec.image: "a/b:2"\n  ~~~\n\n'
        "- `!` blocked `Pod/b`: its name is taken\n"
        "- then delete `Pod/p`\n"
        "- lowest `simple-0-a`: 0 of 2 pods ready, minimum 1, **below its minimum**\n"
        "- in all 24 pods restarted (192 GPUs); 1 to delete; settled, 1 pass\n\n"
        "</details>\n\n"
        "<sub>Assumes that every new pod is scheduled and becomes ready. [Full report](<https://ci.example/1>)</sub>\n"
    )


def test_what_stays_stuck_is_said_in_the_heading_the_table_and_a_line_of_its_own() -> None:
    text = markdown(with_forecast(report_of(operation(Verb.DELETE, pod("p"))), forecast(left=(Wait(pod("q"), "nobody schedules it"),))))

    assert "### engine: 1 stuck, 1 change\n" in text
    assert "| **stuck** |" in text
    assert "**Stuck** `default/simple`: `Pod/q`: nobody schedules it" in text


@pytest.mark.parametrize(
    ("operations", "word"),
    [
        ([operation(Verb.CREATE, ROOT, reason=Reason.MANIFEST_CHANGED)], "create"),
        ([operation(Verb.DELETE, pod("p")), operation(Verb.RELEASE, ROOT, body={"finalizers": ["ours"]})], "delete"),
        ([operation(Verb.DELETE, pod("p"))], "update"),
        ([operation(Verb.DELETE, pod("p")), operation(Verb.DELETE, pod("q"), cause=Cause.DRIFT)], "update and repair"),
        ([operation(Verb.STATUS, ROOT)], "status"),
    ],
)
def test_the_table_says_in_words_what_happens(operations: list[Operation], word: str) -> None:
    assert f"\n| `default/simple` | {word} |" in markdown(report_of(*operations))


def test_a_deletion_of_which_only_the_end_deletes_the_workload_is_one() -> None:
    ending = (ForecastPass(timedelta(seconds=9), {ROOT: (operation(Verb.RELEASE, ROOT, body={"finalizers": ["ours"]}),)}),)

    text = markdown(with_forecast(report_of(operation(Verb.DELETE, pod("p"))), replace(forecast(), passes=ending)))

    assert "| `default/simple` | delete |" in text


def test_what_would_never_end_is_said() -> None:
    endless = replace(forecast(), repeating=frozenset({ROOT}))

    text = markdown(with_forecast(report_of(operation(Verb.DELETE, pod("p"))), endless))

    assert "### engine: 1 repeating, 1 change\n" in text
    assert "| **repeats** |" in text
    assert "**Repeating** `default/simple`: the same operations would follow again and again" in text


def test_what_only_waits_for_the_cluster_is_no_fault_of_the_change() -> None:
    waiting = replace(forecast(left=(Wait(pod("q"), "not ready"),)), passes=())

    text = markdown(with_forecast(report_of(pending=(Wait(pod("q"), "not ready"),)), waiting))

    assert "### engine: no changes\n" in text and "**" not in text


def test_workloads_that_are_refused_come_first_then_those_with_deletes() -> None:
    plans = [
        Plan(ResourceId("g", "K", "d", "created"), (operation(Verb.CREATE, pod("a")),)),
        Plan(ResourceId("g", "K", "d", "deleted"), (operation(Verb.DELETE, pod("b")),)),
        Plan(ResourceId("g", "K", "d", "refused"), objections=(Objection("budget", "too many"),)),
    ]

    text = markdown(compose(plans, replica_of))

    assert re.findall(r"^\| `d/(\w+)`", text, re.MULTILINE) == ["refused", "deleted", "created"]
    assert re.findall(r"<summary><code>d/(\w+)", text) == ["refused", "deleted", "created"]


def test_nothing_to_do_is_said() -> None:
    assert markdown(report_of()) == "<!-- engine:diff -->\n### engine: no changes\n\nNext pass: nothing.\n"


def test_hostile_names_are_inert() -> None:
    text = markdown(hostile_report(), title="prod")

    check_inert(text)
    assert text.count("<details>") == len(HOSTILE)
    assert entities.escape("<script>document.title='taken over'</script>", quote=False) in text


@given(st.lists(st.one_of(st.sampled_from([*MARKUP, *HOSTILE[:5]]), st.text(max_size=40)), min_size=1, max_size=3).map(" ".join))
@settings(max_examples=60, deadline=None)
def test_no_text_whatever_becomes_markup(text: str) -> None:
    root = ResourceId("g", "K", text, text)
    waits = (Wait(ResourceId("", "Pod", text, text), text, blocked=True),)
    plan = Plan(
        root,
        (patch(pod(text), change(text, text, f"{text}!", Cause.DRIFT), why=text),),
        waits,
        waits,
        (Objection(text, text),),
        notes=(text,),
    )
    report = compose([plan], replica_of)

    check_inert(markdown(Report(report.roots, judgement=Judgement((Violation(text, Enforcement.WARN, text, root),)))))


@pytest.mark.parametrize("text", MARKUP)
def test_each_encoding_gives_back_what_was_written(text: str) -> None:
    one_line = text.replace("\n", " ")
    (inline,) = READER.parseInline(code(one_line))
    table = READER.parse(f"| a | b |\n|---|---|\n| {cell(one_line)} | x |")
    (block,) = READER.parse(fenced([one_line, one_line]))

    assert [span.content.strip() for span in inline.children or ()] == [one_line.strip()]
    assert sum(token.type == "td_open" for token in table) == 2
    assert block.type == "fence" and block.content == f"{one_line}\n" * 2
    assert entities.unescape(re.sub("</?code>", "", html_code(one_line))) == one_line
    assert re.sub("[`\\s]", "", prose(one_line)) == re.sub("[`\\s]", "", one_line)


def large() -> Report:
    """Many workloads with many operations, of which each has a field, and 60 things that are blocked."""
    blocked = [
        Plan(ResourceId("g", "K", "d", f"b-{n}"), deferred=(Wait(pod(f"x{n}"), "its name is taken", blocked=True),)) for n in range(60)
    ]
    words = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(400)]
    patched = [
        Plan(
            ResourceId("g", "K", "d", f"p-{word}"),
            tuple(patch(pod(f"{word}{each}"), change("spec.image", each, f"{each}!")) for each in "abcdef"),
        )
        for word in words
    ]
    return compose([*blocked, *patched], replica_of)


@pytest.mark.parametrize("limit", [SMALLEST, 65_000, 1_000_000])
def test_no_document_is_longer_than_allowed_and_what_is_left_out_is_counted(limit: int) -> None:
    text = markdown(large(), limit=limit, link="https://ci.example/1")

    assert len(text.encode()) <= limit
    assert text.startswith("<!-- engine:diff -->\n### engine: 60 blocked, 2400 changes\n")
    assert text.count("**Blocked**") >= KEPT
    assert text.count("<details>") == text.count("</details>")
    sections, rows = text.count("<details>"), text.count("\n| `")
    assert f"{460 - sections} details of workloads" in text
    assert rows == 460 or f"{460 - rows} rows" in text
    assert "[Full report](<https://ci.example/1>)" in text


def test_a_small_limit_drops_fields_before_workloads_and_mild_workloads_before_bad_ones() -> None:
    full = markdown(large(), limit=1_000_000)
    plans = [plan_of_size(number, 30) for number in range(3)]
    assert "~~~diff" in full and "all fields" not in full

    small = markdown(large(), limit=65_000)
    shorter = markdown(compose(plans, replica_of), limit=SMALLEST)

    assert "~~~diff" not in small and "of 240 workloads all fields" in small
    assert "<code>d/b-59</code>" in small and "<code>d/p-" not in small.split("<code>d/b-59</code>")[0]
    assert shorter.count("<details>") + int(re.findall(r"(\d+) details", shorter + " 0 details")[0]) == 3


def test_twenty_blockers_of_any_length_fit_into_the_smallest_document() -> None:
    long = tuple(Wait(pod(f"\U0001f600{chr(97 + n)}" * 200), "🙈<&" * 300, blocked=True) for n in range(26))

    text = markdown(report_of(deferred=long), limit=SMALLEST, title="x" * 100, link="https://ci.example/" + "x" * 1900)

    assert len(text.encode()) <= SMALLEST
    assert text.count("**Blocked**") >= KEPT


def test_values_of_environment_variables_are_shown_only_if_asked_for_and_secrets_never() -> None:
    env = [{"name": "TOKEN", "value": "hunter2"}]
    report = report_of(
        patch(pod("p"), change("spec.env", None, env)),
        patch(ResourceId("", "Secret", "default", "s"), change("data.key", "aHVudGVyMw==", "b3RoZXI=")),
    )

    assert "hunter2" not in markdown(report) and "TOKEN" in markdown(report)
    assert "hunter2" in markdown(report, values=True)
    assert not re.search("aHVudGVyMw|b3RoZXI", markdown(report, values=True))


def test_alike_operations_are_one_entry() -> None:
    text = markdown(report_of(*replicas(500)))

    assert "`PodClique/simple-{0..499}-a ×500`" in text
    assert len(text) < 3_000


@pytest.mark.parametrize("title", ["--", "a--b", "a>b", "-a", "a\nb", "x" * 101, "a -->"])
def test_a_title_that_could_end_the_marker_is_refused(title: str) -> None:
    with pytest.raises(ValueError, match="marker"):
        marker(title)


@pytest.mark.parametrize("link", ["javascript:alert(1)", "https://x/a b", "https://x/)[", "https://x/>", "ftp://x"])
def test_a_link_that_is_no_address_is_refused(link: str) -> None:
    with pytest.raises(ValueError, match="link"):
        markdown(report_of(), link=link)


def test_the_same_report_gives_the_same_document() -> None:
    assert markdown(hostile_report()) == markdown(hostile_report())


def test_a_list_that_is_too_long_says_how_many_are_missing() -> None:
    kinds = [operation(Verb.DELETE, ResourceId("", f"Kind{chr(97 + n // 26)}{chr(97 + n % 26)}", "default", "x")) for n in range(50)]

    assert "- 10 more operations" in markdown(report_of(*kinds))
