"""Managers: who owns which fields of an object, kept in `metadata.managedFields` as the server keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import orjson

from providers.sandbox.types import fields, status, typed
from providers.sandbox.types.fields import Fields
from providers.sandbox.types.shapes import Shape

Body = Mapping[str, Any]

MOST_UPDATERS = 10
"""More entries of ordinary writes than this are folded into one of `ancient-changes`."""
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
    """Who wrote, and by which sort of write."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""


@dataclass(slots=True)
class Managed:
    """The entries of one object while a write is worked out."""

    sets: dict[Manager, Fields] = field(default_factory=dict)
    times: dict[Manager, str] = field(default_factory=dict)

    def entries(self) -> list[dict[str, Any]]:
        """`managedFields` as it is written: appliers first, then by time and name."""
        order = sorted(self.sets, key=lambda m: (m.operation, self.times.get(m, ""), m.name, m.subresource, m.api_version))
        return [_entry(manager, self.times.get(manager), self.sets[manager]) for manager in order]


@dataclass(frozen=True, slots=True)
class Writer:
    """One write's point of view: its shape and version, who writes, at what time, and which fields this way of writing never owns."""

    shape: Shape
    manager: Manager
    now: str
    nothing: Body
    """An object of the kind before it is created."""
    ignored: Fields = field(default_factory=dict)


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


def sent(entries: Any) -> Managed | None:
    """Entries that a client sends along; None where the server can make nothing of them and goes on as if there were none."""
    if not entries or any(entry.get("operation") not in _OPERATIONS or entry.get("fieldsType") != "FieldsV1" for entry in entries):
        return None
    try:
        return read([{**entry, "fieldsV1": fields.read(entry.get("fieldsV1"))} for entry in entries])
    except ValueError:
        return None


def read(entries: Any) -> Managed:
    """Entries as an object holds them."""
    managed = Managed()
    for entry in entries or ():
        manager = Manager(entry.get("manager", ""), entry.get("operation", ""), entry.get("apiVersion", ""), entry.get("subresource", ""))
        managed.sets[manager] = entry.get("fieldsV1") or {}
        if entry.get("time"):
            managed.times[manager] = entry["time"]
    return managed


def updated(live: Body, new: Body, writer: Writer) -> dict[str, Any]:
    """`new` with managedFields after an ordinary write: what it changed is the writer's alone, what it removed is nobody's."""
    given = new["metadata"].get("managedFields")
    if given is not None and (not given or given == [{}]):
        return _with_entries(new, None)
    managed = sent(given) or read(live["metadata"].get("managedFields"))
    bare = _with_entries(new, None)
    if not managed.sets and live["metadata"].get("uid"):
        # Whoever has thrown the managers away does without them, until somebody applies.
        return bare
    try:
        comparison = typed.compare(_with_entries(live, None), bare, writer.shape).filtered(writer.ignored)
    except typed.SchemaFault:
        # What does not fit its schema has no fields to own; validation will say what is wrong with it.
        return bare
    changed = fields.union(comparison.added, comparison.modified)
    _take_over(managed, None, changed, comparison.removed)
    ours = fields.difference(changed, _STRIPPED)
    if ours:
        managed.sets[writer.manager] = fields.union(ours, managed.sets.get(writer.manager, {}))
        managed.times[writer.manager] = writer.now
    _cap(managed, writer.manager.api_version)
    return _with_entries(bare, managed.entries())


def applied(live: Body, config: Body, writer: Writer, *, force: bool) -> dict[str, Any]:
    """The live object after an apply patch, managedFields included.

    Raises the 409 of a conflict with other managers, or `SchemaFault` when the configuration does not fit the shape.
    """
    if live["metadata"].get("uid") and not live["metadata"].get("managedFields"):
        before = Manager("before-first-apply", "Update", writer.manager.api_version)
        live = updated(writer.nothing, live, replace(writer, manager=before))
    bare = _with_entries(live, None)
    try:
        return _apply(bare, config, read(live["metadata"].get("managedFields")), writer, force)
    except _Disputed as disputed:
        allowed = _applied_by_kubectl(bare, writer)
        rest = {manager: left for manager, owned in disputed.fields.items() if (left := fields.difference(owned, allowed))}
        if rest:
            raise _conflict(rest) from None
    return _apply(bare, config, read(live["metadata"].get("managedFields")), writer, force=True)


