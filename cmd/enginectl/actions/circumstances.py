"""Circumstances: the engine, the cluster and the configuration, by which a saved plan recognises where it may be applied."""

from typing import Final

from engine.approval.saved_plan import Circumstances
from engine.canonical import digest
from engine.runtime.provider import Provider
from engine.version import VERSION
from enginectl.wiring.configuration import Wiring
from resources.base import kinds

CLUSTER: Final = kinds.NAMESPACE.id("", "kube-system")
"""The object whose uid stands for the cluster: every cluster has one, and it is never deleted."""
NOT_PLANNED_WITH: Final = frozenset(
    "api_version kind runtime_client_connection leader_election server debugging controllers log_level log_format authorizer".split()
)
"""The sections of the configuration that are about processes of the engine, and not about what they plan."""


async def cluster_identity(provider: Provider) -> str:
    """The uid of the namespace kube-system. Raises `Forbidden` if we may not read it."""
    live = await provider.get(CLUSTER)
    return live.uid if live is not None else ""


def circumstances(wiring: Wiring, cluster: str) -> Circumstances:
    """Where this command runs."""
    return Circumstances(VERSION, cluster, settings_digests(wiring))


def settings_digests(wiring: Wiring) -> dict[str, str]:
    """Section of the configuration -> its digest, for everything that plans depend on."""
    sections = wiring.settings.model_dump(mode="json")
    chosen = {name: value for name, value in sections.items() if name not in NOT_PLANNED_WITH}
    chosen["init_container"] = wiring.configuration.waiter_image
    chosen["fabrics"] = [fabric.kind.key for fabric in wiring.configuration.fabrics]
    chosen["allow_replace"] = wiring.configuration.dynamo.allow_replace
    chosen |= {"take_over": True} if wiring.configuration.take_over else {}
    return {name: digest(value) for name, value in chosen.items()}
