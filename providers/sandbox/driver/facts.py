"""Facts: what the parts of the driver see of the cluster. All of it can be read anew from the API."""

from collections.abc import Iterable

from engine.errors import ClusterError
from engine.ids import Kind
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.body import Body, Key, is_deleting, labels_of, uid_of
from providers.sandbox.actors.reflector import Reflection, reflect
from providers.sandbox.installation.kinds import CLIQUE, COMPUTE_DOMAIN, DAEMON_SET, DOMAIN, FABRIC, RESOURCE_SLICE
from resources.base.kinds import NODE, POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE


class NotYet(ClusterError):
    """What has to be so before the work can go on is not so; it is tried again, ever more slowly."""


class OfDomains(Reflection):
    """Objects that bear the uid of a domain as their label, by that uid."""

    def __init__(self, kind: Kind, *, namespace: str = "", labels: str = "") -> None:
        super().__init__(kind, self._sort_in, namespace=namespace, labels=labels)
        self._by_domain: dict[str, dict[Key, Body]] = {}

    def _sort_in(self, key: Key, old: Body | None, new: Body | None) -> None:
        before, after = (labels_of(body).get(DOMAIN) if body is not None else None for body in (old, new))
        if before is not None and before != after:
            self._by_domain[before].pop(key)
            if not self._by_domain[before]:
                del self._by_domain[before]
        if new is not None and after is not None:
            self._by_domain.setdefault(after, {})[key] = new

    def of(self, uid: str) -> list[Body]:
        """Those of the domain."""
        return list(self._by_domain.get(uid, {}).values())

    @property
    def uids(self) -> list[str]:
        """The domains that have any."""
        return list(self._by_domain)


class Facts:
    """One reflection a kind, shared by all parts. What is the driver's own is looked for in its namespace alone."""

    def __init__(self, namespace: str) -> None:
        self.domains = Reflection(COMPUTE_DOMAIN)
        self.cliques = OfDomains(CLIQUE, namespace=namespace)
        self.daemon_sets = OfDomains(DAEMON_SET, namespace=namespace, labels=DOMAIN)
        self.templates = OfDomains(RESOURCE_CLAIM_TEMPLATE, labels=DOMAIN)
        self.daemons = OfDomains(POD, namespace=namespace, labels=DOMAIN)
        """The pods of the driver's DaemonSets."""
        self.nodes = OfDomains(NODE)
        self.claims = Reflection(RESOURCE_CLAIM)
        self.slices = Reflection(RESOURCE_SLICE)
        self._by_uid: dict[str, Key] = {}
        self.domains.tell(self._saw_domain)

    def _saw_domain(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None:
            self._by_uid.pop(uid_of(old), None)
        if new is not None:
            self._by_uid[uid_of(new)] = key

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
        return self.domains.get(*self._by_uid[uid]) if uid in self._by_uid else None

    def is_in(self, uid: str, node: str) -> Body | None:
        """The entry of the node's daemon in the domain: in the clique of the node, or, where it has no fabric, in the domain's status."""
        found = self.nodes.get("", node)
        fabric = labels_of(found).get(FABRIC, "") if found else ""
        if fabric:
            entries = [one for clique in self.cliques.of(uid) for one in daemons_in(clique)]
            return next((one for one in entries if (one["nodeName"], one["cliqueID"]) == (node, fabric)), None)
        domain = self.domain(uid) or {}
        return next((one for one in (domain.get("status") or {}).get("nodes") or () if one and one["name"] == node), None)


def daemons_in(clique: Body) -> list[Body]:
    """The daemons that have joined the clique; holes that somebody has left in its list are none."""
    return [one for one in clique.get("daemons") or () if one]


def living(bodies: Iterable[Body]) -> list[Body]:
    """Those that are not being deleted."""
    return [body for body in bodies if not is_deleting(body)]