def told_to_kubectl(body: Body, config: Body, writer: Writer) -> Body:
    """The body with the annotation brought up to date by which kubectl's client-side apply remembers what it applied."""
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    if writer.manager.name != "kubectl" or writer.manager.subresource or _LAST_APPLIED not in annotations:
        return body
    text = orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    return {**body, "metadata": {**body["metadata"], "annotations": {**annotations, _LAST_APPLIED: text}}}


class _Disputed(Exception):
    """Fields that others own and that the apply would change."""

    def __init__(self, disputed: dict[Manager, Fields]) -> None:
        super().__init__()
        self.fields = disputed


def _apply(live: Body, config: Body, managed: Managed, writer: Writer, force: bool) -> dict[str, Any]:
    shape, manager = writer.shape, writer.manager
    last = managed.sets.get(manager)
    merged = typed.merge(live, config, shape)
    managed.sets[manager] = fields.without(typed.field_set(config, shape), writer.ignored)
    merged = _pruned(merged, managed, last, shape)
    comparison = typed.compare(live, merged, shape).filtered(writer.ignored)
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
        managed.times[manager] = writer.now
    return _with_entries(merged, managed.entries())


def _take_over(
    managed: Managed, applier: Manager | None, changed: Fields, removed: Fields, *, refuse: bool = False
) -> dict[Manager, Fields]:
    """Take changed and removed fields from all other managers; with `refuse`, only say whose they are."""
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
    """Without the fields that the applier named last time, names no more, and nobody else owns."""
    if not last:
        return merged
    named_last = fields.with_named(last, shape)
    pruned = typed.remove(merged, named_last, shape)
    owned: Fields = {}
    for one in managed.sets.values():
        owned = fields.union(owned, one)
    present = fields.with_named(typed.field_set(merged, shape), shape)

    def still(body: Any) -> Fields:
        return fields.with_named(typed.field_set(body, shape), shape)

    kept = fields.union(still(pruned), fields.with_named(owned, shape))
    pruned = typed.remove(merged, fields.difference(present, kept), shape)
    dangling = fields.intersection(fields.difference(present, still(pruned)), named_last)
    return typed.remove(merged, dangling, shape)


def _with_entries(body: Body, entries: list[dict[str, Any]] | None) -> dict[str, Any]:
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if key != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**body, "metadata": metadata}


def _cap(managed: Managed, api_version: str) -> None:
    """Fold the oldest entries of ordinary writes into one."""
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


def _applied_by_kubectl(live: Body, writer: Writer) -> Fields:
    """What kubectl's client-side apply has set and nobody has changed since: kubectl may take it over without a conflict."""
    config = _parsed((live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)) if writer.manager.name == "kubectl" else None
    if config is None or config.get("apiVersion") != writer.manager.api_version:
        return {}
    allowed = typed.field_set(config, writer.shape)
    comparison = typed.compare(config, live, writer.shape)
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
    found = [(_described(manager), fields.dotted(path)) for manager in sorted(disputed) for path in fields.paths(disputed[manager])]
    causes = [{"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": where} for who, where in found]
    if len(found) == 1:
        text = f"1 conflict: conflict with {found[0][0]}: {found[0][1]}"
    else:
        grouped: dict[str, list[str]] = {}
        for who, where in found:
            grouped.setdefault(who, []).append(f"\n- {where}")
        text = f"{len(found)} conflicts: " + "\n".join(f"conflicts with {who}:{''.join(where)}" for who, where in grouped.items())
    return status.StatusError(409, "Conflict", f"Apply failed with {text}", details={"causes": causes})
