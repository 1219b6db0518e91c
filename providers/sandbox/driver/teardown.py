"""Teardown: what happens to a domain that is being deleted, in passes, at once, and without a look at pods or at others' finalizers."""

from engine.errors import NotFound
from engine.ids import Kind
from engine.runtime.client import Client
from providers.sandbox.actors.body import Body, is_deleting, key_of, uid_of
from providers.sandbox.actors.reflector import Reflection
from providers.sandbox.driver.facts import Facts, NotYet, OfDomains
from providers.sandbox.driver.lookup import one_of_domain
from providers.sandbox.installation.kinds import COMPUTE_DOMAIN, DAEMON, DOMAIN, WORKLOAD
from resources.base.kinds import NODE


class Teardown:
    """One pass does what can be done now; what it then finds still there makes it fail, and the next one goes on."""

    def __init__(self, client: Client, facts: Facts) -> None:
        self._client, self._facts = client, facts

    async def go_on(self, domain: Body) -> None:
        """A pass. Raises `NotYet` unless it was the last."""
        uid, facts, client = uid_of(domain), self._facts, self._client
        templates, daemon_sets = facts.templates, facts.daemon_sets
        if (workload := one_of_domain(templates, uid, WORKLOAD)) is not None:
            await delete(client, templates.kind, workload)
        await self._delete_daemons(uid)
        await self._take_labels(uid)
        await self._release(templates, uid, WORKLOAD)
        self._assert_gone(templates, uid, WORKLOAD)
        await self._release(templates, uid, DAEMON)
        await self._release(daemon_sets, uid, "")
        self._assert_gone(templates, uid, DAEMON)
        self._assert_gone(daemon_sets, uid, "")
        await release(client, COMPUTE_DOMAIN, domain)

    async def _delete_daemons(self, uid: str) -> None:
        """The template goes with the DaemonSet; without one it stays, and what comes after this waits for it for ever."""
        daemon_set = one_of_domain(self._facts.daemon_sets, uid, "")
        if daemon_set is None:
            return
        if (template := one_of_domain(self._facts.templates, uid, DAEMON)) is not None:
            await delete(self._client, self._facts.templates.kind, template)
        await delete(self._client, self._facts.daemon_sets.kind, daemon_set)

    async def _take_labels(self, uid: str) -> None:
        for node in self._facts.nodes.of(uid):
            await unlabel(self._client, self._facts.nodes, node)

    async def _release(self, seen: OfDomains, uid: str, target: str) -> None:
        found = one_of_domain(seen, uid, target)
        if found is None:
            return
        if not is_deleting(found):
            raise NotYet(f"attempting to remove finalizer before {seen.kind.name} marked for deletion")
        await release(self._client, seen.kind, found)

    def _assert_gone(self, seen: OfDomains, uid: str, target: str) -> None:
        if one_of_domain(seen, uid, target) is not None:
            raise NotYet(f"{seen.kind.name} still exists")


async def delete(client: Client, kind: Kind, body: Body) -> None:
    """Ask for its deletion, once."""
    if is_deleting(body):
        return
    try:
        await client.delete(kind, *key_of(body), uid=uid_of(body), propagation="Background")
    except NotFound:
        return


async def release(client: Client, kind: Kind, body: Body) -> None:
    """Take the driver's finalizer off, and no other."""
    metadata = body["metadata"]
    finalizers = metadata.get("finalizers") or []
    if DOMAIN not in finalizers:
        return
    kept = [one for one in finalizers if one != DOMAIN]
    try:
        await client.replace(kind, *key_of(body), {**body, "metadata": {**metadata, "finalizers": kept}})
    except NotFound:
        return


async def unlabel(client: Client, nodes: Reflection, node: Body) -> None:
    """The node is in no domain any more."""
    metadata = {"resourceVersion": node["metadata"]["resourceVersion"], "labels": {DOMAIN: None}}
    try:
        nodes.assume(await client.patch(NODE, *key_of(node), {"metadata": metadata}))
    except NotFound:
        return
