"""Scaling adapters: an object with `scale` owns the replicas of a service; autoscalers scale it, and manifests no longer do."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import Kind
from engine.operation import Delete, Patch, Scale
from engine.reason import Reason
from engine.report.text import text
from engine.runtime.sync_report import Ending
from resources.base import kinds
from resources.base.labels import POD_FORM
from resources.dynamo.model.form import PodForm
from resources.dynamo.versions.api_versions import ALPHA
from resources.dynamo.versions.converted import as_version
from resources.model.growth_limit import LIMITED
from resources.ports.configuration import SET_LIMITS, WorkloadLimits
from tests.resources.dynamo.versions.beta_graphs import beta, component
from tests.stories.graphs import graph, service
from tests.stories.refusing import refuse
from tests.stories.stage import Stage, stage
from tests.stories.test_cluster_constraints import preview_with
from tests.stories.test_graph_form import ADDONS, PATHS
from tests.stories.test_graph_orchestrators import notes

pytestmark = pytest.mark.anyio

ADAPTER = kinds.SCALING_ADAPTER
NEWER = kinds.newer(ADAPTER)[0]
GRAPH = kinds.DYNAMO_GRAPH.id("default", "chat")
CRD_NAME = f"{ADAPTER.plural}.{ADAPTER.group}"
ON = {"scalingAdapter": {"enabled": True}}
OLDER = {POD_FORM: "5"}


def made(path: str, replicas: int = 2, annotations: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    """A graph with a service on two nodes and one on one node, each with an adapter unless `fields` say otherwise."""
    adapted = fields or ON
    decode = service(replicas, nodes=2, script="python3 -m dynamo.vllm --tensor-parallel-size 8", **adapted)
    return graph(annotations=PATHS[path] | (annotations or {}), decode=decode, prefill=service(replicas, **adapted))


def pods(cluster: Stage) -> dict[str, int]:
    """Service -> how many pods it has that stay."""
    names = [name for name, pod in cluster.there(kinds.POD).items() if not pod["metadata"].get("deletionTimestamp")]
    return {key: sum(key in name for name in names) for key in ("decode", "prefill")}


def targets(cluster: Stage, path: str) -> dict[str, int]:
    """Object -> `spec.replicas`, of what runs services on Grove."""
    assert path == "grove"
    lives = {**cluster.there(kinds.SCALING_GROUP), **cluster.there(kinds.PODCLIQUE)}
    return {name: lives[name]["spec"]["replicas"] for name in ("chat-0-decode", "chat-0-prefill")}


@pytest.mark.parametrize("path", PATHS)
async def test_an_adapter_is_made_and_owns_the_number_of_replicas(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        assert (await cluster.sync(manifests=[made(path)])).ending is Ending.DONE
        adapter = cluster.there(ADAPTER)["chat-decode"]
        assert adapter["spec"] == {"replicas": 2, "dgdRef": {"name": "chat", "serviceName": "decode"}}
        assert adapter["metadata"]["ownerReferences"][0]["name"] == "chat"
        assert adapter["status"]["replicas"] == 2
        assert pods(cluster) == {"decode": 4, "prefill": 2}

        await cluster.scale(ADAPTER, "chat-decode", 3)
        await cluster.scale(ADAPTER, "chat-prefill", 1)
        assert (await cluster.sync()).ending is Ending.DONE
        assert pods(cluster) == {"decode": 6, "prefill": 1}
        assert cluster.there(ADAPTER)["chat-decode"]["status"]["replicas"] == 3
        assert "lastScaleTime" in cluster.there(ADAPTER)["chat-decode"]["status"]

        report = await cluster.sync(manifests=[made(path, 5)])
        assert report.ending is Ending.DONE
        assert pods(cluster) == {"decode": 6, "prefill": 1}
        assert cluster.there(ADAPTER)["chat-decode"]["spec"]["replicas"] == 3
        assert (await cluster.sync(manifests=[made(path, 5)])).results == ()


@pytest.mark.parametrize("path", PATHS)
async def test_the_selector_finds_one_pod_of_each_replica(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[made(path)])
        for name in ("decode", "prefill"):
            selector = cluster.there(ADAPTER)[f"chat-{name}"]["status"]["selector"]
            wanted = dict(each.split("=") for each in selector.split(","))
            found = [pod for pod in cluster.there(kinds.POD).values() if wanted.items() <= pod["metadata"]["labels"].items()]
            assert len(found) == 2, selector


@pytest.mark.parametrize("path", PATHS)
async def test_an_autoscaler_scales_a_service_by_its_adapter(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.apply(made(path))
        await put(cluster, kinds.AUTOSCALER, autoscaler("chat-decode", 3))
        async with cluster.running(), cluster.playing("autoscaler"):
            await cluster.settle()
            assert pods(cluster) == {"decode": 6, "prefill": 2}
        assert cluster.there(ADAPTER)["chat-decode"]["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("path", "says", "added"),
    [("grove", "replica 0 is not enlarged", 0), ("components", "service prefill asks for 2000000 replicas and gets 3", 1)],
)
async def test_without_a_webhook_an_adapter_adds_nothing_beyond_the_limit_and_every_command_says_so(
    path: str, says: str, added: int
) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        cluster.setup = replace(cluster.setup, limits=WorkloadLimits(replace(SET_LIMITS, pods=7)))
        await cluster.sync(manifests=[made(path)])
        await cluster.scale(ADAPTER, "chat-prefill", 2_000_000)

        seen = (await preview_with(cluster)).report
        lines = [line.text for line in text(seen)]
        assert any("STUCK" in line for line in lines) and any(says in line for line in lines) == (path == "components"), lines
        report = await cluster.sync()
        assert report.ending is Ending.STUCK and [says in alarm.text for alarm in report.blocking_alarms] == [True]
        assert pods(cluster) == {"decode": 4, "prefill": 2 + added}

        async with cluster.running():
            await cluster.settle()
        (event,) = (event for event in cluster.there(kinds.EVENT).values() if event["reason"] == LIMITED)
        assert says in event["message"]
        assert pods(cluster) == {"decode": 4, "prefill": 2 + added}

        await cluster.scale(ADAPTER, "chat-prefill", 1)
        assert (await cluster.sync()).ending is Ending.DONE
        assert pods(cluster) == {"decode": 4, "prefill": 1}


@pytest.mark.parametrize("path", PATHS)
async def test_a_service_is_scaled_to_zero_and_back_and_a_restart_does_not_wait_for_it(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[made(path)])
        await cluster.scale(ADAPTER, "chat-decode", 0)
        assert (await cluster.sync()).ending is Ending.DONE
        assert pods(cluster) == {"decode": 0, "prefill": 2}

        asking = made(path)
        asking["spec"]["restart"] = {"id": "a"}
        assert (await cluster.sync(manifests=[asking])).ending is Ending.DONE
        assert cluster.there(kinds.DYNAMO_GRAPH)["chat"]["status"]["restart"] == {"observedID": "a", "phase": "Completed"}

        await cluster.scale(ADAPTER, "chat-decode", 1)
        assert (await cluster.sync()).ending is Ending.DONE
        assert pods(cluster) == {"decode": 2, "prefill": 2}


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_adapter_the_number_is_again_that_of_the_graph(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[made(path)])
        await cluster.scale(ADAPTER, "chat-decode", 3)
        await cluster.sync()

        assert (await cluster.sync(manifests=[made(path, scalingAdapter={})])).ending is Ending.DONE
        await cluster.settle()

        assert (cluster.there(ADAPTER), pods(cluster)) == ({}, {"decode": 4, "prefill": 2})
        await cluster.sync(manifests=[made(path)])
        await cluster.delete(kinds.DYNAMO_GRAPH, "chat")
        await cluster.sync()
        assert cluster.there(ADAPTER) == {}


async def test_an_older_graph_keeps_what_scales_it_and_an_annotation_asks_for_the_adapter() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[made("grove", annotations=OLDER)])
        await cluster.scale(kinds.SCALING_GROUP, "chat-0-decode", 4)
        await cluster.sync()
        assert (cluster.there(ADAPTER), targets(cluster, "grove")["chat-0-decode"]) == ({}, 4)
        uids = {pod["metadata"]["uid"] for pod in cluster.there(kinds.POD).values()}

        report = await cluster.sync(manifests=[made("grove", annotations={POD_FORM: "6"})])

        assert report.ending is Ending.DONE
        assert cluster.there(ADAPTER)["chat-decode"]["spec"]["replicas"] == 4
        assert targets(cluster, "grove") == {"chat-0-decode": 4, "chat-0-prefill": 2}
        assert {pod["metadata"]["uid"] for pod in cluster.there(kinds.POD).values()} == uids


async def test_an_older_graph_is_told_what_new_ones_have() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[made("grove")])
        await cluster.kubectl.patch(kinds.DYNAMO_GRAPH, "default", "chat", {"metadata": {"annotations": OLDER}})
        assert "decode, prefill have no DynamoGraphDeploymentScalingAdapter" in notes(await cluster.look([]))


async def test_an_adapter_that_somebody_applied_counts_and_stays_as_it_is() -> None:
    async with stage() as cluster:
        await put(cluster, ADAPTER, own_adapter(3))

        report = await cluster.sync(manifests=[made("grove")])

        assert report.ending is Ending.DONE
        assert pods(cluster) == {"decode": 6, "prefill": 2}
        assert "ownerReferences" not in cluster.there(ADAPTER)["chat-decode"]["metadata"]
        assert "chat-decode is not the graph's own" in notes(report)


@pytest.mark.parametrize("path", PATHS)
async def test_the_number_of_an_adapter_in_files_is_written_to_it_also_to_zero_and_back(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        for number in (3, 1, 0, 2):
            assert (await cluster.sync(manifests=[made(path)], replicas={GRAPH: {"decode": number}})).ending is Ending.DONE
            await cluster.settle()
            assert pods(cluster) == {"decode": 2 * number, "prefill": 2}
            assert cluster.there(ADAPTER)["chat-decode"]["spec"]["replicas"] == number
            assert (await cluster.sync(manifests=[made(path)])).results == ()


async def test_the_number_of_an_adapter_in_files_is_written_once_and_an_autoscaler_goes_on_from_there() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[made("grove")])
        await put(cluster, kinds.AUTOSCALER, autoscaler("chat-decode", 5))
        async with cluster.playing("autoscaler"):
            report = await cluster.sync(manifests=[made("grove")], replicas={GRAPH: {"decode": 3}})

            written = [each.operation for each in report.results if each.operation.id.kind == ADAPTER.name]
            assert report.ending is Ending.DONE
            assert [(each.target or {})["spec"]["replicas"] for each in written if isinstance(each, Patch)] == [3]
            assert pods(cluster)["decode"] == 10


async def test_an_autoscaler_goes_on_also_while_another_write_of_the_plan_fails() -> None:
    async with stage(addons=ADDONS["components"]) as cluster:
        await cluster.sync(manifests=[made("components")])
        await put(cluster, kinds.AUTOSCALER, autoscaler("chat-decode", 5))
        await cluster.kubectl.delete(kinds.SERVICE, "default", "chat-prefill")
        refuse(cluster.api, lambda new: new["kind"] == "Service")
        async with cluster.playing("autoscaler"):
            report = await cluster.sync(manifests=[made("components")], replicas={GRAPH: {"decode": 3}})

        written = [each.operation for each in report.results if each.operation.id.kind == ADAPTER.name]
        assert [(each.target or {})["spec"]["replicas"] for each in written if isinstance(each, Patch)] == [3]
        assert cluster.there(ADAPTER)["chat-decode"]["spec"]["replicas"] == 5


@pytest.mark.parametrize("path", PATHS)
async def test_a_number_that_is_not_written_to_the_adapter_scales_nothing(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[made(path, 4)])
        refuse(cluster.api, lambda new: new["kind"] == ADAPTER.name and new["spec"]["replicas"] == 2, refused="UPDATE")
        report = await cluster.sync(manifests=[made(path, 4)], replicas={GRAPH: {"decode": 2}})

        assert report.ending is not Ending.DONE
        assert [each.operation.id.name for each in report.results if isinstance(each.operation, Scale | Delete)] == []
        assert pods(cluster) == {"decode": 8, "prefill": 4}


async def test_an_adapter_in_files_brings_no_graph_back_that_has_no_manifest() -> None:
    async with stage() as cluster:
        assert (await cluster.sync(replicas={GRAPH: {"decode": 3}})).results == ()
        await cluster.sync(manifests=[made("grove")])
        assert (await cluster.sync(replicas={GRAPH: {"decode": 3}})).results == ()


async def test_where_the_number_of_a_file_cannot_be_written_it_is_blocked_with_what_to_do() -> None:
    async def blocked(cluster: Stage, **annotations: str) -> tuple[Ending, str]:
        report = await cluster.sync(manifests=[made("grove", annotations=annotations)], replicas={GRAPH: {"decode": 3}})
        assert targets(cluster, "grove")["chat-0-decode"] == 2
        waits = [wait for plan in report.last_pass.planned.plans for wait in plan.deferred if wait.id.kind == ADAPTER.name]
        return report.ending, "; ".join(f"{wait.why}: {wait.to_do}" for wait in waits)

    async with stage() as cluster:
        assert await blocked(cluster, **OLDER) == (
            Ending.STUCK,
            "decode has no adapter: its graph is older than these: "
            f'Ask for it by the annotation {POD_FORM}: "{PodForm.CURRENT}" on the graph.',
        )
        report = await cluster.sync(manifests=[made("grove", annotations=OLDER)], replicas={GRAPH: {"decode": 2}})
        assert report.ending is Ending.DONE
    async with stage() as cluster:
        await put(cluster, ADAPTER, own_adapter(2))
        ending, text = await blocked(cluster)
        assert ending is Ending.STUCK and "`kubectl scale dgdsa/chat-decode -n default --replicas=3`" in text
        await put(cluster, ADAPTER, own_adapter(3))
        assert (await cluster.sync(manifests=[made("grove")], replicas={GRAPH: {"decode": 3}})).ending is Ending.DONE
    async with stage() as cluster:
        await cluster.kubectl.delete(kinds.CRD, "", CRD_NAME)
        await cluster.clock.advance(5)
        ending, text = await blocked(cluster)
        assert ending is Ending.STUCK and text == f"the cluster does not serve {ADAPTER.name}: Apply `engine manifests crds`."
        assert (await cluster.sync(manifests=[made("grove")], replicas={GRAPH: {"decode": 2}})).ending is Ending.DONE


async def test_a_second_adapter_of_a_service_is_said_to_have_no_effect() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[made("grove")])
        first = cluster.there(ADAPTER)["chat-decode"]
        metadata = {"name": "mine", "namespace": "default", "labels": first["metadata"]["labels"]}
        await put(cluster, ADAPTER, {**first, "metadata": metadata, "spec": {**first["spec"], "replicas": 5}})

        report = await cluster.sync()

        assert (report.ending, pods(cluster)) == (Ending.DONE, {"decode": 4, "prefill": 2})
        counts = "only an adapter named chat-decode counts for decode of DynamoGraphDeployment chat"
        remedy = "aim autoscalers at that one, and delete this one"
        assert f"{ADAPTER.name} mine has no effect: {counts}; {remedy}" in notes(report)


async def test_a_second_adapter_is_said_once_to_have_no_effect_in_the_words_of_the_graph() -> None:
    beta_graph = beta(component("decode", scalingAdapter={}))
    beta_graph["metadata"] = {"name": "chat", "namespace": "default"}
    async with stage() as cluster:
        await cluster.sync(manifests=[as_version(beta_graph, ALPHA)])
        first = cluster.there(ADAPTER)["chat-decode"]
        metadata = {"name": "mine", "namespace": "default", "labels": first["metadata"]["labels"]}
        await put(cluster, ADAPTER, {**first, "metadata": metadata})

        seen = await preview_with(cluster, dict(as_version(beta_graph, ALPHA)))

        (note,) = (note for root in seen.report.roots for note in root.notes if "has no effect" in note)
        assert "counts for decode of DynamoGraphDeployment chat" in note


@pytest.mark.parametrize("path", PATHS)
async def test_adapters_are_read_and_written_in_the_version_that_is_served(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await serve_only_newer(cluster)

        report = await cluster.sync(manifests=[made(path)])

        assert report.ending is Ending.DONE and "no adapter is made" not in notes(report)
        adapter = cluster.there(NEWER)["chat-decode"]
        assert adapter["apiVersion"] == "nvidia.com/v1beta1"
        assert adapter["spec"] == {"replicas": 2, "dgdRef": {"name": "chat", "componentName": "decode"}}
        assert adapter["status"]["replicas"] == 2

        await cluster.scale(NEWER, "chat-decode", 3)
        assert (await cluster.sync(manifests=[made(path)])).ending is Ending.DONE
        assert pods(cluster) == {"decode": 6, "prefill": 2}
        again = await cluster.sync(manifests=[made(path)])
        assert [result for result in again.results if result.operation.id.kind == ADAPTER.name] == []

        await cluster.delete(kinds.DYNAMO_GRAPH, "chat")
        await cluster.sync()
        assert cluster.there(NEWER) == {}


async def test_where_adapters_are_not_served_in_any_version_the_definition_is_asked_for() -> None:
    async with stage() as cluster:
        await cluster.kubectl.delete(kinds.CRD, "", CRD_NAME)
        await cluster.clock.advance(5)

        noted = notes(await cluster.sync(manifests=[made("grove")]))

        assert f"the cluster does not serve {ADAPTER.name}; apply `engine manifests crds`" in noted


async def test_a_scaled_adapter_is_previewed_as_what_it_changes() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[made("grove")])
        await cluster.scale(ADAPTER, "chat-decode", 3)

        plans = (await cluster.look([])).planned.plans

        scaled = [operation for plan in plans for operation in plan.operations if isinstance(operation, Scale)]
        assert [(each.id.name, each.replicas, each.reason) for each in scaled] == [("chat-0-decode", 3, Reason.SCALED_OUT)]


@pytest.mark.parametrize(("number", "reason"), [(3, Reason.SCALED_OUT), (1, Reason.SCALED_IN)])
@pytest.mark.parametrize("path", PATHS)
async def test_what_follows_a_scaled_adapter_is_no_drift_and_no_new_template(path: str, number: int, reason: Reason) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[made(path)])
        await cluster.scale(ADAPTER, "chat-prefill", number)

        plans = (await cluster.look([])).planned.plans

        follow = [each for plan in plans for each in plan.operations if isinstance(each, Scale | Patch)]
        assert [(each.id.name.removeprefix("chat-").removeprefix("0-"), each.reason) for each in follow] == [("prefill", reason)]


async def test_what_somebody_else_scaled_is_drift() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[made("grove")])
        await cluster.scale(kinds.PODCLIQUE, "chat-0-prefill", 3)

        plans = (await cluster.look([])).planned.plans

        assert [each.reason for plan in plans for each in plan.operations if isinstance(each, Scale)] == [Reason.DRIFTED]


@pytest.mark.parametrize(
    ("fields", "owner"),
    [(ON, f"{ADAPTER.name} chat-decode asks for 2"), ({"labels": {"some": "label"}}, "spec.services[decode].replicas asks for 2")],
)
async def test_another_scaler_of_what_runs_a_service_is_named_with_what_to_scale(fields: dict[str, Any], owner: str) -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[made("grove", **fields)])
        await cluster.scale(kinds.SCALING_GROUP, "chat-0-decode", 3)

        noted = [note for plan in (await cluster.look([])).planned.plans for note in plan.notes]
        assert any(f"scaled PodCliqueScalingGroup chat-0-decode to 3, but {owner}" in note for note in noted)

        await cluster.sync()
        assert targets(cluster, "grove")["chat-0-decode"] == 2
        assert "restored" not in notes(await cluster.sync())


async def test_a_manifest_that_changes_the_number_that_was_followed_restores_nothing() -> None:
    labels: dict[str, Any] = {"labels": {"some": "label"}}
    async with stage() as cluster:
        await cluster.sync(manifests=[made("grove", **labels)])
        await cluster.scale(kinds.SCALING_GROUP, "chat-0-decode", 3)
        await cluster.sync(manifests=[made("grove", replicas=3, **labels)])

        noted = [note for plan in (await cluster.look([made("grove", replicas=5, **labels)])).planned.plans for note in plan.notes]
        assert not any("restored" in note for note in noted)


async def serve_only_newer(cluster: Stage) -> None:
    """The cluster serves adapters in v1beta1 only, where the service has another field."""
    crd: Any = await cluster.kubectl.get(kinds.CRD, "", CRD_NAME)
    (version,) = crd["spec"]["versions"]
    reference = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["dgdRef"]
    reference["properties"]["componentName"] = reference["properties"].pop("serviceName")
    reference["required"] = ["name", "componentName"]
    await cluster.kubectl.delete(kinds.CRD, "", CRD_NAME)
    await cluster.clock.advance(5)
    spec = {**crd["spec"], "versions": [{**version, "name": NEWER.version}]}
    await cluster.kubectl.create(kinds.CRD, "", {**crd, "metadata": {"name": CRD_NAME}, "spec": spec})
    await cluster.clock.advance(5)


async def put(cluster: Stage, kind: Kind, body: dict[str, Any]) -> None:
    """`kubectl apply` of an object that is no root."""
    await cluster.kubectl.patch(kind, "default", body["metadata"]["name"], body, how="apply", force=True)


def own_adapter(replicas: int) -> dict[str, Any]:
    """An adapter that a user applies."""
    spec = {"replicas": replicas, "dgdRef": {"name": "chat", "serviceName": "decode"}}
    metadata = {"name": "chat-decode", "namespace": "default"}
    return {"apiVersion": ADAPTER.api_version, "kind": ADAPTER.name, "metadata": metadata, "spec": spec}


def autoscaler(name: str, wanted: int) -> dict[str, Any]:
    """An HPA of an adapter whose metrics recommend that many replicas."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "default", "annotations": {"sandbox.grove.io/desired-replicas": str(wanted)}},
        "spec": {"scaleTargetRef": {"apiVersion": ADAPTER.api_version, "kind": ADAPTER.name, "name": name}, "maxReplicas": 9},
    }
