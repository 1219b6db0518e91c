"""The KAI scheduler on a control plane: the scheduler, which writes BindRequests, and the binder, which binds pods by them.

Its podgrouper does not run: it would make a second PodGroup for pods that name one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from resources.base.kinds import KAI_QUEUE, NAMESPACE
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.schedulers.program import create, install_crds, responds, running
from tests.ports import free_port

NAMESPACES = ("kai-scheduler", "kai-resource-reservation", "kai-scale-adjust")
PARENT = "cluster"
"""The queue that is the parent of all others."""
UNLIMITED = -1


@contextmanager
def kai(plane: ControlPlane) -> Iterator[None]:
    """Run the KAI scheduler while the block runs, with the unlimited queues `cluster` and, below it, `dynamo`.

    Its CRDs, namespaces and queues remain. Raises `Missing` and `Broken`.
    """
    install_crds(plane, "kai")
    for name in NAMESPACES:
        create(plane, NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for body in (queue(PARENT, parent=""), queue("dynamo")):
        create(plane, KAI_QUEUE, body)
    with scheduler(plane), binder(plane):
        yield


@contextmanager
def scheduler(plane: ControlPlane) -> Iterator[None]:
    """Run the scheduler with one cycle a second."""
    address = f"127.0.0.1:{free_port()}"
    flags = ["--schedule-period=1s", f"--listen-address={address}", f"--plugin-server-port={free_port()}"]
    with running(plane, "kai-scheduler", flags, lambda: responds(f"http://{address}/metrics")):
        yield


@contextmanager
def binder(plane: ControlPlane) -> Iterator[None]:
    """Run the binder."""
    address = f"127.0.0.1:{free_port()}"
    flags = [f"--metrics-bind-address={address}", f"--health-probe-bind-address=127.0.0.1:{free_port()}"]
    with running(plane, "kai-binder", flags, lambda: responds(f"http://{address}/metrics")):
        yield


def queue(name: str, *, parent: str = PARENT, gpus: int = UNLIMITED) -> dict[str, Any]:
    """A queue that may use that many GPUs, and CPU and memory without a limit. Pods are submitted to queues with a parent."""
    unlimited = {"quota": UNLIMITED, "limit": UNLIMITED, "overQuotaWeight": 1}
    resources = {"cpu": unlimited, "memory": unlimited, "gpu": {"quota": gpus, "limit": gpus, "overQuotaWeight": 1}}
    spec = {"resources": resources, **({"parentQueue": parent} if parent else {})}
    return {"apiVersion": KAI_QUEUE.api_version, "kind": KAI_QUEUE.name, "metadata": {"name": name}, "spec": spec}
