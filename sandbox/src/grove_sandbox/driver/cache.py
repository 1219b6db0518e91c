"""Cache: the stores that all parts of the driver share, and lookups of objects by the uid of their domain."""

from collections.abc import Iterable

from grove_sandbox.actors.body import Body, Key, is_deleting, labels_of, uid_of
from grove_sandbox.actors.store import InformerStore, run_informers
from grove_sandbox.product import Client, Clock, ClusterError, Kind, kinds, nvidia


class RetryLater(ClusterError):
    """A precondition is not met; the key is retried with back-off."""


class DomainStore(InformerStore):
    """Objects that carry the uid of a domain as a label, also by that uid."""

    def __init__(self, kind: Kind, *, namespace: str = "", labels: str = "") -> None:
        super().__init__(kind, self._index, namespace=namespace, labels=labels)
        self._by_domain: dict[str, dict[Key, Body]] = {}

    def _index(self, key: Key, old: Body | None, new: Body | None) -> None:
        before, after = (labels_of(body).get(nvidia.DOMAIN_LABEL) if body is not None else None for body in (old, new))
        if before is not None and before != after:
            self._by_domain[before].pop(key)
            if not self._by_domain[before]:
                del self._by_domain[before]
        if new is not None and after is not None:
            self._by_domain.setdefault(after, {})[key] = new

    def of(self, uid: str) -> list[Body]:
        """The objects of a domain."""
        return list(self._by_domain.get(uid, {}).values())

    def the_one(self, uid: str, target: str = "") -> Body | None:
        """The only object of a domain for that target. Raises `RetryLater` if there are several."""
        matches = [body for body in self.of(uid) if labels_of(body).get(nvidia.TARGET_LABEL, "") == target]
        if len(matches) > 1:
            raise RetryLater(f"more than one {self.kind.name} found with same ComputeDomain UID")
        return matches[0] if matches else None

    @property
    def uids(self) -> list[str]:
        """The domains that have objects."""
        return list(self._by_domain)


class Cache:
    """One store for each kind. The driver's own objects are looked for in its namespace only."""

    def __init__(self, namespace: str) -> None:
        self.domains = InformerStore(nvidia.COMPUTE_DOMAIN)
        self.cliques = DomainStore(nvidia.COMPUTE_DOMAIN_CLIQUE, namespace=namespace)
        self.daemon_sets = DomainStore(kinds.DAEMON_SET, namespace=namespace, labels=nvidia.DOMAIN_LABEL)
        self.templates = DomainStore(kinds.RESOURCE_CLAIM_TEMPLATE, labels=nvidia.DOMAIN_LABEL)
        self.daemons = DomainStore(kinds.POD, namespace=namespace, labels=nvidia.DOMAIN_LABEL)
        """The pods of the driver's DaemonSets."""
        self.nodes = DomainStore(kinds.NODE)
        self.claims = InformerStore(kinds.RESOURCE_CLAIM)
        self.slices = InformerStore(kinds.RESOURCE_SLICE)
        self._stores = (
            self.domains,
            self.cliques,
            self.daemon_sets,
            self.templates,
            self.daemons,
            self.nodes,
            self.claims,
            self.slices,
        )
        self._key_by_uid: dict[str, Key] = {}
        self.domains.subscribe(self._on_domain)

    def _on_domain(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None:
            self._key_by_uid.pop(uid_of(old), None)
        if new is not None:
            self._key_by_uid[uid_of(new)] = key

    async def run(self, client: Client, clock: Clock) -> None:
        """Keep all stores up to date until cancelled."""
        await run_informers(client, clock, *self._stores)

    async def synced(self) -> None:
        """Return once everything has been listed."""
        for store in self._stores:
            await store.synced.wait()

    def domain(self, uid: str) -> Body | None:
        """The domain of that uid, also if it is being deleted."""
        return self.domains.get(*self._key_by_uid[uid]) if uid in self._key_by_uid else None

    def membership(self, uid: str, node: str) -> Body | None:
        """The entry of the node's daemon in a domain: in the node's clique, or in the domain's status if the node has no fabric."""
        live = self.nodes.get("", node)
        fabric = labels_of(live).get(nvidia.NVLINK_CLIQUE_LABEL, "") if live else ""
        if fabric:
            daemons = [daemon for clique in self.cliques.of(uid) for daemon in daemons_in(clique)]
            return next((daemon for daemon in daemons if (daemon["nodeName"], daemon["cliqueID"]) == (node, fabric)), None)
        nodes = ((self.domain(uid) or {}).get("status") or {}).get("nodes") or ()
        return next((entry for entry in nodes if entry and entry["name"] == node), None)


def daemons_in(clique: Body) -> list[Body]:
    """The daemons that have joined the clique; null entries are left out."""
    return [daemon for daemon in clique.get("daemons") or () if daemon]


def not_deleting(bodies: Iterable[Body]) -> list[Body]:
    """The objects that are not being deleted."""
    return [body for body in bodies if not is_deleting(body)]
