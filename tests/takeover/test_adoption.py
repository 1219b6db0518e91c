"""A cluster that Grove's operator has run is taken over without a restart (M1 to M8 of docs/behaviour/take-over.md)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from engine.guard import Limits
from engine.leaves import explain
from engine.operation import Operation, body_of
from engine.runtime.sync_report import Ending, SyncReport
from engine.verb import Verb
from resources.base import kinds, labels
from resources.ports.configuration import Configuration
from tests.stories.pods import images
from tests.stories.stage import Stage
from tests.takeover.worlds import ALL, WORLDS, World, inference, planned, run_by_grove, serving, uids

pytestmark = pytest.mark.anyio

EVERY_WORLD = pytest.mark.parametrize("name", WORLDS)
HASH = f"metadata.labels.{labels.TEMPLATE_HASH}"
WRITTEN = {"Pod": {HASH}, "PodClique": {HASH}}
"""Kind -> the fields outside its status that a take-over changes, for a set at rest."""


def changed_fields(operations: tuple[Operation, ...]) -> Iterator[tuple[str, str]]:
    """Kind and path of each field outside statuses that operations change."""
    for operation in operations:
        if operation.verb is not Verb.STATUS:
            yield from ((operation.id.kind, ".".join(change.path)) for change in explain(operation))


def status_of(cluster: Stage, kind: Any, name: str) -> dict[str, Any]:
    return dict(cluster.there(kind)[name]["status"])


@dataclass(frozen=True)
class TakeOver:
    """A world before it is taken over, after the first sync, and what was planned and done until nothing was left to do."""

    before: Mapping[str, str]
    """The uid of every object."""
    keys_before: set[tuple[str, str]]
    plans: Sequence[tuple[Operation, ...]]
    """Before each sync, those without operations left out."""
    report: SyncReport[Configuration]
    """Of the first sync, as all that follows but `second_writes`."""
    after: Mapping[str, str]
    keys_after: set[tuple[str, str]]
    status: Mapping[str, Any]
    """The status of the set."""
    pods: Sequence[Mapping[str, Any]]
    second_writes: int
    """How often the second sync wrote."""


_TAKE_OVERS: dict[str, TakeOver] = {}
"""What has been played, by the name of its world: to play it takes longer than to judge it by all rules."""


async def taken_over(name: str) -> TakeOver:
    """The world of that name taken over. It is played once."""
    if name not in _TAKE_OVERS:
        _TAKE_OVERS[name] = await _played(WORLDS[name])
    return _TAKE_OVERS[name]


async def _played(world: World) -> TakeOver:
    async with run_by_grove(world) as (cluster, _):
        before, keys_before, plans = uids(cluster), metadata_keys(cluster), [await planned(cluster)]
        report = await cluster.sync()
        after, keys_after = uids(cluster), metadata_keys(cluster)
        status = status_of(cluster, kinds.PODCLIQUESET, world.manifest["metadata"]["name"])
        pods = list(cluster.there(kinds.POD).values())
        plans.append(await planned(cluster))
        await cluster.sync()
        second_writes = cluster.process.count
        while operations := await planned(cluster):
            plans.append(operations)
            await cluster.sync()
    return TakeOver(before, keys_before, [plan for plan in plans if plan], report, after, keys_after, status, pods, second_writes)


@EVERY_WORLD
async def test_M1_no_object_is_deleted_or_created_and_every_object_stays_the_same(name: str) -> None:
    story = await taken_over(name)

    assert {operation.verb for operation in story.plans[0]} <= {Verb.PATCH, Verb.STATUS}
    assert (story.report.ending, story.report.failures) == (Ending.DONE, ())
    assert story.after == story.before != {}


@EVERY_WORLD
async def test_M2_only_hash_labels_and_statuses_are_written(name: str) -> None:
    written = {change for plan in (await taken_over(name)).plans for change in changed_fields(plan)}

    assert {(kind, path) for kind, path in written if path not in WRITTEN.get(kind, ())} - WORLDS[name].written == set()


@EVERY_WORLD
async def test_M3_a_second_sync_writes_nothing(name: str) -> None:
    assert (await taken_over(name)).second_writes == 0


@EVERY_WORLD
async def test_M4_no_update_begins_and_no_counter_drops(name: str) -> None:
    story = await taken_over(name)

    for operation in story.plans[0]:
        progress = ((body_of(operation) or {}).get("status") or {}).get("updateProgress") or {}
        assert "updateEndedAt" in progress or not progress, operation
        drops = [change for change in explain(operation) if change.path[-1].endswith("Replicas")]
        assert drops == []
    assert "updateProgress" not in story.status
    assert story.status["availableReplicas"] == story.status["updatedReplicas"] == story.status["replicas"]
    hashes = {pod["metadata"]["labels"][labels.TEMPLATE_HASH][:3] for pod in story.pods}
    assert hashes == {"v3-"}


async def test_M5_the_users_manifest_is_no_edit_although_the_operator_has_stored_it_in_another_spelling() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, _):
        await cluster.sync()
        before = uids(cluster)

        await cluster.apply(inference())
        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert uids(cluster) == before
        assert "updateProgress" not in status_of(cluster, kinds.PODCLIQUESET, "llm")


async def test_M5_the_users_manifest_may_be_applied_before_the_first_sync() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, _):
        before = uids(cluster)

        await cluster.apply(inference())
        await cluster.sync()

        assert uids(cluster) == before


async def test_M6_replicas_of_the_template_that_were_edited_without_effect_replace_nothing() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, grove):
        before = uids(cluster)
        manifest = inference()
        manifest["spec"]["template"]["cliques"][2]["spec"] |= {"replicas": 5, "minAvailable": 2}
        await grove.client.patch(kinds.PODCLIQUESET, "default", "llm", {"spec": manifest["spec"]})

        await cluster.sync()

        assert uids(cluster) == before


async def test_M7_domains_stay_the_same_objects_with_their_finalizers_and_pods_keep_their_claims() -> None:
    async with run_by_grove(WORLDS["domains and own claims"]) as (cluster, _):
        specs = {name: pod["spec"] for name, pod in cluster.there(kinds.POD).items()}
        claims = uids(cluster, kinds.RESOURCE_CLAIM, kinds.RESOURCE_CLAIM_TEMPLATE)

        await cluster.sync()

        assert {name: pod["spec"] for name, pod in cluster.there(kinds.POD).items()} == specs
        assert uids(cluster, kinds.RESOURCE_CLAIM, kinds.RESOURCE_CLAIM_TEMPLATE) == claims


async def test_M8_what_was_changed_by_hand_in_a_member_is_replaced_and_shown_before() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, grove):
        changed = {"spec": {"podSpec": serving(7)}}
        await grove.client.patch(kinds.PODCLIQUE, "default", "llm-0-pool-1-work", changed)

        deleted = {operation.id.name for operation in await planned(cluster) if operation.verb is Verb.DELETE}
        await cluster.sync()

        assert deleted and all(name.startswith("llm-0-pool-1-") for name in deleted)
        assert images(cluster.there(kinds.POD).values()) == {"example/worker:1"}


def metadata_keys(cluster: Stage) -> set[tuple[str, str]]:
    """Every label, annotation, finalizer and owner of every object, with the object."""
    found = set()
    for kind in (kinds.PODCLIQUESET, *ALL):
        for name, body in cluster.there(kind).items() if cluster.serves(kind) else ():
            meta = body["metadata"]
            keys = [*meta.get("labels", ()), *meta.get("annotations", ()), *meta.get("finalizers", ())]
            keys += [f"owner {owner['kind']} {owner['name']}" for owner in meta.get("ownerReferences", ())]
            found |= {(f"{kind.name} {name}", key) for key in keys}
    return found


@pytest.mark.parametrize("name", [name for name, world in WORLDS.items() if not world.written])
async def test_M17_no_metadata_is_added_that_the_operator_does_not_know(name: str) -> None:
    story = await taken_over(name)

    assert story.keys_after == story.keys_before != set()


def with_former_token(name: str) -> World:
    """The world as Grove v0.1.0-alpha.11 and earlier leaves it: the token Secret has another name."""
    world = WORLDS[name]
    return replace(world, options=replace(world.options, token="initc-sa-token-secret"))


def secrets(cluster: Stage) -> set[str]:
    return set(cluster.there(kinds.SECRET))


async def test_M23_the_token_of_earlier_releases_stays_until_no_pod_mounts_it() -> None:
    async with run_by_grove(with_former_token("start order in groups")) as (cluster, _):
        before = uids(cluster)
        both = {"ord-initc-sa-token-secret", "ord-ic-sat"}

        for _ in range(2):
            report = await cluster.sync()
            assert report.ending is Ending.DONE
            assert secrets(cluster) == both
        assert cluster.process.count == 0
        assert before.items() <= uids(cluster).items()

        edited = WORLDS["start order in groups"].manifest
        for clique in edited["spec"]["template"]["cliques"]:
            clique["spec"]["podSpec"] = serving(2)
        await cluster.apply(edited)
        assert (await cluster.sync()).ending is Ending.DONE
        assert (await cluster.sync()).ending is Ending.DONE
        assert secrets(cluster) == {"ord-ic-sat"}


async def test_M23_where_no_pod_mounts_it_the_token_of_earlier_releases_goes_without_the_budget_of_deletes() -> None:
    async with run_by_grove(with_former_token("inference")) as (cluster, _):
        before = uids(cluster)

        assert (await cluster.sync(limits=Limits(max_deletes=0))).ending is Ending.DONE

        assert secrets(cluster) == {"llm-ic-sat"}
        assert set(before) - set(uids(cluster)) == {"Secret llm-initc-sa-token-secret"}
