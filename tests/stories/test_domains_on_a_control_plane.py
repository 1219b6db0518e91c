"""Domains on a real control plane: kube-scheduler allocates the driver's channels; what comes before what is read off revisions."""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import anyio
import pytest

from engine.ids import Kind
from engine.runtime.clock import SystemClock
from engine.runtime.sync_report import Ending
from grove_sandbox.actors.options import PARTS, ActorOptions, DriverOptions
from grove_sandbox.installation.installation import definitions
from grove_sandbox.registry import run_actors
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, DOMAIN_LABEL, GROUP
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from resources.base import kinds
from resources.base.kinds import DAEMON_SET, NODE, POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE, SERVICE_ACCOUNT
from sandbox.tests.actors.test_on_a_real_server import until
from tests.builders import podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import started
from tests.mnnvl.sets import OURS, auto, gpu, gpus, said
from tests.stories.domains import assert_invariants
from tests.stories.fabric import FABRIC, templates_of
from tests.stories.pods import clique_of, is_ready
from tests.stories.test_control_plane import Audit, connection, define, synced
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "fabric"
NODES = 4
OPTIONS = ActorOptions(nodes=NODES, driver=DriverOptions(parts=PARTS - {"daemonSets"}, imex_start=0.5))
FOLLOWED = (COMPUTE_DOMAIN, RESOURCE_CLAIM_TEMPLATE, RESOURCE_CLAIM, POD)


