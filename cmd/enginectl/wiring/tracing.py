"""Tracing: whether spans of the passes are sent to a collector, as the environment variables of OpenTelemetry say."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from engine.report.printable import printable
from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from engine.runtime.observers import LoopObserver
from enginectl.base.extras import missing_tracing
from resources.ports.configuration import Configuration

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
PARENT = "TRACEPARENT"


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment names a collector, and does not switch tracing off."""
    is_off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or environment.get("OTEL_TRACES_EXPORTER") == "none"
    return not is_off and any(environment.get(name, "").strip() for name in ENDPOINTS)


@contextmanager
def traced(
    clock: Clock, log: Log, environment: Mapping[str, str] = os.environ, *, is_one_shot: bool = False
) -> Iterator[Sequence[LoopObserver[Configuration]]]:
    """What makes spans while the block runs: an observer, or none where no collector is named.

    `is_one_shot`: the command is a part of what has started it, so its passes continue the trace of the variable `TRACEPARENT`.
    What prevents tracing is logged, and prevents nothing else: a library that is not installed, or a protocol other than OTLP over HTTP.
    """
    if not is_wanted(environment):
        yield ()
        return
    if problem := _problem(environment):
        log.warning("no spans are sent", error=problem)
        yield ()
        return
    from providers.tracing.export import exported

    with exported(clock, log, environment, environment.get(PARENT, "") if is_one_shot else "") as spans:
        yield (spans,)


def _problem(environment: Mapping[str, str]) -> str:
    """Why no spans can be sent; empty if they can."""
    protocol = next((value for name in PROTOCOLS if (value := environment.get(name, "").strip())), PROTOCOL)
    if protocol != PROTOCOL:
        return f"the protocol is {printable(protocol)}, and only {PROTOCOL} is known here, to which collectors listen on port 4318"
    return missing_tracing()
