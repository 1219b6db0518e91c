"""Why objects of a graph are missing: its service has been scaled out since the graph was ready, or they were lost."""

from typing import Any

import pytest

from engine.memo import Memo
from engine.observed import Live, Observed, live, slice_of
from engine.operation import WriteStatus
from engine.reason import Reason
from engine.resource import Want
from engine.tick import tick
from resources.blueprints.dynamo_graph import DynamoGraphBlueprint
from resources.ports.configuration import ONLY
from tests.laws.toy import START
from tests.resources.admission.graphs import WITHOUT_GROVE, graph, wide
from tests.resources.admission.requests import SETUP

WORKLOADS = ("PodGroup", "LeaderWorkerSet")


def resources(replicas: int, *lives: Live, generation: int = 1, ready_at: int = 0) -> dict[str, Want]:
    """The LeaderWorkerSets and PodGroups of a stored graph with so many replicas, which was ready at a generation."""
    body: dict[str, Any] = graph({"decode": wide(replicas=replicas)}, annotations=WITHOUT_GROVE)
    body["metadata"] |= {"uid": "u-1", "generation": generation}
    body["status"] = {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": ready_at}]}
    desired = DynamoGraphBlueprint().desire(Observed(live(body), {ONLY: slice_of(lives)}), START, SETUP, Memo())
    return {f"{id.kind}/{id.name}": each for id, each in desired.graph.resources.items() if id.kind in WORKLOADS and isinstance(each, Want)}


@pytest.mark.parametrize(("ready_at", "reason"), [(1, Reason.SCALED_OUT), (2, None)])
def test_what_a_graph_lacks_since_it_was_ready_was_scaled_out_unless_it_was_ready_with_it(ready_at: int, reason: Reason | None) -> None:
    existing = [live(each.body) for each in resources(1).values()]

    scaled = resources(2, *existing, generation=2, ready_at=ready_at)

    assert [scaled[f"{kind}/g-decode-1"].reason for kind in WORKLOADS] == [reason, reason]


def test_a_graph_whose_name_for_an_object_is_taken_is_stalled() -> None:
    body: dict[str, Any] = graph({"decode": wide()}, annotations=WITHOUT_GROVE)
    body["metadata"] |= {"uid": "u-1", "generation": 1, "resourceVersion": "1", "finalizers": ["nvidia.com/finalizer"]}
    taken = next(each for id, each in resources(1).items() if id.startswith("LeaderWorkerSet"))
    theirs = live({**taken.body, "metadata": {**taken.body["metadata"], "uid": "u-2"}})
    observed = Observed(live(body), {ONLY: slice_of(())}, foreign={theirs.id: theirs})

    planned = tick(DynamoGraphBlueprint(), observed, START, SETUP, Memo())

    assert [(wait.id, wait.reason) for wait in planned.blocked] == [(theirs.id, Reason.NAME_CONFLICT)]
    (status,) = (each for each in planned.operations if isinstance(each, WriteStatus))
    conditions = {each["type"]: each["reason"] for each in status.patch["status"]["conditions"]}
    assert conditions["Stalled"] == "NameConflict" and "Reconciling" not in conditions
