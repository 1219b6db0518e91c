"""A sandbox cluster in a thread of its own, and the hands of a user on it."""

from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import yaml
from anyio.from_thread import BlockingPortal

from engine.errors import NotFound
from engine.ids import Kind
from grove_sandbox.http.access import Denial
from grove_sandbox.http.faults import InjectedFault
from grove_sandbox.process import Sandbox
from providers.registry import fabrics
from resources.base.kinds import PODCLIQUESET
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from resources.settings import Settings
from tests.waiting import PATIENCE


@dataclass(frozen=True, slots=True)
class Box:
    """The cluster, reached as another client would."""

    cluster: Sandbox
    portal: BlockingPortal

    @property
    def kubeconfig(self) -> Path:
        """How to get in."""
        return self.cluster.kubeconfig

    def all(self, kind: Kind) -> list[dict[str, Any]]:
        """All objects of a kind."""
        return self.portal.call(self.cluster.client("user").list, kind).items

    def served(self, kind: Kind) -> list[dict[str, Any]]:
        """All objects of a kind; none if it is not served."""
        with suppress(NotFound):
            return self.all(kind)
        return []

    def names(self, kind: Kind) -> list[str]:
        """The names of all objects of a kind."""
        return sorted(body["metadata"]["name"] for body in self.all(kind))

    def wait_for(self, kind: Kind, well: Callable[[dict[str, Any]], bool], prefix: str = "") -> None:
        """What `kubectl wait` does: until an object of that kind, and name, is so."""

        async def watched() -> None:
            client = self.cluster.client("user")
            listing = await client.list(kind)
            if any(well(body) for body in listing.items if body["metadata"]["name"].startswith(prefix)):
                return
            with anyio.fail_after(PATIENCE):
                async with aclosing(client.watch(kind, since=listing.revision)) as events:
                    async for type_, body in events:
                        if type_ != "BOOKMARK" and body["metadata"]["name"].startswith(prefix) and well(body):
                            return

        self.portal.call(watched)

    def create(self, kind: Kind, body: dict[str, Any]) -> None:
        """What `kubectl create` does."""
        self.portal.call(self.cluster.client("user").create, kind, "default", body)

    def apply(self, folder: Path) -> None:
        """What `kubectl apply -f FOLDER` does with the sets in it."""
        for path in sorted(folder.glob("*.yaml")):
            for body in yaml.load_all(path.read_text(), yaml.CSafeLoader):
                if body and body["kind"] == PODCLIQUESET.name:
                    self.create(PODCLIQUESET, body)

    def scale(self, name: str, replicas: int) -> None:
        """What `kubectl scale pcs` does."""
        self.change(PODCLIQUESET, name, {"spec": {"replicas": replicas}})

    def change(self, kind: Kind, name: str, patch: dict[str, Any]) -> None:
        """What `kubectl patch` does."""
        self.portal.call(self.cluster.client("user").patch, kind, "default", name, patch)

    def delete(self, kind: Kind, name: str) -> None:
        """What `kubectl delete --wait=false` does."""
        self.portal.call(self.cluster.client("user").delete, kind, "default", name)

    def delete_alone(self, kind: Kind, name: str) -> None:
        """What `kubectl delete --cascade=orphan --wait=false` does: what the object owns stays."""

        async def delete() -> None:
            await self.cluster.client("user").delete(kind, "default", name, propagation="Orphan")

        self.portal.call(delete)

    def deny(self, **rule: str) -> None:
        """Take a right away from everybody."""
        self.portal.call(self.cluster.access.denials.append, Denial(**rule))

    def permit(self) -> None:
        """Give everybody all rights again."""
        self.portal.call(self.cluster.access.denials.clear)

    def inject(self, *faults: InjectedFault) -> None:
        """Let something go wrong."""
        self.portal.call(lambda: self.cluster.faults.inject(*faults))

    def revisions(self) -> dict[str, str]:
        """The revision of every workload and all that is of it: equal twice means that nothing was written between."""
        found = {}
        for kind in (PODCLIQUESET, *BLUEPRINTS[0].children(Configuration({}, "", fabrics=fabrics(Settings())))):
            for body in self.served(kind):
                if kind is PODCLIQUESET or "app.kubernetes.io/managed-by" in body["metadata"].get("labels", {}):
                    found[f"{kind.name}/{body['metadata']['name']}"] = body["metadata"]["resourceVersion"]
        return found
