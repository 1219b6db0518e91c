"""Spans: the pass, its workloads and their operations, each where it belongs."""

import io
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from engine.errors import Forbidden, Throttled, Unreachable
from engine.runtime.logs import logger
from engine.runtime.loop import run
from providers.tracing import spans
from providers.tracing.spans import PassSpans
from tests.engine.runtime.fakes import create
from tests.engine.runtime.stage import Stage
from tests.engine.runtime.toy import root_body

pytestmark = pytest.mark.anyio
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def observed(stage: Stage) -> tuple[PassSpans, InMemorySpanExporter]:
    """What makes spans of passes, and what has them when they have ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return PassSpans(provider.get_tracer("test"), stage.clock), exporter


async def spans_of(stage: Stage, seconds: float = 60.0) -> Sequence[ReadableSpan]:
    """The spans of a loop that runs so long."""
    stop, log = anyio.CancelScope(), logger(io.StringIO())
    observer, exporter = observed(stage)
    async with anyio.create_task_group() as group:
        group.start_soon(stage.background)
        group.start_soon(lambda: run(stage.engine, None, log, interval=60.0, stop=stop, observer=observer))
        await stage.clock.advance(seconds)
        group.cancel_scope.cancel()
    return exporter.get_finished_spans()


def named(found: Sequence[ReadableSpan], prefix: str) -> list[ReadableSpan]:
    """The spans whose names begin so, in the order in which they began."""
    return sorted((span for span in found if span.name.startswith(prefix)), key=lambda span: span.start_time or 0)


def parent_of(span: ReadableSpan) -> int | None:
    """The id of the span above it."""
    return span.parent.span_id if span.parent is not None else None


def values(span: ReadableSpan) -> dict[str, Any]:
    """Its attributes."""
    return dict(span.attributes or {})


async def test_a_pass_has_a_span_for_each_workload_and_each_operation_of_it() -> None:
    found = await spans_of(Stage(root_body("one", leaves=2), root_body("two", leaves=1)))

    first = named(found, "pass")[0]
    assert first.parent is None and values(first)["engine.workloads"] == 2
    of_first = [span for span in found if parent_of(span) == first.context.span_id]
    assert sorted(span.name for span in of_first) == ["Root default/one", "Root default/two"]
    one = next(span for span in of_first if span.name.endswith("one"))
    creates = [span for span in named(found, "create Leaf") if parent_of(span) == one.context.span_id]
    assert [values(span)["k8s.object.name"] for span in creates] == ["one-0", "one-1"]
    assert {values(span)["engine.verb"] for span in creates} == {"create"} and values(creates[0])["k8s.namespace.name"] == "default"
    for span in (first, one, *creates):
        times = [first.start_time, span.start_time, span.end_time, first.end_time]
        assert span.status.is_ok and times == sorted(time for time in times if time is not None)


async def test_a_pass_that_sends_nothing_has_none() -> None:
    stage = Stage(root_body(leaves=1))
    busy = len(named(await spans_of(stage), "pass"))

    assert busy > 0
    assert list(await spans_of(stage, seconds=300)) == []


async def test_what_failed_says_so_in_printable_text() -> None:
    stage = Stage(root_body("one", leaves=1))
    stage.provider.failing[create("one-0").key] = [Forbidden("\x1b[31mno quota")] * 100

    found = await spans_of(stage, seconds=0.5)
    call, workload = named(found, "create Leaf")[0], named(found, "Root")[0]

    assert (call.status.is_ok, values(call)["error.type"], values(call)["engine.outcome"]) == (False, "Forbidden", "failed")
    assert call.status.description is not None and "no quota" in call.status.description and "\x1b" not in call.status.description
    assert workload.status.description == "1 of 1 operations were not done"


@pytest.mark.parametrize("parent", [f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"])
async def test_a_workload_continues_the_trace_of_its_annotation_with_a_link_to_the_pass(parent: str) -> None:
    body = root_body("one", leaves=1)
    body["metadata"]["annotations"] = {"traceparent": parent}

    found = await spans_of(Stage(body, root_body("two", leaves=1)))

    if parent.endswith("00"):  # Whoever began the trace does not record it.
        assert named(found, "Root default/one") == [] and named(found, "Root default/two") != []
        return
    one, first = named(found, "Root default/one")[0], named(found, "pass")[0]
    assert (f"{one.context.trace_id:032x}", f"{parent_of(one):016x}") == (TRACE, PARENT)
    assert [link.context.span_id for link in one.links] == [first.context.span_id]
    assert named(found, "Root default/two")[0].context.trace_id == first.context.trace_id


@pytest.mark.parametrize("parent", ["", "yes", 7, f"00-{TRACE}", f"00-{'0' * 32}-{PARENT}-01", "\x1b]0;x\x07"])
async def test_an_annotation_that_is_no_trace_is_ignored(parent: Any) -> None:
    body = root_body("one", leaves=1)
    body["metadata"]["annotations"] = {"traceparent": parent}

    found = await spans_of(Stage(body))

    assert parent_of(named(found, "Root")[0]) == named(found, "pass")[0].context.span_id


async def test_a_pass_that_fails_has_a_span_with_the_error() -> None:
    stage = Stage(root_body(leaves=1))
    stage.provider.observe_errors = [Unreachable("defect")]

    (failed,) = [span for span in named(await spans_of(stage), "pass") if not span.status.is_ok]

    assert values(failed) == {"error.type": "Unreachable"} and failed.status.description == "defect"


async def test_a_sync_that_is_cut_short_has_spans_of_what_it_has_done_and_says_why() -> None:
    def interrupted(stage: Stage, stop: anyio.CancelScope) -> None:
        stage.provider.on_call = lambda key: stop.cancel() if len(stage.provider.started) == 3 else None

    def out_of_time(stage: Stage, stop: anyio.CancelScope) -> None:
        stage.provider.failing[create("one-3").key] = [Throttled("later", retry_after=30.0)] * 10

    def broken(stage: Stage, stop: anyio.CancelScope) -> None:
        stage.provider.failing[create("one-3").key] = [KeyError("a defect")]

    for cut_short, error in ((interrupted, "Interrupted"), (out_of_time, "TimedOut"), (broken, "ExceptionGroup")):
        stage, stop = Stage(root_body("one", leaves=5)), anyio.CancelScope()
        stage.engine = replace(stage.engine, concurrency=1)
        observer, exporter = observed(stage)
        cut_short(stage, stop)

        with suppress(ExceptionGroup):
            await stage.sync(stop=stop, observer=observer, patience=12)

        found = exporter.get_finished_spans()
        (one,) = named(found, "pass")
        (workload,) = named(found, "Root default/one")
        done = [span for span in named(found, "create Leaf") if span.status.is_ok]
        assert (one.status.is_ok, values(one)["error.type"], values(one)["engine.workloads"]) == (False, error, 1)
        assert len(done) >= 2 and {parent_of(span) for span in done} == {workload.context.span_id}
        assert parent_of(workload) == one.context.span_id


async def test_a_sync_that_ends_between_two_passes_has_no_failed_pass() -> None:
    stage = Stage(root_body("one", leaves=2))
    stage.background = stage.never
    observer, exporter = observed(stage)

    report = await stage.sync(observer=observer, patience=12)

    assert report.timed_out and named(exporter.get_finished_spans(), "pass")
    assert all(span.status.is_ok for span in named(exporter.get_finished_spans(), "pass"))


async def test_operations_that_are_never_sent_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "MOST_AWAITED", 3)

    found = await spans_of(Stage(root_body("one", leaves=10)), seconds=0.5)

    assert 0 < len(named(found, "create Leaf")) <= 3
