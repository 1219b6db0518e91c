"""`engine why` and `engine status` agree about every object, whatever has happened."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from engine.ids import ResourceId
from resources.base import kinds, labels
from resources.model.pod_facts import facts_of
from resources.reports.obstacles import advised, standstill
from resources.reports.set_pods import SetPods
from resources.reports.summary import lives_of, state_of, summary
from tests.laws.fabric_worlds import history, manifests, rack

Bodies = list[dict[str, Any]]
AT_REST = ("degraded", "completed", "settled")


@given(manifests(), some.randoms(use_true_random=False))
@settings(max_examples=25)
def test_agreement_a_set_waits_for_the_same_in_both_and_what_is_not_ready_is_explained(
    sets: list[dict[str, Any]], chance: random.Random
) -> None:
    toy = rack(sets, chance)
    history(toy, sets, chance, steps=3)
    world = toy.world()
    plans = {plan.root: plan for plan in toy.plans_of(world)}
    for observed in world.roots:
        root, plan = observed.root.id, plans[observed.root.id]
        pods = SetPods.of(observed)
        whole = standstill(pods, plan, root, toy.now)
        waits = advised(summary(observed, plan).waits, pods, toy.now)
        expected = tuple(wait for wait in waits if wait.id != root)
        assert tuple(sorted(whole.waits, key=repr)) == tuple(sorted(expected, key=repr))
        if state_of(observed, plan) in AT_REST:
            assert whole.runs, whole.obstacles
        for pod in map(facts_of, lives_of(observed, kinds.POD.name)):
            is_well = (pod.ready and not pod.terminating) or (pod.completed and not pod.terminating)
            for id in (pod.live.id, *_of_pod(root.namespace, pod.live.labels)):
                found = [obstacle for obstacle in standstill(pods, plan, id, toy.now).obstacles if obstacle.about == pod.live.id]
                assert bool(found) is not is_well, (id, found)
                assert all(obstacle.text and obstacle.since for obstacle in found)


def _of_pod(namespace: str, names: Any) -> list[ResourceId]:
    """The objects that a pod is part of, by its labels."""
    parts = ((kinds.PODCLIQUE, labels.PODCLIQUE), (kinds.PODGANG, labels.PODGANG), (kinds.PODCLIQUESET, labels.PART_OF))
    return [kind.id(namespace, names[key]) for kind, key in parts]
