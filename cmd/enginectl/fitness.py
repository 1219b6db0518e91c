"""Fitness: whether a cluster has what must be there before anything is started, as things are configured."""

from engine.errors import ClusterError
from engine.runtime.provider import Provider
from enginectl.running import Unfit
from enginectl.wiring import Wiring
from resources.install.preflight import demands
from resources.ports.configuration import Configuration


async def missing(setup: Configuration, provider: Provider) -> str:
    """What is not there and must be, in words; empty where all is well. Raises `ClusterError` where nobody can tell."""
    for kind, message in demands(setup.fabrics):
        if not await provider.serves(kind):
            return message
    return ""


async def require(wired: Wiring, provider: Provider) -> None:
    """Raise `Unfit` where something is missing: before the lease is asked for, and before anything is written."""
    try:
        told = await missing(wired.setup, provider)
    except ClusterError as error:
        told = f"failed to discover API resources: {error}"
    if told:
        raise Unfit(told)


async def note(setup: Configuration, provider: Provider) -> str:
    """The same for those who only look: something to mention. What ails a server that does not answer, the look itself says better."""
    try:
        return await missing(setup, provider)
    except ClusterError:
        return ""
