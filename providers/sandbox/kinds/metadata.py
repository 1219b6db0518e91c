"""Metadata: what the server fills in, keeps, and refuses in `metadata`, whatever the kind."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from providers.sandbox.types import causes, names
from providers.sandbox.types.status import Cause

Body = Mapping[str, Any]
NameFaults = Callable[[str], list[str]]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_STANDARD_FINALIZERS = (FOREGROUND, ORPHAN, "kubernetes")
_MOST_ANNOTATION_BYTES = 256 * 1024


def faults(body: Body, name_faults: NameFaults, *, namespaced: bool, lenient: bool = False) -> list[Cause]:
    """Everything that is wrong with the metadata of an object; `lenient`: a finalizer need not be qualified by a domain."""
    metadata = body["metadata"]
    found: list[Cause] = []
    if base := metadata.get("generateName"):
        found += [causes.invalid("metadata.generateName", base, fault) for fault in name_faults(base.rstrip("-.") or base)]
    if not metadata.get("name"):
        found.append(causes.required("metadata.name", "name or generateName is required"))
    else:
        found += [causes.invalid("metadata.name", metadata["name"], fault) for fault in name_faults(metadata["name"])]
    if not namespaced and metadata.get("namespace"):
        found.append(causes.forbidden("metadata.namespace", "not allowed on this type"))
    return found + label_faults(metadata.get("labels"), "metadata.labels") + _annotation_faults(metadata) + _other_faults(metadata, lenient)


def label_faults(labels: Any, path: str) -> list[Cause]:
    """What is wrong with a map of labels."""
    found: list[Cause] = []
    for key, value in (labels or {}).items():
        found += [causes.invalid(path, key, fault) for fault in names.qualified_faults(key)]
        found += [causes.invalid(path, value, fault) for fault in names.value_faults(value)]
    return found


def _annotation_faults(metadata: Body) -> list[Cause]:
    found: list[Cause] = []
    size = 0
    for key, value in (metadata.get("annotations") or {}).items():
        found += [causes.invalid("metadata.annotations", key, fault) for fault in names.qualified_faults(key.lower())]
        size += len(key.encode()) + len(value.encode())
    if size > _MOST_ANNOTATION_BYTES:
        found.append(causes.too_long("metadata.annotations", _MOST_ANNOTATION_BYTES))
    return found


def _other_faults(metadata: Body, lenient: bool) -> list[Cause]:
    found = _owner_faults(metadata.get("ownerReferences") or ())
    for at, finalizer in enumerate(metadata.get("finalizers") or ()):
        path = f"metadata.finalizers[{at}]"
        found += [causes.invalid("metadata.finalizers", finalizer, fault) for fault in names.qualified_faults(finalizer)]
        if not lenient and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            found.append(causes.invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified"))
    if {FOREGROUND, ORPHAN} <= set(metadata.get("finalizers") or ()):
        both = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        found.append(causes.invalid("metadata.finalizers", metadata["finalizers"], both))
    return found


def warnings(new: Body, old: Body | None) -> tuple[str, ...]:
    """What to tell the writer of a custom object about finalizers that anybody else might use as well."""
    before = (old or {}).get("metadata", {}).get("finalizers") or ()
    added = (one for one in new["metadata"].get("finalizers") or () if one not in before)
    advice = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
    return tuple(f'metadata.finalizers: "{one}": {advice}' for one in added if "/" not in one and one not in _STANDARD_FINALIZERS)


def _owner_faults(owners: Sequence[Body]) -> list[Cause]:
    found: list[Cause] = []
    path = "metadata.ownerReferences"
    for owner in owners:
        _, _, version = owner.get("apiVersion", "").rpartition("/")
        if not version:
            found.append(causes.invalid(f"{path}.apiVersion", owner.get("apiVersion", ""), "version must not be empty"))
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                found.append(causes.invalid(f"{path}.{key}", "", "must not be empty"))
    controllers = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller")]
    for second in controllers[1:]:
        both = f"{controllers[0]} and {second}"
        detail = f'Only one reference can have Controller set to true. Found "true" in references for {both}'
        found.append(causes.invalid(path, [_owner_in_order(owner) for owner in owners], detail))
    return found


def _owner_in_order(owner: Body) -> dict[str, Any]:
    """The reference as the server prints it."""
    order = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {key: owner[key] for key in order if key in owner}


_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def change_faults(new: Body, old: Body) -> list[Cause]:
    """What an update may not do to the metadata."""
    now, before = new["metadata"], old["metadata"]
    found = [
        causes.invalid(f"metadata.{key}", now.get(key), causes.IMMUTABLE)
        for key in _FIXED
        if now.get(key) != before.get(key) and (now.get(key) or before.get(key))
    ]
    if "deletionTimestamp" in before:
        added = sorted(set(now.get("finalizers") or ()) - set(before.get("finalizers") or ()))
        if added:
            listed = ", ".join(f'"{one}"' for one in added)
            detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
            found.append(causes.forbidden("metadata.finalizers", detail))
    return found
