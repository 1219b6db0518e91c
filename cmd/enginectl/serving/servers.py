"""Servers: which addresses `engine run` serves, and what on each of them."""

from collections.abc import Iterator
from ssl import SSLContext

from msgspec import Struct, field

from enginectl.serving.admission import REVIEW_LIMITS
from enginectl.wiring.configuration import pod_namespace
from providers.http.address import Address
from providers.http.message import Routes
from resources.settings import Settings


class Served(Struct, frozen=True):
    """The routes of each address of the configuration."""

    webhooks: Routes = field(default_factory=dict)
    probes: Routes = field(default_factory=dict)
    metrics: Routes = field(default_factory=dict)


def is_serving(settings: Settings) -> bool:
    """Whether anything is served: in a pod, or if the configuration file has a section `server`."""
    return bool(pod_namespace()) or "server" in settings.model_fields_set


def addresses(settings: Settings, served: Served, context: SSLContext | None) -> tuple[Address, ...]:
    """The addresses to listen on. A port 0 disables one. `context` is for the webhooks; None: they are not served."""
    return tuple(_enabled(settings, served, context)) if is_serving(settings) else ()


def _enabled(settings: Settings, served: Served, context: SSLContext | None) -> Iterator[Address]:
    server = settings.server
    if server.webhooks.port and context is not None:
        yield Address("webhooks", server.webhooks.bind_address, server.webhooks.port, served.webhooks, context, REVIEW_LIMITS)
    if server.health_probes.port:
        yield Address("health probes", server.health_probes.bind_address, server.health_probes.port, served.probes)
    if server.metrics.port:
        yield Address("metrics", server.metrics.bind_address, server.metrics.port, served.metrics)
