"""Backend: what the HTTP server works on: the in-memory API, its access rules, injected faults, open watches and OpenAPI documents."""

from dataclasses import dataclass, field

import anyio

from engine.runtime.clock import Clock
from providers.sandbox.api.verbs import Api
from providers.sandbox.http.access import Access
from providers.sandbox.http.faults import FaultInjector
from providers.sandbox.http.openapi import OpenApi


@dataclass(frozen=True, slots=True)
class Backend:
    """One sandbox cluster behind its HTTP server."""

    api: Api
    clock: Clock
    access: Access = field(default_factory=Access)
    faults: FaultInjector = field(default_factory=FaultInjector)
    streams: set[anyio.CancelScope] = field(default_factory=set)
    """The open watches; cancelling one ends its response in order."""
    openapi: OpenApi = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "openapi", OpenApi(self.api.catalogue))

    def close_watches(self) -> None:
        """End every open watch, as a server does that shuts down."""
        for stream in self.streams:
            stream.cancel()
