"""SingleFlight: concurrent callers of an operation share one run of it and its outcome."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from msgspec import Struct, field

T = TypeVar("T")


class _Run(Struct, Generic[T], eq=False):
    ended: anyio.Event = field(default_factory=anyio.Event)
    values: list[T] = field(default_factory=list)
    error: Exception | None = None


class SingleFlight(Generic[T]):
    """Calls an async function at most once at a time; callers that come meanwhile wait for its outcome."""

    __slots__ = ("_function", "_run")

    def __init__(self, function: Callable[[], Awaitable[T]]) -> None:
        self._function = function
        self._run: _Run[T] | None = None

    async def __call__(self) -> T:
        """The outcome of the run in progress, or of a new one. Raises what the function raises."""
        while (run := self._run) is not None:
            await run.ended.wait()
            if run.error:
                raise run.error
            if run.values:
                return run.values[0]
            # The caller that ran the function was cancelled: another one takes over.
        return await self._start()

    async def _start(self) -> T:
        run = self._run = _Run[T]()
        try:
            value = await self._function()
        except Exception as error:
            run.error = error
            raise
        else:
            run.values.append(value)
            return value
        finally:
            self._run = None
            run.ended.set()
