"""What else in a cluster keeps a plan from being carried out: a preview tells it before `sync` runs into it."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.forecast.forecast import End
from engine.ids import ResourceId
from enginectl.actions.preview import Preview, PreviewRequest, preview_of
from enginectl.base.options import Options
from enginectl.input.admission import AdmittedRoots
from enginectl.input.removals import RemovalScope
from enginectl.input.roots import Roots
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import EVERYTHING
from grove_sandbox.clients.inprocess import InProcessClient
from providers.cluster import Cluster
from resources.base import kinds
from resources.settings import Settings
from tests.builders import clique, podcliqueset
from tests.stories.graphs import graph, service
from tests.stories.refusing import refuse
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio


async def preview_with(cluster: Stage, *manifests: dict[str, Any], only_next: bool = False) -> Preview:
    """What `engine diff -f` sees."""
    provider = Cluster(InProcessClient(cluster.api), cluster.clock)
    wiring = Wiring(Options(), Settings(), cluster.setup, cluster.clock)
    roots = Roots(tuple(manifests))
    return await preview_of(wiring, PreviewRequest(roots, only_next=only_next), provider, RemovalScope(EVERYTHING), AdmittedRoots(roots))


def blocked(seen: Preview) -> dict[ResourceId, str]:
    """What is blocked, and why."""
    return {wait.id: f"{wait.why}; do: {wait.remedy}" if wait.remedy else wait.why for root in seen.report.roots for wait in root.blocked}


def end_of(seen: Preview, manifest: dict[str, Any]) -> End:
    """How the forecast ends for a set."""
    assert seen.report.forecast is not None
    return seen.report.forecast.end_of(kinds.PODCLIQUESET.id(manifest["metadata"]["namespace"], manifest["metadata"]["name"]))


async def quota(cluster: Stage, used: dict[str, str], selector: dict[str, Any] | None = None, /, **hard: str) -> None:
    """A ResourceQuota, with the status that its controller writes; with a scope selector only of some pods."""
    limits = {key.replace("_", "."): value for key, value in hard.items()}
    spec = {"hard": limits, **({"scopeSelector": selector} if selector else {})}
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "default"}, "spec": spec}
    await cluster.kubectl.create(kinds.RESOURCE_QUOTA, "default", body)
    status = {"status": {"hard": limits, "used": {key.replace("_", "."): value for key, value in used.items()}}}
    await cluster.kubectl.patch(kinds.RESOURCE_QUOTA, "default", "team", status, subresource="status")


async def test_a_set_in_a_missing_namespace_is_blocked_and_others_are_planned() -> None:
    lost, fine = podcliqueset("lost", clique("a"), namespace="nowhere"), podcliqueset("fine", clique("a"))
    async with stage() as cluster:
        seen = await preview_with(cluster, lost, fine)

        assert blocked(seen) == {kinds.NAMESPACE.id("", "nowhere"): "it does not exist; do: kubectl create namespace nowhere"}
        assert (end_of(seen, lost), end_of(seen, fine)) == (End.STUCK, End.SETTLED)
        assert {root.root.name for root in seen.report.roots if root.steps} == {"fine"}

        alone = await preview_with(cluster, lost)
        assert end_of(alone, lost) is End.STUCK
        assert (await preview_with(cluster, lost, only_next=True)).report.blocked == 1


async def test_a_quota_that_does_not_allow_all_pods_blocks_before_anything_is_created() -> None:
    workload = podcliqueset("web", clique("worker", 3), replicas=2)
    async with stage() as cluster:
        await quota(cluster, {"pods": "15"}, pods="20")

        seen = await preview_with(cluster, workload)

        ((id, why),) = blocked(seen).items()
        assert (id, end_of(seen, workload)) == (kinds.RESOURCE_QUOTA.id("default", "team"), End.STUCK)
        assert why == "it allows 5 more pods, and 6 are needed: the API server will refuse the rest; raise the quota or ask for less"


def asking(pods: int, **resources: Any) -> dict[str, Any]:
    """A set of so many pods, whose container asks for this."""
    spec = {"containers": [{"name": "main", "image": "nginx", "resources": resources}]}
    return podcliqueset("web", clique("worker", pods, pod_spec=spec))


@pytest.mark.parametrize(
    ("resources", "ranges", "expected"),
    [
        ({}, ({"default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}},), "it allows 2 more requests.cpu, and 3 are needed"),
        ({}, ({"defaultRequest": {"cpu": "1"}}, {"defaultRequest": {"cpu": "1"}}), "it allows 2 more requests.cpu, and 3 are needed"),
        ({"limits": {"cpu": "500m"}}, ({"defaultRequest": {"cpu": "1"}},), ""),
        ({}, ({"defaultRequest": {"cpu": "500m"}},), ""),
        ({}, ({"defaultRequest": {"memory": "1Gi"}},), ""),
        ({}, (), ""),
        ({"requests": {"cpu": "100m"}}, (), ""),
    ],
    ids=["default", "two ranges", "limit goes first", "fits", "of something else, and accepted", "nothing said, and accepted", "said"],
)
async def test_a_quota_counts_what_limit_ranges_write_into_pods(
    resources: dict[str, Any], ranges: tuple[dict[str, Any], ...], expected: str
) -> None:
    async with stage() as cluster:
        await quota(cluster, {"requests_cpu": "0"}, requests_cpu="2")
        for number, limits in enumerate(ranges):
            await limit_range(cluster, f"range-{number}", limits)

        seen = await preview_with(cluster, asking(3, **resources))

        why = blocked(seen).get(kinds.RESOURCE_QUOTA.id("default", "team"), "")
        assert why.startswith(expected) if expected else not why


async def test_what_the_server_accepts_of_one_service_says_nothing_of_another_that_is_scaled_out() -> None:
    """Its pods are tried as well, and refused."""
    said = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    async with stage(grove=False) as cluster:
        await cluster.sync(manifests=[graph(Frontend=service(resources={}))])
        await quota(cluster, {"requests_cpu": "0"}, requests_cpu="50")
        refuse(cluster.api, is_without_cpu, words="failed quota: team: must specify requests.cpu for: main")

        seen = await preview_with(cluster, graph(Frontend=service(3, resources={}), Other=service(resources=said)))

        why = "container main has no requests.cpu: the API server will refuse such pods; do: say it, or let a LimitRange say it"
        tried = kinds.DEPLOYMENT.id("default", "chat-frontend")
        assert blocked(seen).keys() == {kinds.RESOURCE_QUOTA.id("default", "team"), tried}
        assert blocked(seen)[kinds.RESOURCE_QUOTA.id("default", "team")] == why
        assert "must specify requests.cpu for: main" in blocked(seen)[tried]


def is_without_cpu(body: Mapping[str, Any]) -> bool:
    """Whether an object is a pod with a container that does not say how much of a CPU it requests."""
    return body["kind"] == "Pod" and any("requests" not in each.get("resources", {}) for each in body["spec"]["containers"])


async def test_sets_that_compete_for_a_quota_are_told_with_whom() -> None:
    async with stage() as cluster:
        await quota(cluster, {"pods": "5"}, pods="6")
        sets = [podcliqueset(name, clique("worker", 1)) for name in ("first", "second")]

        seen = await preview_with(cluster, *sets)

        whys = [wait.why for root in seen.report.roots for wait in root.blocked]
        rest = "it allows 1 more pods, and 2 are needed together: what is created first fits; raise the quota or ask for less"
        assert whys == [f"may not fit beside PodCliqueSet {other}: {rest}" for other in ("second", "first")]


async def test_the_nodes_have_to_have_room_for_what_limit_ranges_write_into_pods() -> None:
    async with stage() as cluster:
        await limit_range(cluster, "large", {"defaultRequest": {"cpu": "900"}})

        seen = await preview_with(cluster, asking(1))

        assert "900 cpu requested" in blocked(seen)[kinds.PODCLIQUE.id("default", "web-0-worker")]


async def limit_range(cluster: Stage, name: str, limits: dict[str, Any]) -> None:
    """A LimitRange for containers."""
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"limits": [{"type": "Container", **limits}]}}
    await cluster.kubectl.create(kinds.LIMIT_RANGE, "default", {"apiVersion": "v1", "kind": "LimitRange", **body})


async def test_a_quota_that_is_large_enough_is_not_mentioned() -> None:
    async with stage() as cluster:
        await quota(cluster, {"pods": "14"}, pods="20")

        seen = await preview_with(cluster, podcliqueset("web", clique("worker", 3), replicas=2))

        assert not blocked(seen)


@pytest.mark.parametrize(
    ("selector", "is_blocked"), [({"operator": "In", "values": ["high"]}, True), ({"operator": "DoesNotExist"}, False)], ids=["in", "out"]
)
async def test_a_quota_of_some_pods_counts_these_alone(selector: dict[str, Any], is_blocked: bool) -> None:
    workload = podcliqueset("web", clique("worker", 3), replicas=2)
    workload["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["priorityClassName"] = "high"
    async with stage() as cluster:
        await quota(cluster, {"pods": "0"}, {"matchExpressions": [{"scopeName": "PriorityClass", **selector}]}, pods="5")

        seen = await preview_with(cluster, workload)

        assert blocked(seen).keys() == ({kinds.RESOURCE_QUOTA.id("default", "team")} if is_blocked else set())


async def test_a_rolling_update_needs_no_more_than_it_deletes() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("worker", 3), replicas=2))
        await cluster.sync()
        await quota(cluster, {"pods": "6"}, pods="6")
        changed = podcliqueset("web", clique("worker", 3), replicas=2)
        changed["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = "other:2"

        seen = await preview_with(cluster, changed)

        assert not blocked(seen)
        assert not [note for root in seen.report.roots for note in root.notes if "ResourceQuota" in note]
