"""Names: every generated name is a function of its parents."""

from engine.canonical import token
from engine.ids import ResourceId

POD_TOKEN_LENGTH = 5


def headless_service(root: str, replica: int) -> str:
    """The Service of one replica; its base gang has the same name."""
    return f"{root}-{replica}"


def service_address(root: str, replica: int, namespace: str) -> str:
    """Where the pods of a replica find one another."""
    return f"{headless_service(root, replica)}.{namespace}.svc.cluster.local"


def role(root: str) -> str:
    """The Role and the RoleBinding of a set."""
    return f"grove.io:pcs:{root}"


def service_account(root: str) -> str:
    """The ServiceAccount of a set."""
    return root


def token_secret(root: str) -> str:
    """The Secret that holds the token of that ServiceAccount."""
    return f"{root}-ic-sat"


def podclique(root: str, replica: int, clique: str) -> str:
    """A clique that stands alone."""
    return f"{root}-{replica}-{clique}"


def scaling_group(root: str, replica: int, group: str) -> str:
    """A scaling group of one replica."""
    return f"{root}-{replica}-{group}"


def member(scaling_group: str, group_replica: int, clique: str) -> str:
    """A clique in one replica of a scaling group."""
    return f"{scaling_group}-{group_replica}-{clique}"


def base_gang(root: str, replica: int) -> str:
    """The gang of what a replica cannot do without."""
    return f"{root}-{replica}"


def scaled_gang(scaling_group: str, group_replica: int, min_available: int) -> str:
    """The gang of one replica of a scaling group beyond its minimum: counted from zero there."""
    return f"{scaling_group}-{group_replica - min_available}"


def claim(owner: str, index: int | None, reference: str) -> str:
    """The resource claim of a set, group or clique: for one of its replicas, or for all of them."""
    return f"{owner}-{'all' if index is None else index}-{reference}"


def hostname(podclique: str, seat: int) -> str:
    """The stable name of a seat within its Service."""
    return f"{podclique}-{seat}"


def pod(podclique: str, root: str, seat: int, predecessor: str, attempt: int = 0) -> str:
    """The pod of a seat: the same seat after the same predecessor always gets the same name.

    `root` is the uid of the set (offline, its namespace and name), `predecessor` the uid of the pod that is leaving the seat, or
    empty; `attempt` counts names found taken by foreign.
    """
    source = f"{root}/{podclique}/{seat}/{predecessor}" + (f"/{attempt}" if attempt else "")
    return f"{podclique}-{token(source, POD_TOKEN_LENGTH)}"


def replica_of(root: ResourceId, child: ResourceId) -> int | None:
    """The replica that a child's name tells: the digits between `<root>-` and the next dash; None for what belongs to the set."""
    prefix = f"{root.name}-"
    if not child.name.startswith(prefix):
        return None
    digits, _, _ = child.name[len(prefix) :].partition("-")
    return int(digits) if digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0") else None
