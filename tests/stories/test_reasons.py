"""The reason and the cause of operations, in each situation: in previews, in forecasts and in what a sync does."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import pytest
from msgspec import Struct, field

from engine.operation import Cause, Operation
from engine.reason import BLOCKERS, Reason
from engine.verb import Verb
from enginectl.actions.planning import first_pass_of
from resources.base import kinds, labels
from resources.preview.forecasting import forecast_of
from tests.builders import applying, claim_template, clique, group, podcliqueset, share
from tests.stories.pods import running
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

Body = dict[str, Any]


def workload(
    version: int = 1,
    *,
    replicas: int = 1,
    router: Mapping[str, Any] | None = None,
    grace: int = 30,
    is_sharing: bool = True,
    **template: Any,
) -> Body:
    """A router of two pods, and a scaling group of two workers, each with a claim of its own. Pods take `grace` seconds to end."""
    pod_spec = {**running(version), "terminationGracePeriodSeconds": grace}
    cliques = clique("router", 2, minAvailable=1, pod_spec=pod_spec, **(router or {})), clique("worker", 1, pod_spec=pod_spec)
    claims: Body = {"resourceClaimTemplates": [claim_template("disk")]} if is_sharing else {}
    sharing: Body = {"resourceSharing": [share("disk", "PerReplica")]} if is_sharing else {}
    pool = group("pool", "worker", replicas=2, **sharing)
    return podcliqueset("llm", *cliques, groups=(pool,), replicas=replicas, terminationDelay="10s", **claims, **template)


def with_metadata(manifest: Body, **metadata: Any) -> Body:
    """The manifest with labels or annotations."""
    return {**manifest, "metadata": {**manifest["metadata"], **metadata}}


async def pods(cluster: Stage, prefix: str) -> list[str]:
    """The names of the pods of a clique."""
    return sorted(name for name in cluster.there(kinds.POD) if name.startswith(prefix))


# --- what happens to a workload that has settled


async def edit_image(cluster: Stage) -> None:
    await cluster.apply(workload(2))


async def edit_image_of_short_lives(cluster: Stage) -> None:
    await cluster.apply(workload(2, grace=0))


async def edit_labels_of_a_clique(cluster: Stage) -> None:
    await cluster.apply(workload(router={"labels": {"team": "x"}}))


async def edit_priority(cluster: Stage) -> None:
    await cluster.apply(workload(priorityClassName="system-node-critical"))


async def annotate_set(cluster: Stage) -> None:
    await cluster.apply(with_metadata(workload(), annotations={"team": "x"}))


async def change_annotation_of_set(cluster: Stage) -> None:
    await annotate_set(cluster)
    await cluster.sync()
    await cluster.clock.advance(2)
    await cluster.apply(with_metadata(workload(), annotations={"team": "y"}))


async def label_set(cluster: Stage) -> None:
    await cluster.apply(with_metadata(workload(), labels={"team": "x"}))


async def edit_headless_service(cluster: Stage) -> None:
    await cluster.apply(workload(headlessServiceConfig={"publishNotReadyAddresses": False}))


async def add_autoscaler(cluster: Stage) -> None:
    await cluster.apply(workload(router={"autoScalingConfig": {"minReplicas": 1, "maxReplicas": 5}}))


async def scale_set_out(cluster: Stage) -> None:
    await cluster.apply(workload(replicas=2))


async def scale_set_in(cluster: Stage) -> None:
    await cluster.apply(workload(replicas=0))


async def scale_clique_out(cluster: Stage) -> None:
    await cluster.scale(kinds.PODCLIQUE, "llm-0-router", 4)


async def scale_clique_in(cluster: Stage) -> None:
    await cluster.scale(kinds.PODCLIQUE, "llm-0-router", 1)


async def scale_group_out(cluster: Stage) -> None:
    await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 4)


async def scale_group_in(cluster: Stage) -> None:
    await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 1)


async def scale_group_to_zero_and_out(cluster: Stage) -> None:
    await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 0)
    await cluster.sync()
    await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 3)


async def scale_during_an_update(cluster: Stage) -> None:
    await cluster.apply(workload(2))
    await cluster.scale(kinds.PODCLIQUE, "llm-0-router", 4)
    await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 4)


async def lose_a_pod(cluster: Stage) -> None:
    name = (await pods(cluster, "llm-0-router-"))[0]
    await cluster.kubectl.delete(kinds.POD, "default", name, propagation="Background", grace=0)


async def lose_a_pod_and_scale(cluster: Stage) -> None:
    await lose_a_pod(cluster)
    await scale_clique_out(cluster)


async def lose_a_service_and_scale(cluster: Stage) -> None:
    await cluster.delete(kinds.SERVICE, "llm-0")
    await scale_clique_out(cluster)


async def let_a_pod_fail(cluster: Stage) -> None:
    name = (await pods(cluster, "llm-0-router-"))[0]
    await cluster.kubectl.patch(kinds.POD, "default", name, {"status": {"phase": "Failed"}}, subresource="status")


async def delete_a_clique(cluster: Stage) -> None:
    await cluster.delete(kinds.PODCLIQUE, "llm-0-pool-0-worker")


async def delete_a_group(cluster: Stage) -> None:
    await cluster.delete(kinds.SCALING_GROUP, "llm-0-pool")


async def delete_a_gang(cluster: Stage) -> None:
    await cluster.delete(kinds.PODGANG, "llm-0")


async def delete_the_set(cluster: Stage) -> None:
    await cluster.delete(kinds.PODCLIQUESET, "llm")


async def break_for_long(cluster: Stage, prefix: str) -> None:
    """Pods fail for longer than the termination delay; the breach is recorded meanwhile."""
    async with cluster.running():
        for name in await pods(cluster, prefix):
            cluster.fail(name, "crash")
        await cluster.clock.advance(8)
    await cluster.clock.advance(20)


async def break_a_replica(cluster: Stage) -> None:
    await break_for_long(cluster, "llm-0-router-")


async def break_a_group_replica(cluster: Stage) -> None:
    await break_for_long(cluster, "llm-0-pool-1-worker-")


async def change_a_list_of_pods(cluster: Stage) -> None:
    groups = cluster.there(kinds.PODGANG)["llm-0"]["spec"]["podgroups"]
    await cluster.kubectl.patch(
        kinds.PODGANG, "default", "llm-0", {"spec": {"podgroups": [{**each, "podReferences": []} for each in groups]}}
    )


async def change_a_template_in_a_clique(cluster: Stage) -> None:
    await cluster.kubectl.patch(kinds.PODCLIQUE, "default", "llm-0-router", {"spec": {"podSpec": running(7)}})


async def remove_a_label_of_a_gang(cluster: Stage) -> None:
    await cluster.kubectl.patch(kinds.PODGANG, "default", "llm-0", {"metadata": {"labels": {"app.kubernetes.io/component": None}}})


async def change_a_service(cluster: Stage) -> None:
    await cluster.kubectl.patch(kinds.SERVICE, "default", "llm-0", {"spec": {"publishNotReadyAddresses": False}})


async def create_an_object_of_the_set(cluster: Stage) -> None:
    service = cluster.there(kinds.SERVICE)["llm-0"]
    metadata = {key: service["metadata"][key] for key in ("labels", "ownerReferences", "namespace")}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {**metadata, "name": "llm-0-stray"}, "spec": {"clusterIP": "None"}}
    await cluster.kubectl.create(kinds.SERVICE, "default", body)


async def take_hashes_of_another_version(cluster: Stage) -> None:
    for kind in (kinds.POD, kinds.PODCLIQUE):
        for name, body in cluster.there(kind).items():
            other = {labels.TEMPLATE_HASH: f"v0-{body['metadata']['labels'][labels.TEMPLATE_HASH]}"}
            await cluster.kubectl.patch(kind, "default", name, {"metadata": {"labels": other}})


class Situation(Struct, frozen=True):
    """What happens to a settled workload, and why its objects are created, changed and removed afterwards."""

    act: Callable[[Stage], Awaitable[None]]
    expected: Mapping[str, set[str]]
    """Reason -> the operations that have it, each as its verb and kind: `create Pod`."""
    why: str = ""
    """Part of a sentence of one of the operations."""
    initial: Body = field(default_factory=workload)


def these(*whats: str) -> set[str]:
    """These operations."""
    return set(whats)


REPLACED = these("create Pod", "create PodClique", "delete Pod", "delete PodClique", "release PodClique")
POOL_OUT = these("create Pod", "create PodClique", "create PodGang", "create ResourceClaim")
NEW_REPLICA = POOL_OUT | these("create PodCliqueScalingGroup", "create Service")
REMOVED = these("delete Pod", "delete PodClique", "delete PodGang", "delete ResourceClaim", "release PodClique")

SITUATIONS: Mapping[str, Situation] = {
    "edit of the image": Situation(edit_image, {"TemplateChanged": REPLACED | these("patch PodClique", "patch PodGang")}),
    "edit of the image, pods gone at once": Situation(
        edit_image_of_short_lives,
        {"TemplateChanged": REPLACED | these("patch PodClique", "patch PodGang")},
        initial=workload(grace=0),
    ),
    "edit of labels": Situation(
        edit_labels_of_a_clique, {"TemplateChanged": these("create Pod", "delete Pod", "patch PodClique", "patch PodGang")}
    ),
    "priority class": Situation(edit_priority, {"TemplateChanged": REPLACED | these("patch PodClique", "patch PodGang")}),
    "annotation of the set": Situation(annotate_set, {"TemplateChanged": these("patch PodGang")}),
    "annotation of the set changed": Situation(change_annotation_of_set, {"TemplateChanged": these("patch PodGang")}),
    "label of the set": Situation(label_set, {"TemplateChanged": these("patch PodGang")}),
    "headless Service": Situation(edit_headless_service, {"TemplateChanged": these("patch Service")}),
    "autoscaler": Situation(add_autoscaler, {"TemplateChanged": these("create HorizontalPodAutoscaler", "patch PodClique")}),
    "set scaled out": Situation(scale_set_out, {"ScaledOut": NEW_REPLICA, "GangScheduled": these("patch Pod")}),
    "set scaled in": Situation(
        scale_set_in, {"ScaledIn": REMOVED | these("delete PodCliqueScalingGroup", "release PodCliqueScalingGroup", "delete Service")}
    ),
    "clique scaled out": Situation(scale_clique_out, {"ScaledOut": these("create Pod"), "PodsChanged": these("patch PodGang")}),
    "clique scaled in": Situation(scale_clique_in, {"ScaledIn": these("delete Pod"), "PodsChanged": these("patch PodGang")}),
    "group scaled out": Situation(scale_group_out, {"ScaledOut": POOL_OUT}),
    "group scaled in": Situation(scale_group_in, {"ScaledIn": REMOVED}),
    "group scaled to 0 and out": Situation(
        scale_group_to_zero_and_out,
        {"ScaledOut": POOL_OUT, "PodsChanged": these("patch PodGang"), "GangScheduled": these("patch Pod")},
    ),
    "scaled during an update": Situation(
        scale_during_an_update, {"ScaledOut": POOL_OUT, "TemplateChanged": REPLACED | these("patch PodClique", "patch PodGang")}
    ),
    "pod lost": Situation(lose_a_pod, {"Missing": these("create Pod")}),
    "pod lost and scaled": Situation(
        lose_a_pod_and_scale, {"Missing": these("create Pod"), "ScaledOut": these("create Pod"), "PodsChanged": these("patch PodGang")}
    ),
    "Service lost and scaled": Situation(
        lose_a_service_and_scale,
        {"Missing": these("create Service"), "ScaledOut": these("create Pod"), "PodsChanged": these("patch PodGang")},
    ),
    "pod failed": Situation(let_a_pod_fail, {"PodEnded": these("create Pod", "delete Pod"), "PodsChanged": these("patch PodGang")}),
    "clique deleted": Situation(
        delete_a_clique,
        {
            "UserDeleted": these("delete Pod", "release PodClique"),
            "Missing": these("create Pod", "create PodClique"),
            "PodsChanged": these("patch PodGang"),
        },
    ),
    "group deleted": Situation(
        delete_a_group,
        {
            "UserDeleted": these("delete Pod", "delete PodClique", "release PodClique", "release PodCliqueScalingGroup"),
            "Missing": these("create Pod", "create PodClique", "create PodCliqueScalingGroup"),
            "PodsChanged": these("patch PodGang"),
            "GangScheduled": these("patch Pod"),
        },
        initial=workload(is_sharing=False),
    ),
    "gang deleted": Situation(delete_a_gang, {"Missing": these("create PodGang")}),
    "set deleted": Situation(
        delete_the_set,
        {
            "SetDeleted": REMOVED
            | these("delete PodCliqueScalingGroup", "release PodCliqueScalingGroup", "delete Service", "release PodCliqueSet")
            | {f"delete {kind}" for kind in ("Role", "RoleBinding", "Secret", "ServiceAccount")}
        },
    ),
    "gang terminated": Situation(
        break_a_replica, {"GangTerminated": REPLACED | these("patch PodGang"), "GangScheduled": these("patch Pod")}, why="is recycled"
    ),
    "replica of a group terminated": Situation(break_a_group_replica, {"GangTerminated": REPLACED | these("patch PodGang")}),
    "list of pods changed by somebody": Situation(change_a_list_of_pods, {"Drifted": these("patch PodGang")}),
    "template changed by somebody in a clique": Situation(change_a_template_in_a_clique, {"Drifted": these("patch PodClique")}),
    "label removed by somebody": Situation(remove_a_label_of_a_gang, {"Drifted": these("patch PodGang")}),
    "Service changed by somebody": Situation(change_a_service, {"Drifted": these("patch Service")}),
    "unspecified object": Situation(
        create_an_object_of_the_set, {"Orphaned": these("delete Service")}, why="PodCliqueSet llm does not specify it"
    ),
    "hashes of another version": Situation(take_hashes_of_another_version, {"Adopted": these("patch Pod", "patch PodClique")}),
}


def by_reason(operations: Iterable[Operation]) -> dict[str, set[str]]:
    """Reason -> the operations that have it, as verb and kind. Statuses, and the root, are left out."""
    found: dict[str, set[str]] = {}
    for operation in operations:
        if operation.verb is not Verb.STATUS:
            found.setdefault(str(operation.reason), set()).add(f"{operation.verb} {operation.id.kind}")
    return found


@pytest.mark.parametrize("name", SITUATIONS)
async def test_the_reasons_of_a_situation_are_the_same_in_the_forecast_and_in_what_is_done(name: str) -> None:
    situation = SITUATIONS[name]
    async with stage() as cluster:
        await cluster.apply(situation.initial)
        await cluster.sync()
        await cluster.clock.advance(2)

        await situation.act(cluster)
        await cluster.clock.advance(0.5)
        current = await cluster.look()
        forecast = forecast_of(first_pass_of(current, applying(())))
        assert forecast is not None
        planned = [operation for plan in current.planned.plans for operation in plan.operations]
        report = await cluster.sync()
        done = [result.operation for result in report.results]

        assert by_reason(done) == situation.expected
        assert by_reason(forecast.operations()) == situation.expected
        assert all(whats <= situation.expected[reason] for reason, whats in by_reason(planned).items())
        assert not situation.why or any(situation.why in operation.why for operation in planned)
        assert all((each.cause is Cause.DRIFT) == (each.reason in DRIFTS) for each in done if each.verb is not Verb.STATUS)


DRIFTS = {Reason.MISSING, Reason.DRIFTED, Reason.ORPHANED}


async def test_everything_of_a_new_set_is_created_because_of_its_manifest() -> None:
    async with stage() as cluster:
        await cluster.apply(workload())

        current = await cluster.look()
        forecast = forecast_of(first_pass_of(current, applying(())))
        report = await cluster.sync()

        assert forecast is not None
        for operations in (forecast.operations(), (result.operation for result in report.results)):
            reasons = by_reason(operations)
            assert reasons.keys() == {"ManifestChanged", "GangScheduled"}


async def test_what_a_manifest_changes_in_the_set_and_below_it() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[workload()])

        changed = with_metadata(workload(2), labels={"team": "x"})
        report = await cluster.sync(manifests=[changed])

        reasons = by_reason(result.operation for result in report.results)
        assert reasons["ManifestChanged"] == {"patch PodCliqueSet"}
        assert reasons.keys() == {"ManifestChanged", "TemplateChanged"}


async def test_a_root_that_is_removed_because_it_has_no_manifest_is_pruned() -> None:
    async with stage() as cluster:
        await cluster.apply(workload())
        await cluster.sync()

        removals = cluster.removing(kinds.PODCLIQUESET, "llm", after_manifests=True)
        report = await cluster.sync(removals=removals)

        reasons = by_reason(result.operation for result in report.results)
        assert reasons["Pruned"] == {"delete PodCliqueSet"}
        assert reasons.keys() == {"Pruned", "SetDeleted"}


ELSEWHERE = {Reason.UNSPECIFIED, Reason.STATUS_CHANGED, Reason.PRUNED, Reason.MANIFEST_CHANGED, *BLOCKERS}
"""Reasons that other tests of this module cover, and those that are not of operations."""
OF_DOMAINS = {Reason.DOMAIN_REPLACED, Reason.DOMAIN_RELEASED}
"""Reasons that tests of fabric domains cover."""
OF_TAKE_OVER = {Reason.TAKEN_OVER}
"""Reasons that tests of the take-over cover."""
IN_DOUBT = {Reason.CLIQUE_CREATED}
"""Reasons that only an interrupted pass leads to."""


def test_every_reason_of_an_operation_has_a_situation() -> None:
    covered = {Reason(reason) for situation in SITUATIONS.values() for reason in situation.expected}

    assert covered == set(Reason) - ELSEWHERE - OF_DOMAINS - OF_TAKE_OVER - IN_DOUBT
