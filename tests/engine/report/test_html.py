"""What a person sees of a plan in a browser."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.focus import Others
from engine.forecast.cluster_model import Assumption, Effects, Level
from engine.forecast.forecast import Forecast, ForecastPass
from engine.ids import ResourceId
from engine.operation import Cause, Change, Operation, operation_key
from engine.plan import Objection, Plan, Wait
from engine.reason import Reason
from engine.report.diagram.effect import MAX_COLUMNS
from engine.report.html.document import html
from engine.report.html.elements import ALLOWED, VOID
from engine.report.html.plan import MAX_BYTES
from engine.report.model import Report, compose
from engine.verb import Verb
from tests.browser import Browser, browser, needs_chromium
from tests.engine.report.hostile import HOSTILE, LONG
from tests.engine.report.plans import ROOT, change, operation, patch, pod, replica_of, report_of

__all__ = ["browser"]  # A fixture.
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SERVICE = ResourceId("", "Service", "default", "simple-0")


class Document(HTMLParser):
    """The elements and the text of a document, as a browser reads it; fails if tags are not balanced."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that it is the innermost open one that ends."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note text, except that of the style sheet."""
        if self._open and self._open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        """Everything that can be read."""
        return " ".join(" ".join(self.texts).split())


def text_of(report: Report) -> str:
    """What can be read of a report."""
    return Document(html(report, AT)).text


def replicas(count: int) -> Iterator[Operation]:
    """The creation of replicas of one clique with two pods each."""
    for index in range(count):
        clique = ResourceId("grove.io", "PodClique", "default", f"simple-{index}-a")
        yield operation(Verb.CREATE, clique, f"clique a of replica {index}", body={"kind": "PodClique", "metadata": {"name": clique.name}})
        for number, suffix in enumerate(("b2b2b", "c4c4c")):
            after = frozenset({operation_key(Verb.CREATE, clique)})
            yield operation(Verb.CREATE, pod(f"simple-{index}-a-{suffix}"), f"pod {number} of {clique.name} is missing", after=after)


def hostile_report() -> Report:
    """A report in which everything that somebody else may have written is hostile."""
    plans = []
    for text in HOSTILE:
        root = ResourceId(text, text, text, text)
        waits = tuple(Wait(ResourceId("", "Pod", text, f"{text}{word}"), text, AT, word == "b") for word in "ab")
        verbs = (Verb.CREATE, Verb.PATCH, Verb.DELETE, Verb.REPLACE, Verb.RELEASE)
        after = frozenset({operation_key(Verb.CREATE, ResourceId("", text, text, text))})
        operations = tuple(
            operation(
                verb,
                ResourceId("", text, text, text),
                text,
                body={"metadata": {"name": text, "annotations": {text: text}}, "finalizers": [text]},
                changes=(change(f"metadata.annotations.{text}", text, f"{text}!"),),
                after=after if verb is not Verb.CREATE else frozenset(),
            )
            for verb in verbs
        )
        objections = (Objection(text, text),)
        plan = Plan(
            root,
            operations,
            waits,
            waits,
            objections,
            (text,),
            (text,),
            parent=ResourceId(text, text, text, "graph"),
            error=ValueError(text),
        )
        plans.append(plan)
    return compose(
        plans, lambda root, child: child.name, objections=(Objection(HOSTILE[0], HOSTILE[1]),), incomplete=dict.fromkeys(HOSTILE, "?")
    )


def test_operations_are_grouped_by_verb_the_most_severe_first_with_mark_word_reason_and_fields() -> None:
    report = report_of(
        operation(Verb.CREATE, pod("simple-0-a-x7k2q"), "pod 0 is missing"),
        patch(SERVICE, change("spec.clusterIP", "10.0.0.1", "None", Cause.DRIFT), why="somebody edited it"),
        operation(Verb.DELETE, pod("simple-1-a-b2b2b"), "replicas 2 → 1", intended=False),
        operation(
            Verb.RELEASE, ResourceId("grove.io", "PodClique", "default", "simple-1-a"), "its pods are gone", body={"finalizers": ["ours"]}
        ),
    )

    assert text_of(report) == (
        "Plan Plan What the next sync would do, as of 2026-01-02 03:04:05 UTC Next pass: + create 1 , ~ patch 1 , ⊘ release 1 , - delete 1"
        " PodCliqueSet/default/simple"
        " - delete 1 Objects to delete Object Why Pod/simple-1-a-b2b2b replica 1 replicas 2 → 1 unintended"
        " ⊘ release 1 Objects to release finalizers of Object Why PodClique/simple-1-a replica 1 its pods are gone finalizers: ours"
        " ~ patch 1 Objects to patch Object Why Service/simple-0 replica 0 somebody edited it (drift: changed by another writer)"
        ' fields spec.clusterIP : "10.0.0.1" → "None"'
        " + create 1 Objects to create Object Why Pod/simple-0-a-x7k2q replica 0 pod 0 is missing manifest {}"
    )


def test_what_is_not_done_now_has_its_word_its_reason_and_its_end() -> None:
    text = text_of(
        report_of(
            deferred=(Wait(pod("a"), "replica 1 is updated first"), Wait(pod("b"), "its name is taken", blocked=True)),
            pending=(Wait(pod("c"), "not ready", AT),),
        )
    )

    assert "? later 1 later: a later pass does it Object Why Pod/a replica 1 is updated first" in text
    assert "! blocked 1 blocked: a user or another controller has to act first Object Why Pod/b its name is taken" in text
    assert "· pending 1 pending: the cluster has to act Object Why Pod/c not ready until 2026-01-02 03:04:05 UTC" in text


def test_refusals_faults_and_kinds_that_could_not_be_listed_come_first() -> None:
    plan = Plan(
        ROOT, objections=(Objection("delete-budget", "12 deletes exceed 10"),), problems=("spec.replicas: too many",), notes=("no effect",)
    )
    text = text_of(compose([plan], replica_of, objections=(Objection("nothing-left", "everything goes"),), incomplete={"Pod": "forbidden"}))

    expected = (
        "denied by nothing-left: everything goes",
        "incomplete: Pod objects",
        "denied by delete-budget",
        "problem: spec.",
        "no effect",
    )
    assert [text.index(each) for each in expected] == sorted(text.index(each) for each in expected)


def test_a_plan_without_anything_says_so() -> None:
    assert text_of(report_of()).endswith("Next pass: no operations.")


def test_workloads_out_of_scope_that_have_changes_are_counted() -> None:
    report = compose([], replica_of, others=Others((ROOT, ROOT._replace(name="other")), "--target '*'"))

    assert text_of(report).endswith("2 other workloads have changes; --target '*' shows them")


def test_replicas_that_are_alike_are_one_row_and_one_box_with_their_number() -> None:
    document = Document(html(report_of(*replicas(500)), AT))

    assert "PodClique/simple-{0..499}-a ×500" in document.text
    assert "980 more like these" in document.text
    assert sum(tag == "rect" for tag, _ in document.tags) == 2
    assert "step 1 step 2" in document.text


def test_the_drawing_has_an_arrow_from_what_comes_first_and_none_that_follows_from_others() -> None:
    keys = [operation_key(Verb.CREATE, pod(name)) for name in "abc"]
    chain = (frozenset[str](), frozenset(keys[:1]), frozenset(keys[:2]))
    operations = (operation(Verb.CREATE, pod(name), after=after) for name, after in zip("abc", chain, strict=True))

    tags = Document(html(report_of(*operations), AT)).tags

    assert sum(tag == "rect" for tag, _ in tags) == 3
    assert sum(attributes.get("class") == "edge" for _, attributes in tags) == 2


def test_values_of_secrets_and_environment_variables_and_hashes_are_not_shown() -> None:
    environment = {"containers": [{"name": "main", "env": [{"name": "TOKEN", "value": "hunter2"}]}]}
    changed = {"containers": [{"name": "main", "env": [{"name": "TOKEN", "value": "hunter3"}]}]}
    last_applied = {"kubectl.kubernetes.io/last-applied-configuration": "hunter4"}
    labels = {"grove.io/pod-template-hash": "v2-abcdef"}
    body = {"kind": "PodClique", "metadata": {"name": "x", "annotations": last_applied, "labels": labels}, "spec": environment}
    report = report_of(
        operation(Verb.CREATE, ResourceId("grove.io", "PodClique", "default", "x"), body=body, seal="grove.io/pod-template-hash"),
        operation(
            Verb.CREATE, ResourceId("", "Secret", "default", "x"), body={"apiVersion": "v1", "kind": "Secret", "data": {"key": "hunter5"}}
        ),
        patch(ROOT, change("spec", environment, changed)),
        patch(
            pod("p"),
            Change(("metadata", "labels", "grove.io/pod-template-hash"), "v2-abcdef", "v2-fedcba", Cause.INTENT),
            seal="grove.io/pod-template-hash",
        ),
    )

    source = html(report, AT)

    assert not re.search("hunter|abcdef|fedcba", source)
    assert "TOKEN" in source
    assert "(masked, another value)" in source


def test_hostile_text_stays_text() -> None:
    source = html(hostile_report(), AT)
    document = Document(source)

    assert {tag for tag, _ in document.tags} - {"style"} == {tag for tag, _ in document.tags if ALLOWED.fullmatch(tag)}
    assert not any(name.startswith("on") or name in ("style", "src") for _, attributes in document.tags for name in attributes)
    assert {str(attributes["href"])[:5] for _, attributes in document.tags if "href" in attributes} <= {"data:", "#root"}
    assert source.isascii() and not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", source)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", document.text)
    assert "<script>document.title" in document.text


def test_the_size_is_bounded_and_the_page_says_what_is_left_out() -> None:
    report = compose([plan_of_size(number, 400) for number in range(400)], replica_of)

    source = html(report, AT)

    assert len(source) < MAX_BYTES + 500_000
    assert re.search(r"\d+ workloads are left out, since the page would be too long; -o json has them all", source)
    assert LONG[:5000] not in html(hostile_report(), AT)


def plan_of_size(number: int, operations: int) -> Plan:
    """A plan with that many operations, none like another."""
    return Plan(ResourceId("grove.io", "PodCliqueSet", "default", f"set-{number}"), creates(operations))


@cache
def creates(count: int) -> tuple[Operation, ...]:
    """That many operations, none like another; made once, since plans of many roots may have the same ones."""
    words = ("".join(chr(97 + (index // 26**place) % 26) for place in range(4)) for index in range(count))
    return tuple(operation(Verb.CREATE, pod(f"{word}q"), "missing", body={"metadata": {"name": word}}) for word in words)


def test_the_same_report_gives_the_same_document() -> None:
    assert html(hostile_report(), AT) == html(hostile_report(), AT)


@needs_chromium
def test_a_browser_runs_nothing_loads_nothing_and_complains_of_nothing(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    file.write_text(html(hostile_report(), AT))

    browser.open(file.as_uri())

    assert browser.events == [f"request: {file.as_uri()}"]
    assert browser.evaluate("document.title") == "Plan"
    assert browser.evaluate("getComputedStyle(document.body).display") == "block"


@needs_chromium
@pytest.mark.parametrize("width", [400, 1000])
def test_a_page_is_no_wider_than_the_window(browser: Browser, tmp_path: Path, width: int) -> None:
    file = tmp_path / "plan.html"
    file.write_text(html(hostile_report(), AT))

    browser.open(file.as_uri(), width=width)

    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_against_its_background(browser: Browser, tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "plan.html"
    waits = (Wait(pod("a"), "later"), Wait(pod("b"), "blocked", blocked=True))
    verbs = [operation(verb, ResourceId("", f"Kind{verb}", "default", str(verb)), body={"finalizers": []}) for verb in Verb]
    file.write_text(html(report_of(*verbs, *replicas(3), deferred=waits, pending=waits, problems=("p",), notes=("n",)), AT))
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    browser.open(file.as_uri())

    assert browser.evaluate(CONTRASTS) >= 4.5


CONTRASTS = """(() => {
  const light = text => { const [r, g, b] = text.match(/[0-9.]+/g).map(Number).map(each => each / 255)
    .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b }
  const solid = element => { for (; element; element = element.parentElement) { const colour = getComputedStyle(element).backgroundColor
    if (!colour.startsWith('rgba(0, 0, 0, 0')) return colour } }
  let worst = 21
  for (const element of document.body.querySelectorAll('*')) {
    if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue
    const svg = element.closest('svg'), style = getComputedStyle(element)
    if (svg && element.tagName !== 'text') continue
    const [a, b] = [light(svg ? style.fill : style.color), light(solid(element))].sort((x, y) => y - x)
    worst = Math.min(worst, (a + 0.05) / (b + 0.05)) }
  return worst })()"""
"""The lowest contrast of any text with what is behind it, as the Web Content Accessibility Guidelines define it."""


def test_the_worst_workload_comes_first_and_whatever_is_decided_on_is_in_its_row() -> None:
    mild, gone = ROOT._replace(name="mild"), ROOT._replace(name="zzz-gone")
    create = operation(Verb.CREATE, pod("mild-0-a"))
    delete = operation(Verb.DELETE, gone, reason=Reason.PRUNED)
    stuck = Plan(gone, deferred=(Wait(pod("b"), "its name is taken", blocked=True),))
    level = Level(pod("zzz-gone-0-a"), 3, 1, 3, 2)
    forecast = Forecast(
        AT,
        (ForecastPass(timedelta(0), {mild: (create,), gone: (delete,)}), ForecastPass(timedelta(hours=4), {gone: (delete,)})),
        True,
        {gone: stuck},
        {gone: Effects({"pods restarted": 3, "GPUs restarted": 24, "domains removed": 1}, (level,))},
        frozenset(),
    )
    report = compose([Plan(mild, (create,)), Plan(gone, (delete,))], replica_of)

    text = Document(html(replace(report, forecast=forecast), AT)).text

    lead, _, rest = text.partition("Next pass: ")
    assert "Restarted 3 pods restarted (24 GPUs) Below minimum 1 object for a time Pod/zzz-gone-0-a : 1 of 3 pods ready, minimum 2" in lead
    assert "Deleted whole workloads: PodCliqueSet/default/zzz-gone 1 domain removed, 2 PodCliqueSets deleted" in lead
    assert "Takes 2 passes, the last one after 4h0m0s" in lead
    assert "Left default/zzz-gone stuck" in lead
    deleted = "1 domain removed, 2 PodCliqueSets deleted"
    assert f"default/zzz-gone PodCliqueSet prune, STUCK 3 pods restarted (24 GPUs) {deleted} 1 (min 2) 2 passes" in rest
    assert rest.index("default/zzz-gone") < rest.index("default/mild")
    assert "not done" in rest[rest.index("the whole effect, in order") :]


def test_stages_beyond_those_that_can_be_read_are_counted_below_the_drawing() -> None:
    kinds = [f"Kind{chr(97 + number)}" for number in range(20)]
    passes = (operation(Verb.CREATE, ResourceId("", kind, "default", "x")) for kind in kinds)
    forecast = Forecast(
        AT,
        tuple(ForecastPass(timedelta(seconds=number), {ROOT: (each,)}) for number, each in enumerate(passes)),
        True,
        {},
        {},
        frozenset(),
    )

    document = Document(html(replace(report_of(patch(ROOT, change("spec.x", 1, 2))), forecast=forecast), AT))

    assert sum(tag == "rect" for tag, _ in document.tags) == 1 + MAX_COLUMNS
    assert f"{20 - MAX_COLUMNS} more stages not drawn" in document.text


def test_what_follows_is_shown_with_the_fewest_ready_members_and_the_assumptions() -> None:
    first, later = operation(Verb.DELETE, pod("simple-0-a-aaaaa")), operation(Verb.CREATE, pod("simple-0-a-bbbbb"))
    level = Level(pod("simple-0-a"), 3, 1, 3, 2)
    forecast = Forecast(
        AT,
        (ForecastPass(timedelta(0), {ROOT: (first,)}), ForecastPass(timedelta(seconds=1), {ROOT: (later,)})),
        True,
        {ROOT: Plan(ROOT, pending=(Wait(pod("simple-0-b"), HOSTILE[0]),))},
        {ROOT: Effects({"pods restarted": 1}, (level,))},
        frozenset({Assumption.CAPACITY}),
    )

    text = Document(html(replace(report_of(first), forecast=forecast), AT)).text

    assert "What follows create Pod/simple-0-a-bbbbb" in text
    assert "Pod/simple-0-a 1 of 3 pods 2 below its minimum" in text
    assert "1 pod restarted; 1 to create, 1 to delete; STUCK" in text
    assert "This assumes that every new pod is scheduled and becomes ready." in text
