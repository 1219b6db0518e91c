"""World: the in-memory API with everything that its HTTP face needs beside it."""

from dataclasses import dataclass, field

import anyio

from engine.runtime.clock import Clock
from providers.sandbox.api.verbs import Api
from providers.sandbox.http.access import Access
from providers.sandbox.http.faults import Faults
from providers.sandbox.http.openapi import OpenApi


@dataclass(frozen=True, slots=True)
class World:
    """One sandbox cluster as seen from the network."""

    api: Api
    clock: Clock
    access: Access = field(default_factory=Access)
    faults: Faults = field(default_factory=Faults)
    streams: set[anyio.CancelScope] = field(default_factory=set)
    """The watches that are open; cancelling one ends its stream in good order."""
    openapi: OpenApi = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "openapi", OpenApi(self.api.catalogue))

    def hang_up(self) -> None:
        """End every open watch, as a server does that goes away."""
        for stream in self.streams:
            stream.cancel()
