"""Backend: what the HTTP server works on: the in-memory API, its access rules, injected faults, open watches and OpenAPI documents."""

from dataclasses import dataclass, field

import anyio

from grove_sandbox.api.verbs import Api
from grove_sandbox.http.access import Access
from grove_sandbox.http.faults import FaultInjector
from grove_sandbox.http.openapi import OpenApi
from grove_sandbox.product import Clock


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