class Moment(NamedTuple):
    """What a watch has told; revisions are of the whole cluster, so they tell what came first."""

    revision: int
    verb: str
    body: dict[str, Any]

    @property
    def of(self) -> str:
        """Kind and name."""
        return f"{self.body['kind']} {self.body['metadata']['name']}"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with its own scheduler, whose nodes are played by actors."""
    with started(tmp_path_factory, ["kcm", "scheduler"], audit=True) as made:
        yield made


@asynccontextmanager
async def fabric(plane: ControlPlane, options: ActorOptions = OPTIONS) -> AsyncIterator[tuple[KubernetesClient, list[Moment]]]:
    """Nodes with the driver on them, our kinds, and all that happens to domains, templates, claims and pods."""
    clock, source, seen = SystemClock(), Source(path=str(plane.kubeconfig())), list[Moment]()
    async with connection(plane, "admin") as admin, connection(plane, "admin") as watcher, anyio.create_task_group() as tasks:
        async with connected(source, clock, field_manager="kubelet") as kubelet, connected(source, clock, field_manager="driver") as driver:
            if NAMESPACE not in await names(admin, kinds.NAMESPACE, ""):
                await define(admin, NAMESPACE, *map(dict, definitions()))
            await until(admin, SERVICE_ACCOUNT, lambda there: "default" in there, NAMESPACE)
            tasks.start_soon(run_actors, kubelet, clock, ("kubelet",), options)
            tasks.start_soon(run_actors, driver, clock, ("driver",), options)
            await until(admin, RESOURCE_SLICE, lambda there: len(there) == options.nodes)
            for kind in FOLLOWED:
                tasks.start_soon(follow, watcher, kind, (await admin.list(kind, NAMESPACE)).revision, seen)
            yield admin, seen
            tasks.cancel_scope.cancel()


async def follow(watcher: KubernetesClient, kind: Kind, since: str, seen: list[Moment]) -> None:
    """Note all that happens to objects of a kind."""
    while True:
        async with aclosing(watcher.watch(kind, NAMESPACE, since=since)) as events:
            async for verb, body in events:
                since = body["metadata"]["resourceVersion"]
                if verb != "BOOKMARK":
                    seen.append(Moment(int(since), verb, {"kind": kind.name, **body}))


async def caught_up(admin: KubernetesClient, seen: list[Moment]) -> None:
    """Wait until the watches have shown everything that the server lists."""

    async def have_caught_up() -> bool:
        latest = {moment.of: moment for moment in seen}
        existing = {f"{kind.name} {name}" for kind in FOLLOWED for name in await names(admin, kind)}
        return {of for of, moment in latest.items() if moment.verb != "DELETED"} == existing

    await eventually(have_caught_up)


def first(seen: Iterable[Moment], of: str, *, deleting: bool = False, verb: str = "") -> int:
    """The revision at which it was made, was asked to go, or (`DELETED`) went."""
    return min(
        one.revision
        for one in seen
        if one.of == of and (not verb or one.verb == verb) and (not deleting or "deletionTimestamp" in one.body["metadata"])
    )


def members(seen: Iterable[Moment], domain: str) -> set[str]:
    """The pods that were ever made for a domain."""
    return {one.of for one in seen if one.body["kind"] == "Pod" and domain in templates_of(one.body)}


def claims(seen: Iterable[Moment], pods: set[str]) -> set[str]:
    """Their claims."""
    owned = (one for one in seen if one.body["kind"] == "ResourceClaim")
    return {one.of for one in owned if any(f"Pod {owner['name']}" in pods for owner in one.body["metadata"].get("ownerReferences", ()))}


async def names(admin: KubernetesClient, kind: Kind, namespace: str = NAMESPACE) -> list[str]:
    """What there is of a kind."""
    return sorted(body["metadata"]["name"] for body in (await admin.list(kind, namespace)).items)


async def test_domains_come_before_their_pods_follow_the_replicas_and_go_after_everything_that_used_them(plane: ControlPlane) -> None:
    async with fabric(plane) as (admin, seen):
        audit = Audit(plane)

        async def settled(replicas: int | None) -> None:
            report = await synced(plane, NAMESPACE, FABRIC)
            assert (report.ending, report.failures) == (Ending.DONE, ()), [(held.id.name, held.why) for held in report.pending]
            assert await names(admin, COMPUTE_DOMAIN) == [f"demo-{index}" for index in range(replicas or 0)]
            pods = (await admin.list(POD, NAMESPACE)).items
            assert len(pods) == len({pod["spec"]["nodeName"] for pod in pods}) == (replicas or 0)
            assert all(map(is_ready, pods))
            await assert_invariants(admin)

        manifest = auto(2, gpu(), namespace=NAMESPACE)
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, manifest)
        await settled(2)
        uids = {body["metadata"]["name"]: body["metadata"]["uid"] for body in (await admin.list(COMPUTE_DOMAIN, NAMESPACE)).items}
        assert audit.read().refused == []
        assert (audit.writes["create computedomains"], audit.writes["create pods"]) == (2, 2)
        await synced(plane, NAMESPACE, FABRIC)
        assert audit.read().writes.total() == 0

        for replicas in (3, 1):
            await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "demo", {"spec": {"replicas": replicas}}, subresource="scale")
            await settled(replicas)
        (left,) = (await admin.list(COMPUTE_DOMAIN, NAMESPACE)).items
        assert left["metadata"]["uid"] == uids["demo-0"]
        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "demo", propagation="Background")
        await settled(None)
        await caught_up(admin, seen)

        for index in range(3):
            domain, template = f"ComputeDomain demo-{index}", f"ResourceClaimTemplate demo-{index}"
            pods = members(seen, f"demo-{index}")
            assert len(pods) == 1
            assert first(seen, domain) < first(seen, template) < min(first(seen, pod) for pod in pods)
            made = next(one for one in seen if one.of == domain)
            assert made.body["metadata"]["finalizers"] == [OURS]
            going = first(seen, domain, deleting=True)
            assert max(first(seen, one, verb="DELETED") for one in (*pods, *claims(seen, pods))) < going
            assert going < first(seen, template, verb="DELETED") < first(seen, domain, verb="DELETED")
            held = [one.body["metadata"].get("finalizers") for one in seen if one.of == domain and one.verb == "MODIFIED"]
            assert held[-1] in ([OURS], None)

        notes = {
            one["reason"]: one["message"] for one in (await admin.list(kinds.EVENT, NAMESPACE)).items if "ComputeDomain" in one["reason"]
        }
        assert notes.keys() == {"ComputeDomainCreated", "ComputeDomainDeleted"}
        for kind in (kinds.PODCLIQUESET, kinds.PODCLIQUE, *FOLLOWED):
            assert await names(admin, kind) == []
        assert await names(admin, DAEMON_SET, "") == []
        assert [one for one in (await admin.list(NODE)).items if DOMAIN_LABEL in one["metadata"]["labels"]] == []


async def test_N26_groups_have_domains_that_follow_the_replicas_and_a_clique_with_none_has_no_claim(plane: ControlPlane) -> None:
    async with fabric(plane) as (admin, seen):
        groups = {"prefill": {}, "decode": {GROUP: "decode"}, "reranker": {GROUP: "none"}}
        cliques = (gpu(name, pod_spec=gpus("1"), annotations=of_clique) for name, of_clique in groups.items())
        manifest = said(podcliqueset("served", *cliques, namespace=NAMESPACE), {GROUP: "model"})
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, manifest)

        for replicas in (1, 2, 1):
            await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "served", {"spec": {"replicas": replicas}}, subresource="scale")
            report = await synced(plane, NAMESPACE, FABRIC)
            assert (report.ending, report.failures) == (Ending.DONE, ()), [(held.id.name, held.why) for held in report.pending]
            assert await names(admin, COMPUTE_DOMAIN) == sorted(
                f"served-{i}-{name}" for i in range(replicas) for name in ("model", "decode")
            )
            pods = (await admin.list(POD, NAMESPACE)).items
            assert {clique_of(pod): templates_of(pod) for pod in pods} == {
                f"served-{i}-{name}": claimed
                for i in range(replicas)
                for name, claimed in (("prefill", [f"served-{i}-model"]), ("decode", [f"served-{i}-decode"]), ("reranker", []))
            }
            assert all(map(is_ready, pods))
            await assert_invariants(admin)
        (decode,) = [one for one in (await admin.list(COMPUTE_DOMAIN, NAMESPACE)).items if "decode" in one["metadata"]["name"]]
        assert decode["metadata"]["labels"][GROUP] == "decode"
        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "served", propagation="Background")
        assert (await synced(plane, NAMESPACE, FABRIC)).ending is Ending.DONE
        await caught_up(admin, seen)

        for name in (f"served-{index}-{of}" for index in range(2) for of in ("model", "decode")):
            pods_of_domain = members(seen, name)
            assert first(seen, f"ResourceClaimTemplate {name}") < min(first(seen, pod) for pod in pods_of_domain)
            gone = max(first(seen, one, verb="DELETED") for one in (*pods_of_domain, *claims(seen, pods_of_domain)))
            assert gone < first(seen, f"ComputeDomain {name}", deleting=True)
        for kind in (kinds.PODCLIQUESET, kinds.PODCLIQUE, *FOLLOWED):
            assert await names(admin, kind) == []


async def test_C9_pods_are_created_from_a_claim_template_that_the_driver_keeps_while_it_is_being_deleted(plane: ControlPlane) -> None:
    async with fabric(plane) as (admin, _):
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, auto(1, gpu(), namespace=NAMESPACE, name="racks"))
        assert (await synced(plane, NAMESPACE, FABRIC)).ending is Ending.DONE
        (before,) = (await admin.list(POD, NAMESPACE)).items
        await admin.delete(RESOURCE_CLAIM_TEMPLATE, NAMESPACE, "racks-0")
        assert (await admin.get(RESOURCE_CLAIM_TEMPLATE, NAMESPACE, "racks-0"))["metadata"]["deletionTimestamp"]
        await admin.delete(POD, NAMESPACE, before["metadata"]["name"])

        report = await synced(plane, NAMESPACE, FABRIC)

        assert report.ending is Ending.DONE, [(wait.id.name, wait.why) for wait in (*report.pending, *report.blocked)]
        (pod,) = (await admin.list(POD, NAMESPACE)).items
        assert (pod["metadata"]["uid"] != before["metadata"]["uid"], is_ready(pod)) == (True, True)
        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "racks", propagation="Background")
        assert (await synced(plane, NAMESPACE, FABRIC)).ending is Ending.DONE
