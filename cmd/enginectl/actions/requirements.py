"""Requirements: the kinds that a cluster must serve before the engine writes anything to it."""

from collections.abc import Collection, Iterable

from engine.errors import ClusterError
from engine.ids import Kind
from engine.runtime.provider import Provider
from enginectl.base import terminal
from enginectl.base.exit_codes import MissingRequirement
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import ROOTS, Selection
from resources.ports.configuration import Configuration, required_kinds
from resources.registry import is_managed


async def require(wiring: Wiring, provider: Provider, selection: Selection, asked: Collection[str] = ()) -> None:
    """Check the cluster before the lease is taken. `asked` are the kinds of the roots in the user's manifests.

    Raises `MissingRequirement` if it serves none of our kinds, not those of the manifests, or not what the configuration needs.
    """
    managed = [kind for kind in ROOTS if is_managed(kind, wiring.configuration)]
    named = [kind for kind in managed if kind.name in asked]
    if message := await unserved_roots(provider, named) or await nothing_served(provider, managed):
        raise MissingRequirement(message)
    if message := await unserved_roots(provider, optional_roots(selection.roots)):
        terminal.note(message)
    await require_configured(wiring.configuration, provider)


def optional_roots(roots: Iterable[Kind]) -> list[Kind]:
    """The kinds of roots whose absence is worth a note although no option names them: those that sets refer to.

    Sets and graphs are installed independently of each other: a cluster with one of them does not miss the other.
    """
    return [kind for kind in roots if not kind.namespaced]


async def nothing_served(provider: Provider, roots: Iterable[Kind]) -> str:
    """What to do if the cluster serves none of these root kinds that are in namespaces: then there is nothing to manage.

    Empty if it serves any, or if that is not known.
    """
    required = [kind for kind in roots if kind.namespaced]
    try:
        served = [kind for kind in required if await provider.serves(kind)]
    except ClusterError:
        return ""  # The pass meets the same error, and reports it with more detail.
    return "" if served else await unserved_roots(provider, required)


async def unserved_roots(provider: Provider, roots: Iterable[Kind]) -> str:
    """What to do if the cluster does not serve these root kinds; empty if it does, or if that is not known."""
    try:
        unserved = [kind for kind in roots if not await provider.serves(kind)]
    except ClusterError:
        return ""  # The pass meets the same error, and reports it with more detail.
    names = ", ".join(f"{kind.name} ({kind.api_version})" for kind in unserved)
    return f"the cluster does not serve {names}: first `engine manifests crds | kubectl apply --server-side -f -`" if names else ""


async def require_configured(configuration: Configuration, provider: Provider) -> None:
    """Raise `MissingRequirement` if the configuration needs a kind that the cluster does not serve, or if that is not known."""
    try:
        message = await missing(configuration, provider)
    except ClusterError as error:
        message = f"failed to discover API resources: {error}"
    if message:
        raise MissingRequirement(message)


async def missing_if_known(configuration: Configuration, provider: Provider) -> str:
    """The message about a kind that is missing; empty if none is, or if that is not known: the pass reports such errors itself."""
    try:
        return await missing(configuration, provider)
    except ClusterError:
        return ""


async def missing(configuration: Configuration, provider: Provider) -> str:
    """The message about the first kind that the configuration needs and the cluster does not serve; empty if none is missing."""
    for kind, message in required_kinds(configuration):
        if not await provider.serves(kind):
            return message
    return ""
