"""Export: sends spans to a collector by OTLP over HTTP, as the environment variables of OpenTelemetry say."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Timer
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from engine.version import VERSION
from providers.tracing.spans import PassSpans

SERVICE = "grove-engine"
LONGEST_END: Final = 2.0
"""Seconds for which the last spans are sent when the process ends."""
AGAIN: Final = 60.0
"""Seconds after which trouble that lasts is logged again."""


@contextmanager
def exported(clock: Clock, log: Log, environment: Mapping[str, str], parent: str = "") -> Iterator[PassSpans]:
    """What makes spans while the block runs. They are sent from a thread of its own, the last ones when the block ends.

    The library reads endpoint, headers, sampler and limits from the environment of the process; `environment` is that environment.
    `parent`: as for `PassSpans`. A collector that does not answer is logged, and stops nothing.
    """
    attributes = {SERVICE_VERSION: VERSION} | ({} if environment.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: SERVICE})
    provider, exporter = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False), OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    of_library, into_log = logging.getLogger("opentelemetry"), _IntoLog(log, clock)
    of_library.addHandler(into_log)
    of_library.propagate = False
    try:
        yield PassSpans(provider.get_tracer(SERVICE, VERSION), clock, parent)
    finally:
        # The library would try for ten seconds to reach a collector that does not answer, and the process could not end.
        ending = Timer(LONGEST_END, exporter.shutdown)
        ending.start()
        provider.shutdown()
        ending.cancel()
        of_library.removeHandler(into_log)
        of_library.propagate = True


class _IntoLog(logging.Handler):
    """Writes what the library warns of into our log: the same trouble once a minute, however often it tries again."""

    def __init__(self, log: Log, clock: Clock) -> None:
        super().__init__(logging.WARNING)
        self._log, self._clock = log, clock
        self._logged: dict[str, float] = {}
        """Name of the logger, which is that of a part of the library -> when it was passed on last."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log one message."""
        at = self._clock.monotonic()
        if at - self._logged.get(record.name, -AGAIN) >= AGAIN:
            self._logged[record.name] = at
            self._log.warning("spans not sent", error=record.getMessage())
