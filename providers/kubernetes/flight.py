"""A single flight: however many ask for the same thing at once, it is done once, and all get its outcome."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Flight(Generic[T]):
    landed: anyio.Event = field(default_factory=anyio.Event)
    values: list[T] = field(default_factory=list)
    error: Exception | None = None


class SingleFlight(Generic[T]):
    """Runs one thing at a time for everybody who asks meanwhile."""

    __slots__ = ("_flight", "_run")

    def __init__(self, run: Callable[[], Awaitable[T]]) -> None:
        self._run = run
        self._flight: _Flight[T] | None = None

    async def __call__(self) -> T:
        """The outcome of the run that is under way, or of a new one. Raises what it raises."""
        while (flight := self._flight) is not None:
            await flight.landed.wait()
            if flight.error:
                raise flight.error
            if flight.values:
                return flight.values[0]
            # Whoever ran it was cancelled: the next one takes over.
        return await self._take_off()

    async def _take_off(self) -> T:
        flight = self._flight = _Flight[T]()
        try:
            value = await self._run()
        except Exception as error:
            flight.error = error
            raise
        else:
            flight.values.append(value)
            return value
        finally:
            self._flight = None
            flight.landed.set()
