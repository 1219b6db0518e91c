"""Managers: the owners of fields, as `metadata.managedFields` records them."""

from typing import Any, NamedTuple

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from grove_sandbox.product import Body
from grove_sandbox.types import fields, status, typed
from grove_sandbox.types.fields import Fields
from grove_sandbox.types.shapes import Shape

MOST_UPDATERS = 10
"""Entries of ordinary writes; the oldest beyond this number are merged into one of `ancient-changes`."""
_STRIPPED = fields.of_paths(
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
)
_OPERATIONS = ("Apply", "Update")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Manager(NamedTuple):
    """The key of an entry: the name of the manager, and the type of write."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""


class Managed(Struct):
    """The entries of one object, which a write changes."""

    sets: dict[Manager, Fields] = field(default_factory=dict)
    times: dict[Manager, str] = field(default_factory=dict)

    def entries(self) -> list[dict[str, Any]]:
        """The value of `managedFields`: appliers first, then by time and name."""
        order = sorted(self.sets, key=lambda m: (m.operation, self.times.get(m, ""), m.name, m.subresource, m.api_version))
        return [_entry(manager, self.times.get(manager), self.sets[manager]) for manager in order]


class ManagedWrite(Struct, frozen=True):
    """What field management needs to know of one write."""

    shape: Shape
    manager: Manager
    time: str
    empty: Body
    """An object of the kind before it is created."""
    ignored: Fields = field(default_factory=dict)
    """Fields that this type of write never owns."""


def _entry(manager: Manager, time: str | None, owned: Fields) -> dict[str, Any]:
    return {
        **({"manager": manager.name} if manager.name else {}),
        "operation": manager.operation,
        **({"apiVersion": manager.api_version} if manager.api_version else {}),
        **({"time": time} if time else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
        **({"subresource": manager.subresource} if manager.subresource else {}),
    }


def from_client(entries: Any) -> Managed | None:
    """The entries that a client has sent; None for invalid ones, which the server ignores."""
    if not entries or any(entry.get("operation") not in _OPERATIONS or entry.get("fieldsType") != "FieldsV1" for entry in entries):
        return None
    try:
        return read([{**entry, "fieldsV1": fields.read(entry.get("fieldsV1"))} for entry in entries])
    except ValueError:
        return None


def read(entries: Any) -> Managed:
    """The entries of a stored object."""
    managed = Managed()
    for entry in entries or ():
        manager = Manager(entry.get("manager", ""), entry.get("operation", ""), entry.get("apiVersion", ""), entry.get("subresource", ""))
        managed.sets[manager] = entry.get("fieldsV1") or {}
        if entry.get("time"):
            managed.times[manager] = entry["time"]
    return managed


def updated(live: Body, new: Body, write: ManagedWrite) -> dict[str, Any]:
    """`new` with managedFields after an ordinary write: its manager becomes the only owner of what it has changed.

    A client that sends an empty list resets the managers.
    """
    entries = new["metadata"].get("managedFields")
    if entries is not None and (not entries or entries == [{}]):
        return _with_entries(new, None)
    known = live["metadata"].get("managedFields")
    managed = (from_client(entries) if entries != known else None) or read(known)
    bare = _with_entries(new, None)
    if not managed.sets and live["metadata"].get("uid"):
        # After a reset there are no managers until the next apply.
        return bare
    try:
        comparison = typed.compare(_with_entries(live, None), bare, write.shape).filtered(write.ignored)
    except typed.SchemaFault:
        # An object that does not fit its schema has no fields; validation refuses it.
        return bare
    changed = fields.union(comparison.added, comparison.modified)
    _take_over(managed, None, changed, comparison.removed)
    owned = fields.difference(changed, _STRIPPED)
    if owned:
        managed.sets[write.manager] = fields.union(owned, managed.sets.get(write.manager, {}))
        managed.times[write.manager] = write.time
    _cap(managed, write.manager.api_version)
    return _with_entries(bare, managed.entries())


def applied(live: Body, config: Body, write: ManagedWrite, *, force: bool) -> dict[str, Any]:
    """The live object after an apply patch, with managedFields.

    Raises 409 for a conflict with other managers, and `SchemaFault` for a configuration that does not fit the shape.
    """
    if live["metadata"].get("uid") and not live["metadata"].get("managedFields"):
        before = Manager("before-first-apply", "Update", write.manager.api_version)
        live = updated(write.empty, live, replace(write, manager=before))
    bare = _with_entries(live, None)
    try:
        return _apply(bare, config, read(live["metadata"].get("managedFields")), write, force)
    except _Disputed as disputed:
        allowed = _applied_by_kubectl(bare, write)
        rest = {manager: left for manager, owned in disputed.fields.items() if (left := fields.difference(owned, allowed))}
        if rest:
            raise _conflict(rest) from None
    return _apply(bare, config, read(live["metadata"].get("managedFields")), write, force=True)


def with_last_applied(body: Body, config: Body, write: ManagedWrite) -> Body:
    """The body with kubectl's annotation `last-applied-configuration` updated, if kubectl applies and the annotation exists."""
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    if write.manager.name != "kubectl" or write.manager.subresource or _LAST_APPLIED not in annotations:
        return body
    text = orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    return {**body, "metadata": {**body["metadata"], "annotations": {**annotations, _LAST_APPLIED: text}}}


