"""Facts: what the parts of the driver see of the cluster. All of it can be read anew from the API."""

from collections.abc import Iterable

from engine.errors import ClusterError
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.body import Body, is_deleting, labels_of, uid_of
from providers.sandbox.actors.reflector import Reflection, reflect
from providers.sandbox.driver.kinds import CLIQUE, COMPUTE_DOMAIN, DAEMON_SET, DOMAIN, FABRIC, RESOURCE_SLICE
from resources.kinds import NODE, POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE


class NotYet(ClusterError):
    """What has to be so before the work can go on is not so; it is tried again, ever more slowly."""


class Facts:
    """One reflection a kind, shared by all parts. What is the driver's own is looked for in its namespace alone."""

    def __init__(self, namespace: str) -> None:
        self.domains = Reflection(COMPUTE_DOMAIN)
        self.cliques = Reflection(CLIQUE, namespace=namespace)
        self.daemon_sets = Reflection(DAEMON_SET, namespace=namespace, labels=DOMAIN)
        self.templates = Reflection(RESOURCE_CLAIM_TEMPLATE, labels=DOMAIN)
        self.daemons = Reflection(POD, namespace=namespace, labels=DOMAIN)
        """The pods of the driver's DaemonSets."""
        self.nodes = Reflection(NODE)
        self.claims = Reflection(RESOURCE_CLAIM)
        self.slices = Reflection(RESOURCE_SLICE)

    @property
    def all(self) -> tuple[Reflection, ...]:
        """Every one of them."""
        return (
            self.domains,
            self.cliques,
            self.daemon_sets,
            self.templates,
            self.daemons,
            self.nodes,
            self.claims,
            self.slices,
        )

    async def follow(self, client: Client, clock: Clock) -> None:
        """Keep them current, for ever."""
        await reflect(client, clock, *self.all)

    async def synced(self) -> None:
        """Return once everything has been listed."""
        for seen in self.all:
            await seen.synced.wait()

    def domain(self, uid: str) -> Body | None:
        """The domain of that uid, whatever its fate."""
        return next((domain for domain in self.domains.objects.values() if uid_of(domain) == uid), None)

    def daemons_of(self, uid: str) -> list[Body]:
        """The pods of the domain's daemons that are there, leaving ones included."""
        return of_domain(self.daemons, uid)

    def is_in(self, uid: str, node: str) -> Body | None:
        """The entry of the node's daemon in the domain: in the clique of the node, or, where it has no fabric, in the domain's status."""
        found = self.nodes.get("", node)
        fabric = labels_of(found).get(FABRIC, "") if found else ""
        if fabric:
            entries = [one for clique in of_domain(self.cliques, uid) for one in daemons_in(clique)]
            return next((one for one in entries if (one["nodeName"], one["cliqueID"]) == (node, fabric)), None)
        domain = self.domain(uid) or {}
        return next((one for one in (domain.get("status") or {}).get("nodes") or () if one and one["name"] == node), None)


def of_domain(seen: Reflection, uid: str) -> list[Body]:
    """The objects that bear the uid of the domain as their label."""
    return [body for body in seen.objects.values() if labels_of(body).get(DOMAIN) == uid]


def daemons_in(clique: Body) -> list[Body]:
    """The daemons that have joined the clique; holes that somebody has left in its list are none."""
    return [one for one in clique.get("daemons") or () if one]


def living(bodies: Iterable[Body]) -> list[Body]:
    """Those that are not being deleted."""
    return [body for body in bodies if not is_deleting(body)]
