"""Labels: every key, and every set of labels that is more than a line."""

from collections.abc import Mapping

MANAGED_BY = "app.kubernetes.io/managed-by"
PART_OF = "app.kubernetes.io/part-of"
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"

PODCLIQUE = "grove.io/podclique"
PODGANG = "grove.io/podgang"
BASE_PODGANG = "grove.io/base-podgang"
REPLICA_INDEX = "grove.io/podcliqueset-replica-index"
SCALING_GROUP = "grove.io/podcliquescalinggroup"
GROUP_REPLICA_INDEX = "grove.io/podcliquescalinggroup-replica-index"
POD_INDEX = "grove.io/podclique-pod-index"
TEMPLATE_HASH = "grove.io/pod-template-hash"
SCHEDULER_NAME = "grove.io/scheduler-name"

TOPOLOGY_NAME = "grove.io/topology-name"
"""An annotation that is ours to write on gangs, and never inherited."""

GROVE = "grove.io/"
"""The prefix of keys that are not mirrored from a set to its gangs."""

MANAGER = "grove-operator"
"""The value of `MANAGED_BY`: part of the API, whoever does the managing."""

SET_FINALIZER = "grove.io/podcliqueset.grove.io"
CLIQUE_FINALIZER = "grove.io/podclique.grove.io"
GROUP_FINALIZER = "grove.io/podcliquescalinggroup.grove.io"

GATE = "grove.io/podgang-pending-creation"
"""The scheduling gate of pods whose gang may not be scheduled yet."""

SELECTOR = f"{MANAGED_BY}={MANAGER}"
"""What all children of all sets carry."""


def default(root: str) -> dict[str, str]:
    """What every child of a set carries."""
    return {MANAGED_BY: MANAGER, PART_OF: root}


def child(root: str, component: str, name: str | None = None) -> dict[str, str]:
    """The default labels, the component, and the name where the kind carries one."""
    labels = {**default(root), COMPONENT: component}
    return labels if name is None else {**labels, NAME: name}


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's book-keeping about one object, of no use on another."""


def without_grove(keys: Mapping[str, str]) -> dict[str, str]:
    """The labels or annotations that a set hands on to its gangs."""
    return {key: value for key, value in keys.items() if not key.startswith(GROVE) and key != LAST_APPLIED}


def selector(labels: Mapping[str, str]) -> str:
    """A label selector in its text form, keys in the given order."""
    return ",".join(f"{key}={value}" for key, value in labels.items())
