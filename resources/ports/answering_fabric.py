"""AnsweringFabric: an optional capability of a fabric: what its driver does, as forecasts assume."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from engine.forecast.store import ForecastStore
from engine.ids import ResourceId
from engine.observed import Live


class ModelledDriver(Protocol):
    """The driver of a fabric in one forecast. It may have a state."""

    def answer(self, store: ForecastStore, changed: Sequence[ResourceId], gone: Sequence[str]) -> bool:
        """Let the driver take one step. `changed` are the objects that have changed since the last one, `gone` the uids that have gone.

        Returns whether it has changed anything.
        """
        ...

    def holds(self, live: Live) -> bool:
        """Whether an object that is being deleted is the driver's to release: nobody else removes its finalizers."""
        ...


@runtime_checkable
class AnsweringFabric(Protocol):
    """A fabric whose driver's answers are known."""

    def modelled_driver(self) -> ModelledDriver:
        """A driver for one forecast."""
        ...
