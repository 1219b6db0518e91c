"""Previous template: the labels and annotations that the previous version of the template gave to the pods of an outdated clique.

The clique itself keeps only its pod spec: its own labels and annotations follow every change of the template. So they are read from pods.
"""

from collections.abc import Mapping
from typing import Any

from engine import ownership
from resources.base import labels
from resources.children.podclique import our_labels
from resources.model.pod_facts import PodFacts
from resources.model.view import CliqueView, View


def metadata(view: View, clique: CliqueView) -> tuple[dict[str, Any], dict[str, Any]]:
    """The template's labels and annotations for a new pod of an outdated clique, without our labels.

    They are read from a pod of the same version, in this clique or in another one of the same template. If there is none, they are those of
    the current template. Selectors for labels of the new version must not match a pod of the previous one.
    """
    siblings = (other for other in view.cliques if other.clique is clique.clique and other is not clique)
    for sibling in (clique, *siblings):
        for pod in sibling.pods:
            if pod.hash == clique.hash:
                excluded = {*our_labels(view, sibling), labels.PODCLIQUE, labels.POD_INDEX}
                given = {key: value for key, value in _set_by_us(pod, "labels").items() if key not in excluded}
                return given, _set_by_us(pod, "annotations")
    return dict(clique.clique.labels), dict(clique.clique.annotations)


def _set_by_us(pod: PodFacts, field: str) -> dict[str, Any]:
    """The labels or annotations of a pod that the engine set; all of them if the server records no field owners."""
    pod_metadata: Mapping[str, Any] = pod.live.body["metadata"]
    live: Mapping[str, Any] = pod_metadata.get(field) or {}
    fields = ownership.owned(pod.live.body)
    if not fields:
        return dict(live)
    ours = ownership.keys(ownership.below(ownership.below(fields, "metadata"), field))
    return {key: value for key, value in live.items() if key in ours}
