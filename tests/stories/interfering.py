"""Interfering: a client that is never the first: somebody else has just written what it writes."""

from collections.abc import Mapping
from typing import Any

from engine.ids import Kind
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds


class Interfering:
    """A client before which somebody else creates the first object of each kind, and changes the object of each first status.

    So the engine reads objects by name, as it does when a name is taken or an answer was lost.
    """

    def __init__(self, client: KubernetesClient, admin: KubernetesClient) -> None:
        self._client, self._admin = client, admin
        self._met: set[tuple[str, str]] = set()
        self.listed: set[str] = set()
        """The kinds of which lists were requested."""

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._client, verb)

    def _is_first(self, verb: str, kind: Kind) -> bool:
        is_first = (verb, kind.key) not in self._met
        self._met.add((verb, kind.key))
        return is_first

    async def list(self, kind: Kind, *rest: Any, **options: Any) -> Any:
        """List objects."""
        self.listed.add(kind.key)
        return await self._client.list(kind, *rest, **options)

    async def create(self, kind: Kind, namespace: str, body: Mapping[str, Any], **options: Any) -> Any:
        """Create an object, after somebody else if it is the first of its kind."""
        if self._is_first("create", kind) and kind != kinds.LEASE:
            await self._admin.create(kind, namespace, body, **options)
        return await self._client.create(kind, namespace, body, **options)

    async def delete(self, kind: Kind, namespace: str, name: str, **options: Any) -> Any:
        """Delete an object; the first PodGangMap is another one of that name by then."""
        if kind == kinds.PODGANG_MAP and self._is_first("delete", kind):
            body = await self._admin.get(kind, namespace, name)
            metadata = {key: body["metadata"][key] for key in ("name", "namespace", "labels", "ownerReferences")}
            await self._admin.delete(kind, namespace, name)
            await self._admin.create(kind, namespace, {**body, "metadata": metadata})
        return await self._client.delete(kind, namespace, name, **options)

    async def patch(self, kind: Kind, namespace: str, name: str, body: Any, *, subresource: str = "", **options: Any) -> Any:
        """Patch an object, after somebody else if it is the first status of its kind."""
        if subresource == "status" and self._is_first("status", kind):
            await self._admin.patch(kind, namespace, name, {"metadata": {"annotations": {"example.com/seen": "yes"}}})
        return await self._client.patch(kind, namespace, name, body, subresource=subresource, **options)
