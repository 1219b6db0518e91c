"""Names: those of generated objects, each a function of its parents' names (`root`: that of the PodCliqueSet), and fixed ones."""

from collections.abc import Iterable

from engine.canonical import token
from engine.ids import ResourceId

WAITER = "grove-initc"
"""The init container in which pods wait for others."""
POD_INFO, TOKEN = "pod-info-vol", "sa-token-secret-vol"
"""The volumes of that init container: the namespace and gang of its pod, and the token."""
NVIDIA_GPU, AMD_GPU = "nvidia.com/gpu", "amd.com/gpu"
GPUS = (NVIDIA_GPU, AMD_GPU)
"""The extended resources that GPUs are requested by."""
LONGEST_LABEL = 63
"""The number of characters that a DNS label may have."""
POD_TOKEN_LENGTH = 5
"""The number of characters at the end of a pod name that are derived from a hash."""


def headless_service(root: str, replica: int) -> str:
    """The headless Service of one replica. The replica's base gang has the same name."""
    return f"{root}-{replica}"


def service_address(root: str, replica: int, namespace: str) -> str:
    """The DNS name of the headless Service of one replica."""
    return f"{headless_service(root, replica)}.{namespace}.svc.cluster.local"


def role(root: str) -> str:
    """The Role and the RoleBinding of a set."""
    return f"grove.io:pcs:{root}"


def service_account(root: str) -> str:
    """The ServiceAccount of a set."""
    return root


def token_secret(root: str) -> str:
    """The Secret that holds the token of the set's ServiceAccount."""
    return f"{root}-ic-sat"


def former_token_secret(root: str) -> str:
    """The same in Grove v0.1.0-alpha.11 and earlier."""
    return f"{root}-initc-sa-token-secret"


def podclique(root: str, replica: int, clique: str) -> str:
    """A PodClique outside scaling groups."""
    return f"{root}-{replica}-{clique}"


def scaling_group(root: str, replica: int, group: str) -> str:
    """A PodCliqueScalingGroup of one replica."""
    return f"{root}-{replica}-{group}"


def member(scaling_group: str, group_replica: int, clique: str) -> str:
    """A PodClique in one replica of a scaling group."""
    return f"{scaling_group}-{group_replica}-{clique}"


def base_gang(root: str, replica: int) -> str:
    """The PodGang with the minimum that a replica needs."""
    return f"{root}-{replica}"


def scaled_gang(scaling_group: str, group_replica: int, min_available: int) -> str:
    """The PodGang of a replica of a scaling group beyond its minimum; these gangs are counted from 0."""
    return f"{scaling_group}-{group_replica - min_available}"


def clique_group(podclique: str) -> str:
    """The PodGroup of a clique whose gang is a hierarchy. No other gang's has such a name: names of cliques and gangs have no dots."""
    return f"{podclique}.clique"


def claim(owner: str, index: int | None, reference: str) -> str:
    """The shared ResourceClaim of a set, group or clique: for the replica `index`, or for all replicas if that is None."""
    return f"{owner}-{'all' if index is None else index}-{reference}"


def claim_in_pod(claim: str) -> str:
    """The name of an entry of a pod's `resourceClaims`: that of the claim or, if it is no DNS label, a beginning of it with a digest."""
    label = claim.replace(".", "-")
    if label == claim and len(claim) <= LONGEST_LABEL:
        return claim
    return f"{label[: LONGEST_LABEL - POD_TOKEN_LENGTH - 1].rstrip('-')}-{token(claim, POD_TOKEN_LENGTH)}"


def hostname(podclique: str, index: int) -> str:
    """The hostname of the pod with this index, stable across replacements."""
    return f"{podclique}-{index}"


def pod(podclique: str, identity: str, index: int, predecessor: str, attempt: int = 0) -> str:
    """The pod with this index. The same index after the same predecessor always gets the same name.

    `identity` is the uid of the set (offline: its namespace and name); `predecessor` is the uid of the pod that had the index before, or
    empty; `attempt` counts the names that other pods have already.
    """
    source = f"{identity}/{podclique}/{index}/{predecessor}" + (f"/{attempt}" if attempt else "")
    return f"{podclique}-{token(source, POD_TOKEN_LENGTH)}"


def scaling_adapter(graph: str, service: str) -> str:
    """The scaling adapter of a service of a graph."""
    return f"{graph}-{service}".lower()


def replica_of(root: ResourceId, child: ResourceId) -> int | None:
    """The replica index in a child's name: the digits between `<root>-` and the next dash. None for children of the set as a whole."""
    prefix = f"{root.name}-"
    if not child.name.startswith(prefix):
        return None
    digits, _, _ = child.name[len(prefix) :].partition("-")
    return int(digits) if digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0") else None


def index_in(text: str) -> int | None:
    """The index that a label or a piece of a name is; None if it is none, or none that a replica can have."""
    return int(text) if text.isdecimal() and len(text) < 8 else None


def existing(indices: Iterable[int], most: int) -> int:
    """How many replicas exist, from the indices of their objects, of which `most` need not exist.

    An index before which more are missing than there are is no replica of ours: any user can choose names and labels.
    """
    count = 0
    for number, index in enumerate(sorted(set(indices)), start=1):
        if index < most + 2 * number:
            count = index + 1
    return count
