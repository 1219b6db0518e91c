"""Queues: why the queue of a PodGroup admits no pods: it does not exist, or its limit of GPUs would be exceeded."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from grove_sandbox.actors.body import Body
from grove_sandbox.product import requests_of, thousandths

GPU: Final = "nvidia.com/gpu"
GpusOf = Callable[[str], int]
"""The GPUs, in thousandths, of the placed pods whose group is in that queue."""


def gpus_of(pods: Iterable[Body]) -> int:
    """The GPUs that the pods request, in thousandths. Malformed quantities count as none."""
    return sum(_gpus(pod) for pod in pods)


def _gpus(pod: Body) -> int:
    try:
        return requests_of(pod["spec"]).get(GPU, 0)
    except ValueError:
        return 0


def kai_queue_of(group: Body) -> str:
    """The queue of one of KAI's PodGroups; empty: none is named."""
    return str((group.get("spec") or {}).get("queue") or "")


def volcano_queue_of(group: Body) -> str:
    """The queue of one of Volcano's PodGroups."""
    return str((group.get("spec") or {}).get("queue") or "default")


def kai_refusal(name: str, queues: Mapping[str, Body], allocated: GpusOf, requested: int) -> str:
    """Why the queue, or a queue above it, does not admit so many GPUs more; empty: it does. A limit of -1 is none, no limit is 0."""
    if name not in queues:
        return f"queue {name} does not exist" if name else "the PodGroup names no queue"
    for queue in _with_parents(name, queues):
        resources = (queues[queue].get("spec") or {}).get("resources") or {}
        limit = (resources.get("gpu") or {}).get("limit", 0)
        used = sum(allocated(other) for other in queues if queue in _with_parents(other, queues))
        if limit >= 0 and requested and used + requested > limit * 1000:
            shown = (queues[queue].get("spec") or {}).get("displayName") or queue
            return _over_limit(shown, limit * 1000, used, requested)
    return ""


def volcano_refusal(name: str, queues: Mapping[str, Body], allocated: GpusOf, requested: int) -> str:
    """Why the queue does not admit so many GPUs more; empty: it does. Without a capability for GPUs there is no limit."""
    if name not in queues:
        return f"queue {name} does not exist"
    capability = ((queues[name].get("spec") or {}).get("capability") or {}).get(GPU)
    try:
        limit = None if capability is None else thousandths(str(capability))
    except ValueError:
        limit = None
    used = allocated(name)
    return _over_limit(name, limit, used, requested) if limit is not None and used + requested > limit else ""


def _with_parents(name: str, queues: Mapping[str, Body]) -> Iterator[str]:
    """The queue and those above it, each once, as far as they exist."""
    above: set[str] = set()
    while name in queues and name not in above:
        yield name
        above.add(name)
        name = (queues[name].get("spec") or {}).get("parentQueue") or ""


def _over_limit(name: str, limit: float, used: int, requested: int) -> str:
    """In KAI's words."""
    numbers = [f"{amount / 1000:g}" for amount in (limit, used, requested)]
    details = "Limit is {} GPUs, currently {} GPUs allocated and workload requested {} GPUs".format(*numbers)
    return f"{name} quota has reached the allowable limit of GPUs. {details}"
