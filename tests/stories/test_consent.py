"""Claims from a template of another namespace: told while its namespace does not share it, and gone on with when it does."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.forecast.forecast import End
from engine.intent import Intent
from engine.runtime.sync_report import Ending
from enginectl.actions.planning import first_pass_of
from resources.base import kinds, labels
from resources.preview.forecasting import forecast_of
from tests.builders import claim_template, clique, podcliqueset, share
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

VAULT = "vault"
WEB = kinds.PODCLIQUESET.id("default", "web")
ENTRY = share("gpu", "PerReplica", namespace=VAULT)
SET = podcliqueset("web", clique("worker", 2, resourceSharing=[ENTRY]), clique("router"))
WHY = "ResourceClaimTemplate vault/gpu is not shared with namespace default; do: add default to its annotation engine.grove.io/shared-with"
CONDITION = "ClaimTemplateNotShared"


async def template(cluster: Stage, shared_with: str | None = None) -> None:
    """The template of another team."""
    await cluster.kubectl.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": VAULT}})
    annotations = {} if shared_with is None else {"annotations": {labels.SHARED_WITH: shared_with}}
    body = {
        "apiVersion": kinds.RESOURCE_CLAIM_TEMPLATE.api_version,
        "kind": kinds.RESOURCE_CLAIM_TEMPLATE.name,
        "metadata": {"name": "gpu", "namespace": VAULT, **annotations},
        "spec": claim_template("gpu")["templateSpec"],
    }
    await cluster.kubectl.create(kinds.RESOURCE_CLAIM_TEMPLATE, VAULT, body)


async def share_with(cluster: Stage, value: str | None) -> None:
    """The other team annotates its template; None: it takes the annotation off."""
    patch = {"metadata": {"annotations": {labels.SHARED_WITH: value}}}
    await cluster.kubectl.patch(kinds.RESOURCE_CLAIM_TEMPLATE, VAULT, "gpu", patch)


def uids(cluster: Stage, *of: Any) -> dict[str, str]:
    """The uids of all objects of these kinds."""
    return {name: body["metadata"]["uid"] for kind in of for name, body in cluster.there(kind).items()}


def conditions(cluster: Stage) -> Mapping[str, str]:
    """The messages of the conditions of the set."""
    status = cluster.there(kinds.PODCLIQUESET)["web"].get("status") or {}
    return {each["type"]: each["message"] for each in status.get("conditions") or ()}


async def test_what_needs_a_template_that_is_not_shared_waits_and_says_so_until_it_is() -> None:
    async with stage() as cluster:
        await template(cluster)

        current = await cluster.look([SET])
        (plan,) = current.planned.plans
        assert {wait.why for wait in plan.blocked if wait.id.kind == kinds.RESOURCE_CLAIM.name} == {WHY}
        forecast = forecast_of(first_pass_of(current, Intent((SET,))))
        assert forecast is not None
        assert forecast.end_of(WEB) is End.STUCK

        await cluster.apply(SET)
        report = await cluster.sync(patience=60)

        assert report.ending is Ending.STUCK
        assert [pod["metadata"]["labels"][labels.PODCLIQUE] for pod in cluster.there(kinds.POD).values()] == ["web-0-router"]
        assert conditions(cluster)[CONDITION] == WHY
        assert WHY in {event["message"] for event in cluster.there(kinds.EVENT).values() if event["reason"] == CONDITION}
        before = uids(cluster, kinds.POD, kinds.PODCLIQUE, kinds.PODGANG)

        await share_with(cluster, "other, default")
        assert (await cluster.sync()).ending is Ending.DONE

        assert before.items() <= uids(cluster, kinds.POD, kinds.PODCLIQUE, kinds.PODGANG).items()
        assert (len(cluster.there(kinds.POD)), len(cluster.there(kinds.RESOURCE_CLAIM))) == (3, 2)
        assert CONDITION not in conditions(cluster)
        await cluster.sync()
        assert cluster.process.count == 0


async def test_when_sharing_ends_copies_stay_and_a_lost_one_is_made_again() -> None:
    async with stage() as cluster:
        await template(cluster, "default")
        await cluster.apply(SET)
        assert (await cluster.sync()).ending is Ending.DONE
        before = uids(cluster, kinds.POD, kinds.RESOURCE_CLAIM)

        await share_with(cluster, None)
        await cluster.sync()
        assert (cluster.process.count, uids(cluster, kinds.POD, kinds.RESOURCE_CLAIM)) == (0, before)

        for pod in [pod for pod in cluster.there(kinds.POD) if "worker" in pod]:
            await cluster.delete(kinds.POD, pod)
        for claim in list(cluster.there(kinds.RESOURCE_CLAIM)):
            await cluster.delete(kinds.RESOURCE_CLAIM, claim)
        await cluster.clock.advance(30)
        assert (await cluster.sync()).ending is Ending.DONE

        claims = uids(cluster, kinds.RESOURCE_CLAIM)
        assert sorted(claims) == ["web-0-worker-0-gpu", "web-0-worker-1-gpu"]
        assert not set(claims.values()) & set(before.values())
        assert (len(cluster.there(kinds.POD)), conditions(cluster).get(CONDITION)) == (3, None)


async def test_a_settled_set_of_an_engine_that_asked_for_no_consent_is_left_alone_but_for_a_record() -> None:
    async with stage() as cluster:
        await template(cluster, "default")
        await cluster.apply(SET)
        assert (await cluster.sync()).ending is Ending.DONE
        await share_with(cluster, None)
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "web", {"metadata": {"annotations": {labels.COPIED_CLAIMS: None}}})
        kept = (kinds.POD, kinds.PODCLIQUE, kinds.PODGANG, kinds.RESOURCE_CLAIM)
        revisions = {name: body["metadata"]["resourceVersion"] for kind in kept for name, body in cluster.there(kind).items()}

        assert (await cluster.sync()).ending is Ending.DONE

        assert cluster.process.count == 1
        assert labels.COPIED_CLAIMS in cluster.there(kinds.PODCLIQUESET)["web"]["metadata"]["annotations"]
        assert {name: body["metadata"]["resourceVersion"] for kind in kept for name, body in cluster.there(kind).items()} == revisions
        assert CONDITION not in conditions(cluster)


async def test_run_goes_on_by_itself_when_the_template_is_shared() -> None:
    async with stage() as cluster:
        await template(cluster)
        await cluster.apply(SET)
        async with cluster.running():
            await cluster.until(lambda: len(cluster.there(kinds.POD)) == 1 and CONDITION in conditions(cluster))
            await share_with(cluster, "default")
            await cluster.until(lambda: len(cluster.there(kinds.POD)) == 3)


async def test_a_manifest_that_is_applied_again_keeps_the_record() -> None:
    async with stage() as cluster:
        await template(cluster, "default")
        assert (await cluster.sync(manifests=[SET])).ending is Ending.DONE
        recorded = cluster.there(kinds.PODCLIQUESET)["web"]["metadata"]["annotations"]
        await share_with(cluster, None)

        assert (await cluster.sync(manifests=[SET])).ending is Ending.DONE

        assert cluster.process.count == 0
        assert cluster.there(kinds.PODCLIQUESET)["web"]["metadata"]["annotations"] == recorded
        assert labels.COPIED_CLAIMS in recorded
