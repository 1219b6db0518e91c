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

from engine.runtime.logs import logger
from engine.version import VERSION
from enginectl.wiring.tracing import is_wanted, traced
from grove_sandbox.clock import VirtualClock
from providers.tracing import export

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


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


def trace(environment: dict[str, str]) -> tuple[int, list[dict[str, Any]]]:
    """How many observers there are, with a failed pass told to each; and what was logged."""
    stream = io.StringIO()
    with traced(VirtualClock(), logger(stream, format="json"), environment) as observers:
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


def test_without_the_library_it_is_told_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("providers.tracing", "opentelemetry"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    count, logged = trace({ENDPOINT: "http://collector:4318"})

    assert count == 0
    assert "pip install '.[otel]', in a checkout of the project" in logged[0]["error"]
