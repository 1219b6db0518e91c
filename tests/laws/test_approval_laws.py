"""The laws of approvals: what was approved is done in full, and nothing else is ever done."""

import copy
from typing import Any

import anyio
from hypothesis import given
from hypothesis import strategies as some

from engine.approval.approval import Approval
from engine.approval.ledger import Ledger
from engine.approval.staleness import changed_roots
from engine.operation import Operation, Outcome
from engine.verb import Verb
from resources.admission.admit import admit
from resources.admission.request import Act, Request
from resources.base import kinds
from resources.preview.pod_recognition import RECOGNITION
from tests.builders import clique, podcliqueset
from tests.laws.cases import cases
from tests.laws.test_forecast_laws import ROOT, fabric_histories, histories
from tests.stories.approvals import approve, approve_then_sync, sync_within
from tests.stories.fabric import rack
from tests.stories.forecasts import stable_name
from tests.stories.pods import running
from tests.stories.stage import Stage, stage

Body = dict[str, Any]


async def live_through(cluster: Stage, history: list[Body]) -> None:
    """Apply one manifest after the other, as a user or with the plan in turns, then delete the set; every time within an approval."""
    for number, manifest in enumerate(history):
        existing = cluster.there(kinds.PODCLIQUESET).get("demo")
        act = Act.UPDATE if existing else Act.CREATE
        decision = admit(Request(act, ROOT, manifest, existing), cluster.setup)
        if not decision.allowed:
            continue
        if number % 2 == 0:
            (await approve_then_sync(cluster, [decision.body or manifest])).assert_equal()
        else:
            await cluster.apply(manifest)
            (await approve_then_sync(cluster)).assert_equal()
    if cluster.there(kinds.PODCLIQUESET):
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        (await approve_then_sync(cluster)).assert_equal()
    assert cluster.there(kinds.PODCLIQUESET) == {}


@given(histories())
@cases(5)
def test_what_was_approved_is_done(history: list[Body]) -> None:
    async def story() -> None:
        async with stage(nodes=30) as cluster:
            await live_through(cluster, history)

    anyio.run(story)


@given(fabric_histories())
@cases(4)
def test_what_was_approved_is_done_with_domains(history: list[Body]) -> None:
    async def story() -> None:
        async with rack(nodes=30) as cluster:
            await live_through(cluster, history)

    anyio.run(story)


EDITS = ("nothing", "image", "replicas", "delete set", "delete pod", "evict pod", "delete service", "scale clique", "other set", "label")


async def edit(cluster: Stage, what: str, manifest: Body) -> None:
    """Somebody changes something."""
    pods, cliques, services = (sorted(cluster.there(kind)) for kind in (kinds.POD, kinds.PODCLIQUE, kinds.SERVICE))
    if what == "image":
        changed = copy.deepcopy(manifest)
        changed["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = "example/worker:other"
        await cluster.apply(changed)
    elif what == "replicas":
        await cluster.scale(kinds.PODCLIQUESET, "demo", manifest["spec"]["replicas"] + 1)
    elif what == "delete set":
        await cluster.delete(kinds.PODCLIQUESET, "demo")
    elif what == "other set":
        await cluster.apply(podcliqueset("other", clique("a", pod_spec=running(1))))
    elif what == "delete pod" and pods:
        await cluster.delete(kinds.POD, pods[-1])
    elif what == "evict pod" and pods:
        cluster.fail(pods[0], "evict")
    elif what == "delete service" and services:
        await cluster.delete(kinds.SERVICE, services[0])
    elif what == "scale clique" and cliques:
        await cluster.scale(kinds.PODCLIQUE, cliques[-1], 4)
    elif what == "label" and cliques:
        await cluster.kubectl.patch(kinds.PODCLIQUE, "default", cliques[0], {"metadata": {"labels": {"app.kubernetes.io/name": "x"}}})
    await cluster.clock.advance(3)


def may_be_made(approval: Approval, operation: Operation, ended: set[str]) -> bool:
    """Whether the approval lists the operation, by verb and object, or it replaces a pod that has ended."""
    if operation.verb in (Verb.STATUS, Verb.PATCH):
        return True
    if operation.verb is Verb.CREATE:
        return any(stable_name(operation) in key for key in approval.desired)
    is_listed = any(each.verb is operation.verb and each.subject.name == stable_name(operation) for each in approval.allow)
    return is_listed or (operation.verb is Verb.DELETE and operation.id.name in ended)


@given(histories(), some.sampled_from(EDITS))
@cases(8)
def test_whatever_changes_between_nothing_is_done_that_was_not_approved(history: list[Body], what: str) -> None:
    async def story() -> None:
        async with stage(nodes=30) as cluster:
            before, after = history[0], history[1]
            if not admit(Request(Act.CREATE, ROOT, before, None), cluster.setup).allowed:
                return
            await cluster.apply(before)
            await cluster.sync()
            if not admit(Request(Act.UPDATE, ROOT, after, cluster.there(kinds.PODCLIQUESET)["demo"]), cluster.setup).allowed:
                return
            approval, _ = await approve(cluster, [after])
            await edit(cluster, what, before)

            current = await cluster.look(approval.manifests)
            ledger = Ledger(approval, RECOGNITION)
            ledger.limited(current.world, current.planned)
            ended = {name for name, pod in cluster.there(kinds.POD).items() if pod["status"].get("phase") == "Failed"}
            report = await sync_within(cluster, approval)

            done = [result.operation for result in report.results if result.outcome is Outcome.DONE]
            is_stale = any(changed_roots(approval, current.world)) or bool(ledger.excess)
            assert [str(each.id) for each in done if not may_be_made(approval, each, ended)] == []
            if what in ("image", "delete set"):
                assert is_stale
            if what in ("nothing", "delete pod", "evict pod", "delete service", "label", "other set"):
                assert not is_stale
                assert [str(each.deviation) for each in report.unapproved] == []

    anyio.run(story)