class _Disputed(Exception):
    """The fields of other managers that the apply would change."""

    def __init__(self, disputed: dict[Manager, Fields]) -> None:
        super().__init__()
        self.fields = disputed


def _apply(live: Body, config: Body, managed: Managed, write: ManagedWrite, force: bool) -> dict[str, Any]:
    shape, manager = write.shape, write.manager
    last = managed.sets.get(manager)
    merged = typed.merge(live, config, shape)
    managed.sets[manager] = fields.without(typed.field_set(config, shape), write.ignored)
    merged = _pruned(merged, managed, last, shape)
    comparison = typed.compare(live, merged, shape).filtered(write.ignored)
    changed = fields.union(comparison.added, comparison.modified)
    disputed = _take_over(managed, manager, changed, comparison.removed, refuse=not force)
    if disputed:
        raise _Disputed(disputed)
    if manager in managed.sets:
        stripped = fields.difference(managed.sets[manager], _STRIPPED)
        if stripped:
            managed.sets[manager] = stripped
        else:
            del managed.sets[manager]
    if merged != live:
        managed.times[manager] = write.time
    return _with_entries(merged, managed.entries())


def _take_over(
    managed: Managed, applier: Manager | None, changed: Fields, removed: Fields, *, refuse: bool = False
) -> dict[Manager, Fields]:
    """Take changed and removed fields from all other managers; with `refuse`, return the changed ones and take nothing."""
    disputed = {}
    for manager, owned in managed.sets.items():
        if manager != applier and (overlap := fields.intersection(owned, changed)):
            disputed[manager] = overlap
    if refuse and disputed:
        return disputed
    for manager, owned in list(managed.sets.items()):
        if manager == applier:
            continue
        rest = fields.difference(fields.difference(owned, disputed.get(manager, {})), removed)
        if rest:
            managed.sets[manager] = rest
        else:
            del managed.sets[manager]
    return {}


def _pruned(merged: Any, managed: Managed, last: Fields | None, shape: Shape) -> Any:
    """The body without the fields of the applier's last configuration that are neither in the new one nor owned by another manager."""
    if not last:
        return merged
    named_last = fields.with_named(last, shape)
    pruned = typed.remove(merged, named_last, shape)
    owned: Fields = {}
    for other in managed.sets.values():
        owned = fields.union(owned, other)
    present = fields.with_named(typed.field_set(merged, shape), shape)

    def remaining(body: Any) -> Fields:
        return fields.with_named(typed.field_set(body, shape), shape)

    kept = fields.union(remaining(pruned), fields.with_named(owned, shape))
    pruned = typed.remove(merged, fields.difference(present, kept), shape)
    dangling = fields.intersection(fields.difference(present, remaining(pruned)), named_last)
    return typed.remove(merged, dangling, shape)


def _with_entries(body: Body, entries: list[dict[str, Any]] | None) -> dict[str, Any]:
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if key != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**body, "metadata": metadata}


def _cap(managed: Managed, api_version: str) -> None:
    """Merge the oldest entries of ordinary writes into one."""
    updaters = [manager for manager in managed.sets if manager.operation == "Update"]
    updaters.sort(key=lambda m: (managed.times.get(m, ""), m.name))
    surplus = len(updaters) - MOST_UPDATERS
    if surplus <= 0:
        return
    bucket = Manager("ancient-changes", "Update", api_version)
    for manager in updaters[: surplus + 1]:
        owned = managed.sets.pop(manager)
        managed.sets[bucket] = fields.union(owned, managed.sets.get(bucket, {}))
        managed.times[bucket] = managed.times.get(manager, "")


# --- conflicts


def _applied_by_kubectl(live: Body, write: ManagedWrite) -> Fields:
    """The fields that kubectl's client-side apply has set and that are unchanged: kubectl takes them over without a conflict."""
    config = _parsed((live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)) if write.manager.name == "kubectl" else None
    if config is None or config.get("apiVersion") != write.manager.api_version:
        return {}
    allowed = typed.field_set(config, write.shape)
    comparison = typed.compare(config, live, write.shape)
    for part in (comparison.modified, comparison.added, comparison.removed):
        allowed = fields.difference(allowed, part)
    return allowed


def _parsed(text: Any) -> dict[str, Any] | None:
    try:
        config = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
    return config if isinstance(config, dict) else None


def _described(manager: Manager) -> str:
    subresource = f' with subresource "{manager.subresource}"' if manager.subresource else ""
    return f'"{manager.name}"{subresource}' + (f" using {manager.api_version}" if manager.operation == "Update" else "")


def _conflict(disputed: dict[Manager, Fields]) -> status.StatusError:
    """The 409 that lists every disputed field and its manager."""
    conflicts = [(_described(manager), fields.dotted(path)) for manager in sorted(disputed) for path in fields.paths(disputed[manager])]
    causes = [{"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path} for manager, path in conflicts]
    if len(conflicts) == 1:
        text = f"1 conflict: conflict with {conflicts[0][0]}: {conflicts[0][1]}"
    else:
        grouped: dict[str, list[str]] = {}
        for manager, path in conflicts:
            grouped.setdefault(manager, []).append(f"\n- {path}")
        text = f"{len(conflicts)} conflicts: " + "\n".join(
            f"conflicts with {manager}:{''.join(paths)}" for manager, paths in grouped.items()
        )
    return status.StatusError(409, "Conflict", f"Apply failed with {text}", details={"causes": causes})
