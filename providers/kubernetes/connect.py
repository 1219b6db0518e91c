"""Connect: a client for the cluster that the command line, the environment or the pod selects."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from engine.runtime.clock import Clock
from engine.runtime.optional_imports import without, without_authorities
from providers.kubernetes.kubeconfig import Source
from providers.kubernetes.request_observer import RequestObserver

# kr8s imports httpx, which imports its own command line if it can, and with it click, pygments and rich: that takes longer than httpx
# itself. aiohttp reads the system's authorities twice for default settings; a login has its own.
with without("click"), without("pygments"), without_authorities():
    from providers.kubernetes.api import DirectApi
    from providers.kubernetes.client import KubernetesClient
    from providers.kubernetes.connection_pool import DEFAULT_REQUEST_LIMITS, RequestLimits


@asynccontextmanager
async def connected(
    source: Source,
    clock: Clock,
    *,
    limits: RequestLimits = DEFAULT_REQUEST_LIMITS,
    field_manager: str = "engine",
    observer: RequestObserver | None = None,
) -> AsyncGenerator[KubernetesClient]:
    """A client for the cluster of that source, closed at the end of the block.

    Reads the credentials and sends no request. `observer` is notified of every request. Raises `InputError`, which says what
    to do, when no cluster is configured or the kubeconfig is invalid.
    """
    api = DirectApi(source, clock, limits, observer)
    try:
        yield KubernetesClient(await api, field_manager)
    finally:
        await api.aclose()
