"""Renaming: what an object or an operation of one replica is like in another replica of the same set."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from engine.canonical import canonical
from engine.ids import OwnerRef, ResourceId
from engine.observed import Live, live
from engine.operation import BoundOwner, Change, Create, Delete, Operation, Patch, Release, Replace, Scale, Unknown, WriteStatus
from engine.plan import Wait
from resources.base import labels
from resources.model.environment import REPLICA_VARIABLE


class Renaming(Struct, frozen=True, eq=False, dict=True):
    """Replaces indices of replicas in names of objects of a set, in the label and in the variable that have the index alone.

    Every text may contain such names, e.g. a reason, or an address.
    """

    root: ResourceId
    indices: Mapping[int, int]
    """Index -> the new one. Others stay."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Whole texts that are replaced by others, e.g. uids."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Finds the names of objects of the set's replicas, each with its index."""
        return re.compile(rf"(?<![a-z0-9-]){re.escape(self.root.name)}-(0|[1-9][0-9]{{0,8}})(?![a-z0-9])")

    def text(self, text: str) -> str:
        """The text with the names of the new indices."""
        if text in self.texts:
            return self.texts[text]
        return self._pattern.sub(self._renamed, text) if self.root.name in text else text

    def is_found_in(self, value: Any) -> bool:
        """Whether a JSON value has a text that looks like the name of an object of a replica, whichever."""
        return self._pattern.search(canonical(value).decode()) is not None

    def _renamed(self, match: re.Match[str]) -> str:
        return f"{self.root.name}-{self.indices.get(int(match[1]), match[1])}"

    def index(self, value: Any) -> Any:
        """The new index for an index as text or number; anything else as it is."""
        if isinstance(value, str) and value.isdecimal() and len(value) < 9:
            return str(self.indices.get(int(value), value))
        return self.indices.get(value, value) if isinstance(value, int) and not isinstance(value, bool) else value

    def value(self, value: Any) -> Any:
        """A JSON value with the new indices."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            renamed = {self.text(key): self.index(each) if key == labels.REPLICA_INDEX else self.value(each) for key, each in value.items()}
            if value.get("name") == REPLICA_VARIABLE and "value" in value:
                renamed["value"] = self.index(value["value"])
            elif value.get("key") == labels.REPLICA_INDEX and isinstance(value.get("values"), list | tuple):
                renamed["values"] = [self.index(each) for each in value["values"]]
            return renamed
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value

    def id(self, id: ResourceId) -> ResourceId:
        """The identity with the new index."""
        return id._replace(name=self.text(id.name))

    def live(self, each: Live) -> Live:
        """The object with the new index."""
        return live(self.value(each.body))

    def wait(self, wait: Wait) -> Wait:
        """The wait with the new index."""
        return replace(wait, id=self.id(wait.id), why=self.text(wait.why))

    def operation(self, operation: Operation) -> Operation:
        """The operation with the new index."""
        return replace(
            operation,
            id=self.id(operation.id),
            why=self.text(operation.why),
            expect=replace(operation.expect, uid=self.text(operation.expect.uid)),
            after=frozenset(map(self.text, operation.after)),
            **self._fields_of_verb(operation),
        )

    def _fields_of_verb(self, operation: Operation) -> dict[str, Any]:
        """The fields that only some verbs have and that contain names, with the new index."""
        owners, changes = tuple(map(self._owner, operation.owners)), tuple(map(self._change, operation.changes))
        controller = self._controller(operation.controller)
        match operation:
            case Create():
                return {"manifest": self.value(operation.manifest), "owners": owners}
            case Replace():
                return {"manifest": self.value(operation.manifest), "owners": owners, "changes": changes}
            case Patch() | WriteStatus():
                return {"patch": self.value(operation.patch), "changes": changes, "controller": controller}
            case Scale():
                return {"changes": changes, "controller": controller}
            case Delete() | Release():
                return {"owners": owners, "controller": controller}

    def _owner(self, bound: BoundOwner) -> BoundOwner:
        uid = Unknown(self.id(bound.uid.id)) if isinstance(bound.uid, Unknown) else self.text(bound.uid)
        return BoundOwner(replace(bound.owner, id=self.id(bound.owner.id)), uid)

    def _change(self, change: Change) -> Change:
        return Change(tuple(map(self.text, change.path)), self.value(change.old), self.value(change.new), change.cause)

    def _controller(self, controller: OwnerRef | None) -> OwnerRef | None:
        if controller is None:
            return None
        return replace(controller, name=self.text(controller.name), uid=self.text(controller.uid))
