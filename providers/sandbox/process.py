"""Process: a whole sandbox cluster, API server and actors, up for as long as a block lasts."""

import secrets
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import anyio

from engine.runtime.clock import Clock
from providers.sandbox.actors.nodes import node_names
from providers.sandbox.actors.settings import Settings
from providers.sandbox.api.request import Request
from providers.sandbox.api.verbs import Api
from providers.sandbox.api.webhooks import Rules, install
from providers.sandbox.clients import kubeconfig
from providers.sandbox.clients.inprocess import InProcessClient
from providers.sandbox.http.access import Access
from providers.sandbox.http.faults import Faults
from providers.sandbox.http.server import listening
from providers.sandbox.http.tls import LOOPBACK, loopback_identity
from providers.sandbox.http.world import World
from providers.sandbox.installation.installation import controller, installation
from providers.sandbox.registry import ACTORS, run_actors
from resources.base.kinds import CRD, DEPLOYMENT
from resources.schema.crds import crds

ADMINISTRATOR = "sandbox-admin"
OPERATOR = "operator"
"""The context for the engine itself, where managed objects are protected from everybody else."""
ACCOUNT = "system:serviceaccount:default:grove-operator"
"""Who that is, unless the configuration says."""
USUAL = Settings()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A cluster that is up: where it is, how to get in, and the levers that tests pull."""

    url: str
    token: str = field(repr=False)
    authority: bytes
    """The certificate authority to trust, in PEM."""
    kubeconfig: Path
    world: World

    @property
    def api(self) -> Api:
        """The API itself, without HTTP."""
        return self.world.api

    @property
    def clock(self) -> Clock:
        """The time that passes in it."""
        return self.world.clock

    @property
    def access(self) -> Access:
        """Tokens and denials."""
        return self.world.access

    @property
    def faults(self) -> Faults:
        """What goes wrong on request."""
        return self.world.faults

    def client(self, manager: str = "engine") -> InProcessClient:
        """A client that goes straight to the API, without HTTP."""
        return InProcessClient(self.api, manager)


@asynccontextmanager
async def sandbox(
    clock: Clock,
    folder: Path,
    *,
    port: int = 0,
    actors: Collection[str] = tuple(ACTORS),
    settings: Settings = USUAL,
    definitions: Collection[Mapping[str, Any]] | None = None,
    rules: Rules | None = None,
) -> AsyncIterator[Sandbox]:
    """A cluster on a loopback port, its kubeconfig in `folder`; our own kinds are served from the start (or those `definitions`), and
    the DRA driver for ComputeDomains is installed (unless definitions are given): without its actor it is merely down.

    With `rules`, our webhooks stand before every write. It goes away with the block: watches end, connections close, actors are called
    off. Raises `OSError` when the port is taken.
    """
    world = World(Api(clock), clock)
    logins = {kubeconfig.CONTEXT: _login(world, ADMINISTRATOR)}
    if rules is not None:
        protection = rules.protection
        if protection.enabled:
            protection = replace(protection, operator=protection.operator or ACCOUNT)
            logins[OPERATOR] = _login(world, protection.operator)
        install(world.api, replace(rules, protection=protection))
    identity = loopback_identity()
    if definitions is None:
        _define(world.api, _ours())
        _install(world.api, settings)
    else:
        _define(world.api, definitions)
    known = replace(settings, certificate_authority=identity.authority.decode())
    async with listening(world, identity.context(), port=port) as bound, _playing(world, actors, known):
        url, path = f"https://{LOOPBACK}:{bound}", folder / "kubeconfig"
        kubeconfig.write(path, server=url, authority=identity.authority, logins=logins)
        yield Sandbox(url, logins[kubeconfig.CONTEXT].token, identity.authority, path, world)


def _login(world: World, user: str) -> kubeconfig.Login:
    """A token for somebody, known from now on."""
    login = kubeconfig.Login(user, secrets.token_urlsafe(32))
    world.access.grant(login.token, user)
    return login


@asynccontextmanager
async def _playing(world: World, actors: Collection[str], settings: Settings) -> AsyncIterator[None]:
    """The actors, at work while the block runs. What the block raises is raised as it is, not in a group."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        for name in actors:
            # Each writes under a name of its own, as the parts of a real cluster do.
            tasks.start_soon(run_actors, InProcessClient(world.api, f"sandbox-{name}"), world.clock, (name,), settings)
        try:
            yield
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@cache
def _ours() -> tuple[Mapping[str, Any], ...]:
    """The definitions of our own kinds; they take longer to generate than all the rest of a start."""
    return crds()


def _define(api: Api, definitions: Collection[Mapping[str, Any]]) -> None:
    kind = api.catalogue.find(CRD.group, CRD.version, CRD.plural)
    for definition in definitions:
        api.create(Request(kind, manager="sandbox"), definition)


def _install(api: Api, settings: Settings) -> None:
    """The driver, the devices of the nodes that there will be, and its controller, which is ready when somebody plays it."""
    namespace = settings.driver.namespace
    for kind, body in (*installation(namespace, node_names(settings)), (DEPLOYMENT, controller(namespace))):
        served = api.catalogue.find(kind.group, kind.version, kind.plural)
        api.create(Request(served, body["metadata"].get("namespace", ""), manager="sandbox"), body)
