"""Watch: a stream of events of one collection, from a revision on."""

from collections.abc import AsyncIterator
from typing import Self

from providers.sandbox.request import WatchEvent


class Watch:
    """An asynchronous iterator of `WatchEvent`; ends after its timeout or when its kind is no longer served."""

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        return self

    async def __anext__(self) -> WatchEvent:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        raise NotImplementedError
