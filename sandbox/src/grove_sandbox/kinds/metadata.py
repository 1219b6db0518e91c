"""Metadata: what the server validates in the `metadata` of every kind."""

from collections.abc import Callable, Sequence
from typing import Any

from grove_sandbox.product import Body, qualified_faults, value_faults
from grove_sandbox.types import causes
from grove_sandbox.types.status import Cause

NameFaults = Callable[[str], list[str]]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_STANDARD_FINALIZERS = (FOREGROUND, ORPHAN, "kubernetes")
_MOST_ANNOTATION_BYTES = 256 * 1024


def faults(body: Body, name_faults: NameFaults, *, namespaced: bool, lenient: bool = False) -> list[Cause]:
    """The faults of the metadata of an object; with `lenient` a finalizer needs no domain."""
    metadata = body["metadata"]
    result: list[Cause] = []
    if base := metadata.get("generateName"):
        result += [causes.invalid("metadata.generateName", base, fault) for fault in name_faults(base.rstrip("-.") or base)]
    if not metadata.get("name"):
        result.append(causes.required("metadata.name", "name or generateName is required"))
    else:
        result += [causes.invalid("metadata.name", metadata["name"], fault) for fault in name_faults(metadata["name"])]
    if not namespaced and metadata.get("namespace"):
        result.append(causes.forbidden("metadata.namespace", "not allowed on this type"))
    return (
        result + label_faults(metadata.get("labels"), "metadata.labels") + _annotation_faults(metadata) + _other_faults(metadata, lenient)
    )


def label_faults(labels: Any, path: str) -> list[Cause]:
    """The faults of a map of labels."""
    result: list[Cause] = []
    for key, value in (labels or {}).items():
        result += [causes.invalid(path, key, fault) for fault in qualified_faults(key)]
        result += [causes.invalid(path, value, fault) for fault in value_faults(value)]
    return result


def _annotation_faults(metadata: Body) -> list[Cause]:
    result: list[Cause] = []
    size = 0
    for key, value in (metadata.get("annotations") or {}).items():
        result += [causes.invalid("metadata.annotations", key, fault) for fault in qualified_faults(key.lower())]
        size += len(key.encode()) + len(value.encode())
    if size > _MOST_ANNOTATION_BYTES:
        result.append(causes.too_long("metadata.annotations", _MOST_ANNOTATION_BYTES))
    return result


def _other_faults(metadata: Body, lenient: bool) -> list[Cause]:
    result = _owner_faults(metadata.get("ownerReferences") or ())
    for at, finalizer in enumerate(metadata.get("finalizers") or ()):
        path = f"metadata.finalizers[{at}]"
        result += [causes.invalid("metadata.finalizers", finalizer, fault) for fault in qualified_faults(finalizer)]
        if not lenient and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            result.append(causes.invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified"))
    if {FOREGROUND, ORPHAN} <= set(metadata.get("finalizers") or ()):
        both = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        result.append(causes.invalid("metadata.finalizers", metadata["finalizers"], both))
    return result


def warnings(new: Body, old: Body | None) -> tuple[str, ...]:
    """The warnings for finalizers without a domain that a write adds to a custom object."""
    before = (old or {}).get("metadata", {}).get("finalizers") or ()
    added = (finalizer for finalizer in new["metadata"].get("finalizers") or () if finalizer not in before)
    advice = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
    undomained = (finalizer for finalizer in added if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS)
    return tuple(f'metadata.finalizers: "{finalizer}": {advice}' for finalizer in undomained)


def _owner_faults(owners: Sequence[Body]) -> list[Cause]:
    result: list[Cause] = []
    path = "metadata.ownerReferences"
    for at, owner in enumerate(owners):
        version = owner.get("apiVersion", "")
        if version and (version.endswith("/") or version.count("/") > 1):
            result.append(causes.invalid(f"{path}[{at}].apiVersion", version, "must be <group>/<version> or <version>"))
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                result.append(causes.required(f"{path}[{at}].{key}", "must not be empty"))
    controllers = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller")]
    for second in controllers[1:]:
        both = f"{controllers[0]} and {second}"
        detail = f'Only one reference can have Controller set to true. Found "true" in references for {both}'
        result.append(causes.invalid(path, [_owner_in_order(owner) for owner in owners], detail))
    return result


def _owner_in_order(owner: Body) -> dict[str, Any]:
    """The reference with its fields in the order in which the server prints them."""
    order = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {key: owner[key] for key in order if key in owner}


_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def change_faults(new: Body, old: Body) -> list[Cause]:
    """The changes of metadata that an update may not make."""
    now, before = new["metadata"], old["metadata"]
    present = [key for key in _FIXED if now.get(key) or before.get(key)]
    result = [cause for key in present for cause in causes.changed(f"metadata.{key}", now.get(key), before.get(key))]
    if "deletionTimestamp" in before:
        added = sorted(set(now.get("finalizers") or ()) - set(before.get("finalizers") or ()))
        if added:
            listed = ", ".join(f'"{finalizer}"' for finalizer in added)
            detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
            result.append(causes.forbidden("metadata.finalizers", detail))
    return result
