"""Backend: what the HTTP server works on: the in-memory API, its access rules, injected faults, open watches and OpenAPI documents."""

from dataclasses import dataclass, field
from functools import cached_property

import anyio

from grove_sandbox.api.verbs import Api
from grove_sandbox.http.access import Access
from grove_sandbox.http.faults import FaultInjector
from grove_sandbox.http.openapi import OpenApi
from grove_sandbox.product import Clock


@dataclass(frozen=True)
class Backend:
    """One sandbox cluster behind its HTTP server."""

    api: Api
    clock: Clock
    access: Access = field(default_factory=Access)
    faults: FaultInjector = field(default_factory=FaultInjector)
    streams: set[anyio.CancelScope] = field(default_factory=set)
    """The open watches; cancelling one ends its response in order."""

    @cached_property
    def openapi(self) -> OpenApi:
        """The OpenAPI documents of the kinds that it serves."""
        return OpenApi(self.api.catalogue)

    def close_watches(self) -> None:
        """End every open watch, as a server does that shuts down."""
        for stream in self.streams:
            stream.cancel()
