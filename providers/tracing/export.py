"""Export: sends spans to a collector by OTLP over HTTP, as the environment variables of OpenTelemetry say."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from engine.version import VERSION
from providers.tracing.spans import PassSpans

SERVICE = "grove-engine"


@contextmanager
def exported(clock: Clock, log: Log, environment: Mapping[str, str]) -> Iterator[PassSpans]:
    """What makes spans while the block runs. They are sent from a thread of its own, the last ones when the block ends.

    The library reads endpoint, headers, sampler and limits from the environment of the process; `environment` is that environment. A
    collector that does not answer is logged, and stops nothing.
    """
    attributes = {SERVICE_VERSION: VERSION} | ({} if environment.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: SERVICE})
    provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    of_library, into_log = logging.getLogger("opentelemetry"), _IntoLog(log)
    of_library.addHandler(into_log)
    of_library.propagate = False
    try:
        yield PassSpans(provider.get_tracer(SERVICE, VERSION), clock)
    finally:
        provider.shutdown()
        of_library.removeHandler(into_log)
        of_library.propagate = True


class _IntoLog(logging.Handler):
    """Writes what the library warns of into our log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Log one message."""
        self._log.warning("spans not sent", error=record.getMessage())
