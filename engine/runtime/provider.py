"""Provider: the world as the engine's shell uses it, whoever stands behind it."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.operation import Operation


@dataclass(frozen=True, slots=True)
class Scope:
    """What to look at: namespaces (none: all of them), root kinds, the kinds of their children, and those of others that they refer to."""

    roots: tuple[Kind, ...]
    children: tuple[Kind, ...]
    selector: str
    """Label selector that our children carry; roots are listed without one."""
    namespaces: tuple[str, ...] = ()
    references: tuple[Kind, ...] = ()
    """Kinds of which everything is read, listed without a selector; one that is among the roots or the children as well is listed once."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a look at the cluster brought: everything that could be listed, and what could not and why."""

    roots: Sequence[Live]
    children: Sequence[Live]
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Kind name -> why its listing is not complete (403, 5xx). A kind that the server does not serve is no hole: there is none of it."""
    references: Sequence[Live] = ()
    unserved: frozenset[str] = frozenset()
    """Kinds that the server does not serve."""


class Provider(Protocol):
    """Reads, writes and tells. Raises only `engine.errors.ClusterError` and its kinds."""

    async def observe(self, scope: Scope) -> Observation:
        """List all kinds of the scope at once. Raises `Unreachable` and `Unauthorized` when nothing can be seen at all."""
        ...

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Make the call that the operation stands for, with its preconditions; `uids` binds owners made by the same plan.

        QueryResults with the object afterwards (metadata at least), or nothing once it is gone. A vanished object is success for
        release and delete. Raises `AlreadyExists`, `Conflict`, `Forbidden`, `Invalid`, `NotFound`, `Unreachable`, `ServerFault`.
        """
        ...

    async def look(self, id: ResourceId) -> Live | None:
        """That one object, if it is there."""
        ...

    async def record(self, event: Event) -> None:
        """Write a Kubernetes Event; failing to do so is never the caller's failure."""
        ...

    async def serves(self, kind: Kind) -> bool:
        """Whether the cluster serves that kind."""
        ...


@runtime_checkable
class WatchingProvider(Protocol):
    """What a provider may offer with_foreign `Provider`: it keeps up with the world, so that a look costs no call and a change is noticed."""

    def following(self, scope: Scope) -> AbstractAsyncContextManager[None]:
        """Keep up with everything in the scope for as long as this lasts."""
        ...

    async def changed(self) -> None:
        """Return once something is otherwise than at the last look."""
        ...
