"""Quotas: what pods and other objects use of them."""

from decimal import Decimal
from typing import Any

import pytest

from resources.base import kinds
from resources.cluster_model.quotas import amounts_of, canonical, pod_amounts

VOLUME = {"storageClassName": "fast", "resources": {"requests": {"storage": "5"}}}
FAST = "fast.storageclass.storage.k8s.io/"


def container(requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A container with these resources."""
    return {"resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {}),
        ({"containers": "none"}, {}),
        ({"containers": [container({"cpu": "500m"}), container({"cpu": 1})]}, {"requests.cpu": Decimal("1.5")}),
        ({"containers": [container(limits={"nvidia.com/gpu": "8"})]}, {"requests.nvidia.com/gpu": 8, "limits.nvidia.com/gpu": 8}),
        ({"containers": [container({"cpu": "1"})], "initContainers": [container({"cpu": "3"})]}, {"requests.cpu": 3}),
        (
            {"containers": [container({"cpu": "1"})], "initContainers": [container({"cpu": "3"}, restartPolicy="Always")]},
            {"requests.cpu": 4},
        ),
        ({"containers": [container({"memory": "1Gi"})], "overhead": {"memory": "1Mi"}}, {"requests.memory": 2**30 + 2**20}),
        ({"containers": [container({"cpu": "nonsense"})]}, {}),
        (
            {"containers": [container({"cpu": "1", "memory": "1"})], "resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "1"}},
            {"requests.cpu": 5, "requests.memory": 1},
        ),
        (
            {"containers": [container({"cpu": "1"})], "resources": {"limits": {"cpu": "4", "memory": "2"}}},
            {"requests.cpu": 1, "requests.memory": 2, "limits.cpu": 4, "limits.memory": 2},
        ),
        (
            {"containers": [container(limits={"hugepages-2Mi": "2"})], "resources": {"limits": {"hugepages-2Mi": "4"}}},
            {"requests.hugepages-2Mi": 4, "limits.hugepages-2Mi": 4},
        ),
        (
            {"containers": [container({"nvidia.com/gpu": "1"})], "resources": {"requests": {"nvidia.com/gpu": "4"}}},
            {"requests.nvidia.com/gpu": 1},
        ),
        (
            {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}, {"name": "b", "resourceClaimName": "c"}]},
            {"count/resourceclaims.resource.k8s.io": 1},
        ),
        (
            {"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": VOLUME}}}, {"name": "b", "emptyDir": {}}]},
            {
                f"{prefix}{what}": number
                for prefix in ("", FAST)
                for what, number in (("persistentvolumeclaims", 1), ("requests.storage", 5))
            },
        ),
    ],
)
def test_a_pod_uses_what_its_containers_request(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    assert pod_amounts(spec) == expected


def test_a_component_uses_what_its_pods_do() -> None:
    template = {"spec": {"containers": [container({"cpu": "500m"})]}}
    leader = {"spec": {"containers": [container({"cpu": 2})]}}
    group = {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "leaderTemplate": leader, "workerTemplate": template}}

    assert amounts_of(kinds.DEPLOYMENT.id("x", "d"), {"spec": {"replicas": 3, "template": template}}) == {
        "count/deployments.apps": 1,
        "pods": 3,
        "requests.cpu": Decimal("1.5"),
    }
    assert amounts_of(kinds.LEADER_WORKER_SET.id("x", "l"), {"spec": group}) == {
        "count/leaderworkersets.leaderworkerset.x-k8s.io": 1,
        "pods": 6,
        "requests.cpu": 6,
    }


def test_an_object_counts_as_one_of_its_kind_under_the_names_that_quotas_have() -> None:
    assert amounts_of(kinds.POD.id("x", "p"), {"spec": {}}) == {"pods": 1}
    assert amounts_of(kinds.PVC.id("x", "p"), {"spec": VOLUME})["requests.storage"] == 5
    assert amounts_of(kinds.PODCLIQUE.id("x", "p"), {"spec": {"containers": [container({"cpu": "1"})]}}) == {"count/podcliques.grove.io": 1}
    assert [canonical(what) for what in ("cpu", "count/pods", "pods", "count/podcliques.grove.io", "requests.cpu")] == [
        "requests.cpu",
        "pods",
        "pods",
        "count/podcliques.grove.io",
        "requests.cpu",
    ]
