"""Autoscalers: what Kubernetes scales after the last pass, because a number of replicas is not within the limits of its autoscaler."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.observed import Live, Observed, Slice
from resources.base import kinds
from resources.base.fields import mapping

MOST: Final = 3
"""How many targets of one change are named; of others the number is given."""
AUTOSCALER: Final = kinds.AUTOSCALER.name
TARGETS: Final = {kind.name: kind for kind in (kinds.PODCLIQUE, kinds.SCALING_GROUP)}


def scaling_notes(observed: Observed) -> Iterator[str]:
    """The cliques and groups of a set that their autoscalers scale by their limits alone, one note for each change.

    As Kubernetes does it: what has more replicas than the maximum, or fewer than the minimum; what is scaled to 0 is left alone.
    """
    names: dict[tuple[str, int, str, int], list[str]] = {}
    for objects in observed.slices.values():
        for autoscaler in objects.of(AUTOSCALER):
            target = _target(autoscaler, objects)
            if target is not None and target.deleting_since is None and autoscaler.deleting_since is None:
                change = _change(mapping(autoscaler.body.get("spec")), _number(mapping(target.body.get("spec")).get("replicas"), 1))
                if change is not None:
                    names.setdefault((target.id.kind, *change), []).append(target.id.name)
    for (kind, replicas, field, limit), targets in names.items():
        more = f" and {len(targets) - MOST} more" if len(targets) > MOST else ""
        listed = f"{kind} {', '.join(targets[:MOST])}{more}"
        yield f"{AUTOSCALER} scales {listed} from {replicas} to {limit}, its {field}; what follows from that is not shown"


def _target(autoscaler: Live, objects: Slice) -> Live | None:
    """The clique or group that an autoscaler scales; None if it is not there."""
    reference = mapping(mapping(autoscaler.body.get("spec")).get("scaleTargetRef"))
    kind = TARGETS.get(str(reference.get("kind")))
    return objects.objects.get(kind.id(autoscaler.id.namespace, str(reference.get("name")))) if kind is not None else None


def _change(spec: Mapping[str, Any], replicas: int) -> tuple[int, str, int] | None:
    """The number of replicas, the limit that it violates, and the value of that limit; None if it is within both."""
    highest, lowest = _number(spec.get("maxReplicas"), replicas), _number(spec.get("minReplicas"), 1)
    if replicas > highest:
        return replicas, "maxReplicas", highest
    if 0 < replicas < lowest:
        return replicas, "minReplicas", lowest
    return None


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) else default
