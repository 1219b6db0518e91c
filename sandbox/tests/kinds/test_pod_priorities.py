"""Pods with a PriorityClass: what kube-apiserver's admission refuses and sets, in its words."""

from typing import Any

import pytest

from engine.ids import Kind
from grove_sandbox.types.status import StatusError
from resources.base.kinds import POD
from sandbox.tests.actors.manifests import pod
from sandbox.tests.in_memory import about, fresh

CLASS = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)


def test_a_pod_gets_the_priority_of_its_class() -> None:
    api = fresh()
    api.create(about(api, CLASS), {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"})
    priorities = {}
    for name in ("high", "system-node-critical", ""):
        body = {**pod("p", priorityClassName=name), "metadata": {"generateName": "p-"}}
        spec = api.create(about(api, POD), body).body["spec"]
        priorities[name] = (spec.get("priority"), spec.get("preemptionPolicy"))

    assert priorities == {"high": (7, "Never"), "system-node-critical": (2_000_001_000, "PreemptLowerPriority"), "": (None, None)}


@pytest.mark.parametrize(
    ("metadata", "spec", "message"),
    [
        ({"name": "x"}, {"priorityClassName": "y"}, 'pods "x" is forbidden: no PriorityClass with name y was found'),
        ({"generateName": "x-"}, {"priorityClassName": "y"}, 'pods "x-" is forbidden: no PriorityClass with name y was found'),
        (
            {"name": "x"},
            {"priorityClassName": "system-node-critical", "priority": 3},
            'pods "x" is forbidden: the integer value of priority (3) must not be provided in pod spec; '
            "priority admission controller computed 2000001000 from the given PriorityClass name",
        ),
    ],
)
def test_a_pod_is_refused_whose_class_is_missing_or_has_another_priority(
    metadata: dict[str, str], spec: dict[str, Any], message: str
) -> None:
    api = fresh()

    with pytest.raises(StatusError) as refused:
        api.create(about(api, POD), {**pod("x", **spec), "metadata": metadata})

    assert (refused.value.code, refused.value.body["message"]) == (403, message)
