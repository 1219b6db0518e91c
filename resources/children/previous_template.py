"""Bygone: what the template of before has given to the pods of a clique that is still to be replaced, told by those that it has left.

The clique itself keeps no more of it than its pod spec: its labels and annotations follow every edit in place.
"""

from collections.abc import Mapping
from typing import Any

from engine import ownership
from resources.base import labels
from resources.children.podclique import our_labels
from resources.model.pod_facts import PodFacts
from resources.model.view import CliqueView, View

Given = tuple[dict[str, Any], dict[str, Any]]
"""Labels and annotations."""


def given(view: View, clique: CliqueView) -> Given:
    """What a pod that heals an outdated clique is given: who selects by a label of the new version must not find the old one.

    Where no pod of before is left to tell, it is what the template of today gives.
    """
    for other in (clique, *(one for one in view.cliques if one.clique is clique.clique and one is not clique)):
        for pod in other.pods:
            if pod.hash == clique.hash:
                known = {*our_labels(view, other), labels.PODCLIQUE, labels.POD_INDEX}
                told = {key: value for key, value in _of_ours(pod, "labels").items() if key not in known}
                return told, _of_ours(pod, "annotations")
    return dict(clique.clique.labels), dict(clique.clique.annotations)


def _of_ours(pod: PodFacts, field: str) -> dict[str, Any]:
    """What we have put on a pod; where the server does not tell who has put what, all of it."""
    metadata: Mapping[str, Any] = pod.live.body["metadata"]
    there: Mapping[str, Any] = metadata.get(field) or {}
    fields = ownership.owned(pod.live.body)
    if not fields:
        return dict(there)
    ours = ownership.keys(ownership.below(ownership.below(fields, "metadata"), field))
    return {key: value for key, value in there.items() if key in ours}
