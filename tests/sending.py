"""Sending: the operations of plans, sent to their end."""

from collections.abc import Callable, Iterable

from engine.operation import Result
from engine.plan import Plan
from engine.runtime.apply import BEGINNING_TIME, GRACE, Sending, ignore_result
from engine.runtime.call_limit import MOST, CallLimit
from engine.runtime.calls import always
from engine.runtime.clock import Clock
from engine.runtime.provider import Provider


async def apply(
    plans: Iterable[Plan],
    provider: Provider,
    clock: Clock,
    *,
    concurrency: int = MOST,
    call_limit: CallLimit | None = None,
    grace: float = GRACE,
    begin_for: float = BEGINNING_TIME,
    on_result: Callable[[Result], None] = ignore_result,
    may_write: Callable[[], bool] = always,
) -> list[Result]:
    """Send all operations of the plans (`Sending`). Returns a result for each but those that are left.

    On cancellation no operation is started, calls in progress have `grace` seconds to end, and `on_result` receives the result of every
    operation that was started.
    """
    sending = Sending(provider, clock, concurrency=concurrency, call_limit=call_limit, on_result=on_result, may_write=may_write)
    sending.add(plans, begin_for)
    await sending.finish(grace)
    return [result for _, result in sending.take_results()]
