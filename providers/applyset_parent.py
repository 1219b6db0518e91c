"""ApplySetParent: the parent of an ApplySet, written so that members are found whenever a sync is broken off."""

from collections.abc import Mapping
from typing import Any

from engine.errors import AlreadyExists, Conflict, EngineError, NotFound
from engine.ids import Kind
from engine.runtime.client import Client
from resources.base import applyset
from resources.base.applyset import Extent, Record

BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in applyset.PARENTS}


class ApplySetParent:
    """The `engine.runtime.books.Books` of an ApplySet.

    While members are written, the parent names the kinds and namespaces of the old members and the new ones; at the end only those that
    are needed. Every write is bound to the parent as it was read.
    """

    def __init__(self, client: Client, record: Record) -> None:
        """`record`: the parent as it was read, and what it is to say."""
        self._client, self._record = client, record
        self._kind = BY_NAME[record.parent.kind]
        self._uid, self._revision, self._recorded = record.uid, record.revision, record.recorded

    @property
    def are_closed(self) -> bool:
        """Whether the parent names exactly what is needed."""
        return self._recorded == self._record.needed

    async def open(self) -> None:
        """Let the parent name the old members and the new ones."""
        needed = self._record.needed
        await self._write(self._recorded.union(needed) if self._recorded is not None else needed)

    async def close(self) -> None:
        """Let the parent name what is needed, and nothing else."""
        await self._write(self._record.needed)

    async def _write(self, extent: Extent) -> None:
        """Create or change the parent, unless it says so already. Raises `EngineError` if somebody else has written it."""
        if self._recorded == extent:
            return
        id = self._record.parent
        metadata = applyset.parent_metadata(id, extent)
        try:
            if self._recorded is None:
                body = {"apiVersion": self._kind.api_version, "kind": self._kind.name}
                named = {**metadata, "name": id.name, "namespace": id.namespace}
                written = await self._client.create(self._kind, id.namespace, {**body, "metadata": named})
            else:
                bound = {**metadata, "uid": self._uid, "resourceVersion": self._revision}
                written = await self._client.patch(self._kind, id.namespace, id.name, {"metadata": bound})
        except NotFound as error:
            raise EngineError(f"{id}, the parent of the ApplySet, cannot be written: {error}") from error
        except (AlreadyExists, Conflict) as error:
            raise EngineError(f"{id}, the parent of the ApplySet, was changed meanwhile by somebody else: run the command again") from error
        self._keep(written["metadata"], extent)

    def _keep(self, metadata: Mapping[str, Any], extent: Extent) -> None:
        self._uid, self._revision, self._recorded = metadata["uid"], metadata["resourceVersion"], extent
