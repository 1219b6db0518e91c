"""Spread: keeps the pods of one replica of a scaling group on different nodes, if the set asks for it.

They get an anti-affinity to the other pods of their replica. Nothing of this is part of a template hash, so it never starts an update.
"""

from typing import Any

from resources.base import labels
from resources.base.affinity import with_anti_affinity
from resources.model.view import CliqueView, View


def with_spread(view: View, clique: CliqueView, spec: dict[str, Any]) -> dict[str, Any]:
    """The pod spec of a clique, with an anti-affinity to the other pods of its replica if its group is spread."""
    if clique.group is None or clique.group.group.name not in view.template.spread_groups:
        return spec
    identity = {labels.SCALING_GROUP: clique.group.name, labels.GROUP_REPLICA_INDEX: str(clique.group_replica)}
    return with_anti_affinity(spec, identity)
