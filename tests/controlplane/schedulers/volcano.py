"""Volcano's kinds on a control plane. Volcano itself cannot be built from its module; the sandbox's scheduler can take its place."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from engine.runtime.clock import SystemClock
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import run_actors
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from resources.base.kinds import VOLCANO_QUEUE
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.schedulers.program import create, install_crds

QUEUES = ("root", "default")
"""The queues that Volcano creates when it starts."""


def install_volcano_crds(plane: ControlPlane) -> None:
    """Install Volcano's CRDs and its own queues. Raises `Missing` and `Broken`."""
    install_crds(plane, "volcano")
    for name in QUEUES:
        body = {"apiVersion": VOLCANO_QUEUE.api_version, "kind": VOLCANO_QUEUE.name, "metadata": {"name": name}, "spec": {"weight": 1}}
        create(plane, VOLCANO_QUEUE, body)


@asynccontextmanager
async def volcano_substitute(plane: ControlPlane) -> AsyncIterator[None]:
    """Run the sandbox's scheduler while the block runs: it places pods whose scheduler is `volcano`, by Volcano's PodGroups and queues."""
    clock, options = SystemClock(), ActorOptions(schedulers=frozenset({"volcano"}))
    async with connected(Source(str(plane.kubeconfig())), clock, field_manager="sandbox") as client, anyio.create_task_group() as tasks:
        tasks.start_soon(run_actors, client, clock, ["scheduler"], options)
        yield
        tasks.cancel_scope.cancel()
