"""PassSpans: OpenTelemetry spans of what the loop does: the pass, its workloads, and each operation."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from engine.ids import ResourceId
from engine.observed import Live, by_root
from engine.operation import Outcome, Result
from engine.plan import Plan
from engine.report.printable import clipped
from engine.runtime.clock import Clock
from engine.runtime.observers import LoopObserver
from engine.runtime.passes import Pass
from resources.base.fields import annotations_of

TRACE_PARENT = "traceparent"
"""The annotation of a workload with the trace that its change belongs to, as W3C's Trace Context writes it."""
MOST_AWAITED = 20_000
"""How many operations are remembered whose results have not arrived: some are never sent."""
LONGEST_TEXT = 500
"""The most characters of an error in a span."""


class _Begun(Struct, eq=False):
    """A pass that has begun to send operations. Times are nanoseconds since 1970."""

    at: int
    planned_at: int
    workloads: int
    parents: Mapping[ResourceId, str]
    """Workload -> its annotation `traceparent`; only those that have one."""
    context: SpanContext | None = None
    """That of its span, which is made when the first results arrive."""


class _Call(NamedTuple):
    """The last call of an operation. Times are nanoseconds since 1970."""

    result: Result
    began: int
    ended: int


class PassSpans(LoopObserver[object]):
    """An `engine.runtime.observers.LoopObserver` that makes spans of passes that send something; others make none.

    pass → workload → operation. A workload with the annotation `traceparent` continues that trace, with a link to the pass. Results that
    arrive after their pass has ended are added to it.
    """

    def __init__(self, tracer: Tracer, clock: Clock, parent: str = "") -> None:
        """`parent`: the trace that the passes belong to, as W3C's Trace Context writes it; empty, or no such text: one of their own."""
        self._tracer, self._clock = tracer, clock
        self._context = TraceContextTextMapPropagator().extract({TRACE_PARENT: parent}, context=Context())
        self._awaited: OrderedDict[str, tuple[_Begun, ResourceId]] = OrderedDict()
        """Key of an operation -> the pass that sends it, and its workload."""
        self._begun: _Begun | None = None
        """The pass whose plans are being sent; None between two passes, and if nothing is sent."""
        self._offset = 0.0
        """Seconds from the monotonic clock to the wall clock, as they were last compared."""

    def failed(self, error: Exception) -> None:
        """Make a span of a pass that ended with an error. What it has sent belongs to it: the results may follow."""
        begun, self._begun = self._begun, None
        self._compare_clocks()
        at = self._wall(self._clock.monotonic())
        if begun is not None and begun.context is None:
            span = self._begin(begun)
            begun.context = span.get_span_context()
        else:
            span = self._tracer.start_span("pass", context=self._context, start_time=at)
        _fail(span, error)
        span.end(at)

    def planned(self, current: Pass[object], chosen: Sequence[Plan]) -> None:
        """Remember which pass and which workload each operation belongs to that is sent now."""
        self._begun = None
        if not chosen:
            return
        self._compare_clocks()
        planned_at = self._clock.monotonic()
        roots = by_root(current.world.roots)
        parents = {
            plan.root: parent
            for plan in chosen
            if (observed := roots.get(plan.root)) is not None and (parent := _trace_parent(observed.root))
        }
        begun = _Begun(self._wall(planned_at - current.took), self._wall(planned_at), len(chosen), parents)
        self._begun = begun
        for plan in chosen:
            for operation in plan.operations:
                self._awaited[operation.key] = begun, plan.root
        while len(self._awaited) > MOST_AWAITED:
            self._awaited.popitem(last=False)

    def passed(self, current: Pass[object], results: Sequence[Result]) -> None:
        """Make the spans of these results, below those of their passes."""
        by_pass: dict[int, tuple[_Begun, dict[ResourceId, list[_Call]]]] = {}
        for result in results:
            if result.sent is not None and (awaited := self._awaited.pop(result.operation.key, None)) is not None:
                begun, root = awaited
                call = _Call(result, *map(self._wall, result.sent))
                by_pass.setdefault(id(begun), (begun, {}))[1].setdefault(root, []).append(call)
        for begun, by_workload in by_pass.values():
            self._make(begun, by_workload)
        self._begun = None

    def _make(self, begun: _Begun, by_workload: Mapping[ResourceId, Sequence[_Call]]) -> None:
        """The spans of results that belong to one pass."""
        made: Span | None = None
        if begun.context is None:
            made = self._begin(begun)
            begun.context = made.get_span_context()
        last = begun.planned_at
        for root, calls in by_workload.items():
            last = max(last, self._make_workload(begun, begun.context, root, calls))
        if made is not None:
            made.end(last)

    def _begin(self, begun: _Begun) -> Span:
        """The span of a pass, which is to be ended."""
        attributes = {"engine.workloads": begun.workloads}
        span = self._tracer.start_span("pass", context=self._context, start_time=begun.at, attributes=attributes)
        span.add_event("planned", timestamp=begun.planned_at)
        return span

    def _make_workload(self, begun: _Begun, of_pass: SpanContext, root: ResourceId, calls: Sequence[_Call]) -> int:
        """The span of a workload, and those of its operations. Returns when the last one ended."""
        context, links = _within(of_pass), []
        if parent := begun.parents.get(root):
            continued = TraceContextTextMapPropagator().extract({TRACE_PARENT: parent}, context=Context())
            if continued:
                context, links = continued, [Link(of_pass)]
        last = max(call.ended for call in calls)
        span = self._tracer.start_span(
            f"{root.kind} {root.namespace}/{root.name}",
            context=context,
            start_time=min(call.began for call in calls),
            attributes=_attributes(root),
            links=links,
        )
        for call in calls:
            self._make_operation(set_span_in_context(span, Context()), call)
        if failed := sum(call.result.outcome is not Outcome.DONE for call in calls):
            span.set_status(Status(StatusCode.ERROR, f"{failed} of {len(calls)} operations were not done"))
        span.end(last)
        return last

    def _make_operation(self, context: Context, call: _Call) -> None:
        """The span of the last call of an operation."""
        result, operation = call.result, call.result.operation
        attributes = {**_attributes(operation.id), "engine.verb": operation.verb.value, "engine.outcome": result.outcome.value}
        span = self._tracer.start_span(
            f"{operation.verb.value} {operation.id.kind}",
            context=context,
            kind=SpanKind.CLIENT,
            start_time=call.began,
            attributes={**attributes, "engine.reason": clipped(str(operation.reason), LONGEST_TEXT)},
        )
        if result.error is not None:
            _fail(span, result.error)
        span.end(call.ended)

    def _wall(self, monotonic: float) -> int:
        """Nanoseconds since 1970 of a time of the monotonic clock."""
        return int((self._offset + monotonic) * 1e9)

    def _compare_clocks(self) -> None:
        """Learn what the wall clock shows: it may have been set since."""
        self._offset = self._clock.now().timestamp() - self._clock.monotonic()


def _within(parent: SpanContext) -> Context:
    """The context below a span that may have ended."""
    return set_span_in_context(NonRecordingSpan(parent), Context())


def _attributes(id: ResourceId) -> dict[str, str]:
    """What says in a span which object it is about."""
    about = {"k8s.object.kind": id.kind, "k8s.object.name": id.name, "k8s.namespace.name": id.namespace}
    return {name: value for name, value in about.items() if value}


def _fail(span: Span, error: Exception) -> None:
    """Say in a span how it failed, in text that is safe to show."""
    span.set_attribute("error.type", type(error).__name__)
    span.set_status(Status(StatusCode.ERROR, clipped(str(error), LONGEST_TEXT)))


def _trace_parent(live: Live) -> str:
    """The annotation `traceparent` of an object; empty if it has none, or one that is no text."""
    value = annotations_of(live.body).get(TRACE_PARENT)
    return value if isinstance(value, str) else ""
