"""Process: a sandbox cluster, API server and actors, that runs while a block runs."""

import secrets
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from grove_sandbox.actors.nodes import node_names
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.api.request import Request
from grove_sandbox.api.verbs import Api
from grove_sandbox.api.webhooks import Webhooks, install
from grove_sandbox.clients import kubeconfig
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.http.access import Access
from grove_sandbox.http.backend import Backend
from grove_sandbox.http.faults import FaultInjector
from grove_sandbox.http.server import listening
from grove_sandbox.http.tls import LOOPBACK, loopback_identity
from grove_sandbox.installation.addons import addon_objects
from grove_sandbox.installation.installation import controller, installation, simulated_classes
from grove_sandbox.product import Clock, Kind, crds, kinds
from grove_sandbox.registry import ACTORS, run_actors

ADMINISTRATOR = "sandbox-admin"
OPERATOR = "operator"
"""The kubeconfig context for the engine, if managed objects are protected from other users."""
ACCOUNT = "system:serviceaccount:default:grove-operator"
"""The user of that context, unless the configuration names one."""
GROVE_GROUPS = frozenset({kinds.GROVE_GROUP, kinds.SCHEDULER_GROUP})
DEFAULT_OPTIONS = ActorOptions()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A running cluster: its address, the credentials, and what tests control in it."""

    url: str
    token: str = field(repr=False)
    authority: bytes
    """The certificate authority to trust, in PEM."""
    kubeconfig: Path
    backend: Backend

    @property
    def api(self) -> Api:
        """The API, without HTTP."""
        return self.backend.api

    @property
    def clock(self) -> Clock:
        """The clock of the cluster."""
        return self.backend.clock

    @property
    def access(self) -> Access:
        """Tokens and permissions."""
        return self.backend.access

    @property
    def faults(self) -> FaultInjector:
        """Faults that the server injects on request."""
        return self.backend.faults

    def client(self, manager: str = "engine") -> InProcessClient:
        """A client of the API without HTTP, under that field manager."""
        return InProcessClient(self.api, manager)


@asynccontextmanager
async def sandbox(
    clock: Clock,
    folder: Path,
    *,
    port: int = 0,
    actors: Collection[str] = tuple(ACTORS),
    options: ActorOptions = DEFAULT_OPTIONS,
    definitions: Collection[Mapping[str, Any]] | None = None,
    addons: Collection[str] = (),
    grove: bool = True,
    webhooks: Webhooks | None = None,
    api: Api | None = None,
) -> AsyncIterator[Sandbox]:
    """A cluster on a loopback port, with its kubeconfig in `folder`, until the block ends.

    It serves our own kinds, and the DRA driver for ComputeDomains is installed (it does nothing without its actor); or, with
    `definitions`, it serves the kinds of those instead and the driver is not installed. Without `grove`, Grove's own kinds are not among
    those that it serves. `addons` are installed as well: see `ADDONS`. With `webhooks`, our webhooks admit every write. `api`: what
    `installed_api` has returned for these definitions, add-ons and options, with that clock; it is changed.
    Raises `OSError` if the port is taken, `KeyError` for an unknown add-on.
    """
    api = api or installed_api(clock, options, definitions, addons, grove=grove)
    backend = Backend(api, clock)
    logins = {kubeconfig.CONTEXT: _login(backend, ADMINISTRATOR)}
    if webhooks is not None:
        protection = webhooks.protection
        if protection.enabled:
            protection = replace(protection, operator=protection.operator or ACCOUNT)
            logins[OPERATOR] = _login(backend, protection.operator)
        install(backend.api, replace(webhooks, protection=protection))
    identity = loopback_identity()
    complete = replace(options, certificate_authority=identity.authority.decode())
    async with listening(backend, identity.context(), port=port) as bound_port, _running(backend, actors, complete):
        url, path = f"https://{LOOPBACK}:{bound_port}", folder / "kubeconfig"
        kubeconfig.write(path, server=url, authority=identity.authority, logins=logins)
        yield Sandbox(url, logins[kubeconfig.CONTEXT].token, identity.authority, path, backend)


def installed_api(
    clock: Clock,
    options: ActorOptions = DEFAULT_OPTIONS,
    definitions: Collection[Mapping[str, Any]] | None = None,
    addons: Collection[str] = (),
    *,
    grove: bool = True,
) -> Api:
    """The API of a new cluster in which that is installed: see `sandbox`. Raises `KeyError` for an unknown add-on."""
    api = Api(clock, gangs=options.gangs)
    if definitions is None:
        _define(api, [each for each in _ours() if grove or each["spec"]["group"] not in GROVE_GROUPS])
        _install_driver(api, options)
    else:
        _define(api, definitions)
    _install(api, addon_objects(addons))
    return api


def _login(backend: Backend, user: str) -> kubeconfig.Login:
    """A new token for a user, accepted from now on."""
    login = kubeconfig.Login(user, secrets.token_urlsafe(32))
    backend.access.grant(login.token, user)
    return login


@asynccontextmanager
async def _running(backend: Backend, actors: Collection[str], options: ActorOptions) -> AsyncIterator[None]:
    """Run the actors while the block runs. Exceptions of the block are raised as they are, not in a group."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        for name in actors:
            # Each has a field manager of its own, as the components of a real cluster have.
            tasks.start_soon(run_actors, InProcessClient(backend.api, f"sandbox-{name}"), backend.clock, (name,), options)
        try:
            yield
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@cache
def _ours() -> tuple[Mapping[str, Any], ...]:
    """The definitions of our own kinds; cached, because generating them takes longer than all the rest of a start."""
    return crds()


def _define(api: Api, definitions: Collection[Mapping[str, Any]]) -> None:
    kind = api.catalogue.find(kinds.CRD.group, kinds.CRD.version, kinds.CRD.plural)
    for definition in definitions:
        api.create(Request(kind, manager="sandbox"), definition)


def _install_driver(api: Api, options: ActorOptions) -> None:
    """The driver, the ResourceSlices of the nodes to come, and its controller's Deployment, which the driver actor reports as available."""
    namespace = options.driver.namespace
    _install(api, (*installation(namespace, node_names(options)), *simulated_classes(), (kinds.DEPLOYMENT, controller(namespace))))


def _install(api: Api, objects: Iterable[tuple[Kind, Mapping[str, Any]]]) -> None:
    for kind, body in objects:
        served = api.catalogue.find(kind.group, kind.version, kind.plural)
        api.create(Request(served, body["metadata"].get("namespace", ""), manager="sandbox"), body)
