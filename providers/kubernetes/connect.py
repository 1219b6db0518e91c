"""Connect: from what the command line, the environment or the pod says to a client that is logged in."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from engine.runtime.clock import Clock
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.kubeconfig import Source
from providers.kubernetes.line import USUAL, Limits
from providers.kubernetes.session import DirectApi


@asynccontextmanager
async def connected(
    source: Source, clock: Clock, *, limits: Limits = USUAL, field_manager: str = "engine"
) -> AsyncGenerator[KubernetesClient]:
    """A client for the cluster that the source leads to, closed on leaving.

    Credentials are read here; the server is asked nothing yet. Raises `InputError` when there is no cluster to be found, or the
    kubeconfig cannot be used, in one line that says what to do.
    """
    api = DirectApi(source, clock, limits)
    try:
        yield KubernetesClient(await api, field_manager)
    finally:
        await api.aclose()
