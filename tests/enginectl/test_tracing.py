"""Tracing: spans reach a collector where the environment names one, and nothing is stopped where they cannot."""

import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from engine.runtime.logs import logger
from engine.version import VERSION
from enginectl.base.exit_codes import Exit
from enginectl.wiring.tracing import is_wanted, traced
from grove_sandbox.clock import VirtualClock
from providers.tracing import export
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
FIRST = ROOT / "examples" / "01-first-gang"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextmanager
def collector(code: int = 200) -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """A collector on loopback: its address, and what it has received."""
    received: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(code)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def spans_of(received: list[ExportTraceServiceRequest]) -> list[Span]:
    """All spans that were received."""
    return [span for request in received for one in request.resource_spans for scope in one.scope_spans for span in scope.spans]


def trace(environment: dict[str, str], *, is_one_shot: bool = False) -> tuple[int, list[dict[str, Any]]]:
    """How many observers there are, with a failed pass told to each; and what was logged."""
    stream = io.StringIO()
    with traced(VirtualClock(), logger(stream, format="json"), environment, is_one_shot=is_one_shot) as observers:
        for observer in observers:
            observer.failed(ValueError("defect"))
    return len(observers), [json.loads(line) for line in stream.getvalue().splitlines()]


def test_spans_reach_the_collector_when_the_process_ends_at_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as (address, received):
        monkeypatch.setenv(ENDPOINT, address)
        assert trace({ENDPOINT: address}) == (1, [])

    (spans,) = received[0].resource_spans
    assert [span.name for scope in spans.scope_spans for span in scope.spans] == ["pass"]
    attributes = {each.key: each.value.string_value for each in spans.resource.attributes}
    assert (attributes["service.name"], attributes["service.version"]) == ("grove-engine", VERSION)


def test_a_collector_that_refuses_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    with collector(400) as (address, _):
        monkeypatch.setenv(ENDPOINT, address)
        count, logged = trace({ENDPOINT: address})

    assert count == 1
    assert [(line["level"], line["event"]) for line in logged] == [("warning", "spans not sent")]
    assert "400" in logged[0]["error"]


def test_a_collector_that_is_not_there_is_logged_once_and_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as (address, _):
        pass
    monkeypatch.setenv(ENDPOINT, address)
    monkeypatch.setattr(export, "LONGEST_END", 0.2)
    given_up: list[bool] = []

    def noted(seconds: float, give_up: Callable[[], None]) -> threading.Timer:
        def note() -> None:
            given_up.append(True)
            give_up()

        return threading.Timer(seconds, note)

    monkeypatch.setattr(export, "Timer", noted)

    count, logged = trace({ENDPOINT: address})

    assert count == 1 and given_up, "our own clock has given up, not the library"
    assert [line["event"] for line in logged] == ["spans not sent"] and "Connection refused" in logged[0]["error"]


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({ENDPOINT: ""}, False),
        ({ENDPOINT: "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({ENDPOINT: "http://collector:4318", "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({ENDPOINT: "http://collector:4318", "OTEL_SDK_DISABLED": "false"}, True),
        ({ENDPOINT: "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_it_is_off_unless_a_collector_is_named(environment: dict[str, str], wanted: bool) -> None:
    assert is_wanted(environment) is wanted
    if not wanted:
        assert trace(environment) == (0, [])


def test_another_protocol_is_told_and_stops_nothing() -> None:
    count, logged = trace({ENDPOINT: "http://collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})

    assert count == 0
    assert [(line["event"], line["error"]) for line in logged] == [
        ("no spans are sent", "the protocol is grpc, and only http/protobuf is known here, to which collectors listen on port 4318")
    ]


def test_sync_and_delete_are_parts_of_the_trace_that_starts_them(engine: Engine, box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{PARENT}-01")
    with collector() as (address, received):
        monkeypatch.setenv(ENDPOINT, address)
        assert engine("sync", "-f", FIRST, "--yes").code == Exit.DONE
        synced = spans_of(received)
        received.clear()
        assert engine("delete", "-f", FIRST, "--yes").code == Exit.DONE
        deleted = spans_of(received)

    for spans in (synced, deleted):
        assert {span.trace_id.hex() for span in spans} == {TRACE}
        assert {span.parent_span_id.hex() for span in spans if span.name == "pass"} == {PARENT}
        assert "PodCliqueSet default/first" in {span.name for span in spans}
    assert {"create Pod", "create PodClique"} <= {span.name for span in synced}
    assert {"delete Pod", "delete PodCliqueSet"} <= {span.name for span in deleted}


def test_what_is_no_trace_begins_one_and_a_loop_continues_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, is_one_shot in (("nonsense", True), (f"00-{TRACE}-{PARENT}-01", False)):
        with collector() as (address, received):
            monkeypatch.setenv(ENDPOINT, address)
            assert trace({ENDPOINT: address, "TRACEPARENT": given}, is_one_shot=is_one_shot) == (1, [])

        (span,) = spans_of(received)
        assert not span.parent_span_id and span.trace_id.hex() != TRACE


def test_without_the_library_it_is_told_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("providers.tracing", "opentelemetry"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    count, logged = trace({ENDPOINT: "http://collector:4318"})

    assert count == 0
    assert "pip install '.[otel]', in a checkout of the project" in logged[0]["error"]
