"""A cluster in memory for tests, served from a thread of its own: the controller under test can be anything that has a kubeconfig."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from msgspec.structs import replace

from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.clock import VirtualClock
from grove_sandbox.process import Sandbox, sandbox
from grove_sandbox.product import SystemClock
from grove_sandbox.registry import ACTORS

QUICK = ActorOptions(termination=0.0)
"""Pods that are deleted end at once."""


@dataclass(frozen=True, slots=True)
class ClusterInMemory:
    """A running cluster, and what a test does to it from its own thread."""

    sandbox: Sandbox
    """The cluster in its thread: API without HTTP, faults, tokens. Reach it through `portal`."""
    portal: BlockingPortal
    clock: VirtualClock | None

    @property
    def url(self) -> str:
        """The address of the API server."""
        return self.sandbox.url

    @property
    def token(self) -> str:
        """The bearer token of an administrator."""
        return self.sandbox.token

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig of the administrator, for kubectl and any client library."""
        return self.sandbox.kubeconfig

    def advance(self, seconds: float) -> None:
        """Let that much virtual time pass in the cluster. Raises `RuntimeError` if its time is real."""
        if self.clock is None:
            raise RuntimeError("the time of this cluster is real: serve it with virtual_time=True")
        self.portal.call(self.clock.advance, seconds)


@contextmanager
def serve(
    *,
    nodes: int = 1,
    definitions: Collection[Mapping[str, Any]] = (),
    actors: Collection[str] = tuple(ACTORS),
    options: ActorOptions = QUICK,
    virtual_time: bool = False,
) -> Iterator[ClusterInMemory]:
    """A cluster on a loopback port while the block runs, with these simulated nodes and CustomResourceDefinitions.

    With `virtual_time`, time passes in it only by `advance`: pods start, leases expire and grace periods end when the test says so.
    """
    with start_blocking_portal() as portal, TemporaryDirectory(prefix="grove-sandbox-") as folder:
        virtual = VirtualClock() if virtual_time else None
        running = sandbox(
            virtual or SystemClock(), Path(folder), actors=actors, options=replace(options, nodes=nodes), definitions=definitions
        )
        with portal.wrap_async_context_manager(running) as box:
            yield ClusterInMemory(box, portal, virtual)
