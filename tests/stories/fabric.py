"""Sets in ComputeDomains on a stage with the DRA driver: how it is set, who watches, and what is left."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from msgspec.structs import replace

from engine.errors import ClusterError, NotFound
from engine.ids import Kind
from grove_sandbox.actors.options import PARTS, ActorOptions, DriverOptions
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.registry import run_actors
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, COMPUTE_DOMAIN_CLIQUE, DOMAIN_LABEL, TARGET_LABEL, WORKLOAD
from resources.base import kinds
from resources.base.kinds import DAEMON_SET, NODE, POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from tests.mnnvl.sets import OURS
from tests.stories.domains import assert_invariants
from tests.stories.process import Call, Process
from tests.stories.stage import SETUP, Stage, stage

FABRIC = replace(SETUP, fabrics=(Nvidia(auto=True),))
NODES = 8
CONTROLLER, NO_CONTROLLER = DriverOptions(parts=frozenset({"controller"})), DriverOptions(parts=PARTS - {"controller"})
"""The driver's controller alone, and all but that."""


@asynccontextmanager
async def rack(*, nodes: int = NODES, **options: Any) -> AsyncIterator[Stage]:
    """A cluster with the driver, in which new sets with GPUs are enrolled."""
    async with stage(nodes=nodes, **options) as cluster:
        cluster.setup = FABRIC
        yield cluster


@asynccontextmanager
async def playing(cluster: Stage, actor: str, driver: DriverOptions = DriverOptions()) -> AsyncIterator[None]:  # noqa: B008
    """An actor is there for as long as the block lasts, in a cluster that was set up without it, or without that part of it."""
    async with anyio.create_task_group() as tasks:
        options = ActorOptions(nodes=NODES, driver=driver)
        tasks.start_soon(run_actors, InProcessClient(cluster.api, actor), cluster.clock, (actor,), options)
        await cluster.clock.advance(1)
        yield
        tasks.cancel_scope.cancel()


def domains(cluster: Stage) -> dict[str, dict[str, Any]]:
    """The domains, by name."""
    return dict(cluster.there(COMPUTE_DOMAIN))


def uids(cluster: Stage) -> dict[str, str]:
    """Which incarnation of each."""
    return {name: body["metadata"]["uid"] for name, body in domains(cluster).items()}


def users(cluster: Stage, domain: str) -> list[str]:
    """The pods that claim it, alive or on their way out."""
    spec = domains(cluster)[domain]["spec"]
    return [name for name, pod in cluster.there(POD).items() if spec["channel"]["resourceClaimTemplate"]["name"] in templates_of(pod)]


def templates_of(pod: dict[str, Any]) -> list[str]:
    """The claim templates that a pod asks by."""
    return [claim.get("resourceClaimTemplateName", "") for claim in pod["spec"].get("resourceClaims") or ()]


def leads_into(cluster: Stage, template: str) -> str:
    """The uid of the domain that a claim template leads into."""
    labels = cluster.there(RESOURCE_CLAIM_TEMPLATE).get(template, {"metadata": {}})["metadata"].get("labels") or {}
    return str(labels.get(DOMAIN_LABEL, "")) if labels.get(TARGET_LABEL) == WORKLOAD else ""


class DomainRecorder:
    """Records the calls of a process for domains, and those that come too early."""

    def __init__(self, cluster: Stage, ours: Process) -> None:
        self._cluster = cluster
        self._known = set(cluster.there(POD))
        self.done: list[str] = []
        """What was done to domains, and each creation of a pod, in order."""
        self.fouls: list[str] = []
        ours.refuses, ours.on_write = self._before, self._after

    def _before(self, call: Call) -> ClusterError | None:
        verb, kind, name = call
        if kind == COMPUTE_DOMAIN and verb in ("create", "delete", "patch"):
            self.done.append(f"{verb} {name}")
            domain = domains(self._cluster).get(name)
            finalizers = domain["metadata"].get("finalizers", []) if domain else []
            if domain and verb == "delete" and (left := users(self._cluster, name)):
                self.fouls.append(f"{name} is deleted under {left}")
            if domain and verb == "patch" and "deletionTimestamp" in domain["metadata"] and (left := users(self._cluster, name)):
                self.fouls.append(f"{name} loses its finalizer under {left}")
            if domain and verb == "patch" and "deletionTimestamp" in domain["metadata"] and finalizers != [OURS]:
                self.fouls.append(f"{name} loses our finalizer while it has {finalizers}")
        return None

    def _after(self) -> None:
        there = self._cluster.there(POD)
        for name in there.keys() - self._known:
            self._known.add(name)
            for template in templates_of(there[name]):
                self.done.append(f"create pod in {template}")
                if leads_into(self._cluster, template) not in uids(self._cluster).values():
                    self.fouls.append(f"{name} is made before {template} leads anywhere")


async def pass_time(cluster: Stage, seconds: float, *, step: float = 1.0, but: frozenset[str] = frozenset()) -> None:
    """Let time pass, and look at the invariants all the while."""
    for _ in range(int(seconds / step)):
        await cluster.clock.advance(step)
        await assert_invariants(cluster.kubectl, but=but)


async def left_of_domains(cluster: Stage) -> list[str]:
    """What is there of any domain, in all namespaces and on the nodes (I8)."""
    found = [f"node {name}" for name, body in cluster.there(NODE).items() if DOMAIN_LABEL in (body["metadata"].get("labels") or {})]
    for kind in (COMPUTE_DOMAIN, RESOURCE_CLAIM_TEMPLATE, DAEMON_SET, COMPUTE_DOMAIN_CLIQUE, RESOURCE_CLAIM):
        found += [f"{kind.name} {body['metadata']['name']}" for body in await _all(cluster, kind)]
    return found


async def _all(cluster: Stage, kind: Kind) -> list[dict[str, Any]]:
    try:
        return list((await cluster.kubectl.list(kind)).items)
    except NotFound:
        return []


async def event_messages(cluster: Stage, reason: str) -> list[str]:
    """The messages of the Events with that reason."""
    return [event.get("note") or event.get("message") or "" for event in await _all(cluster, kinds.EVENT) if event.get("reason") == reason]
