"""Canonical form of pod specs: what counts as the same pods, and what does not."""

from typing import Any

import pytest

from resources.model.pod_spec_form import canonical_form

Body = dict[str, Any]


def container(**fields: Any) -> Body:
    return {"containers": [{"name": "main", "image": "a:1", **fields}]}


SAME = {
    "amounts": (container(resources={"limits": {"nvidia.com/gpu": 4}}), container(resources={"limits": {"nvidia.com/gpu": "4"}})),
    "units": (container(resources={"requests": {"memory": "1024Mi"}}), container(resources={"requests": {"memory": "1Gi"}})),
    "fractions": (container(resources={"requests": {"cpu": "0.5"}}), container(resources={"requests": {"cpu": "500m"}})),
    "empty resources": (container(resources={}), container()),
    "protocol": (container(ports=[{"containerPort": 80, "protocol": "TCP"}]), container(ports=[{"containerPort": 80}])),
    "empty value": (container(env=[{"name": "A", "value": ""}]), container(env=[{"name": "A"}])),
    "null": (container(command=None), container()),
    "flags": (container(tty=False) | {"hostNetwork": False}, container()),
    "order of tolerations": ({"tolerations": [{"key": "a"}, {"key": "b"}]}, {"tolerations": [{"key": "b"}, {"key": "a"}]}),
}
DIFFERENT = {
    "amounts": (container(resources={"limits": {"nvidia.com/gpu": 4}}), container(resources={"limits": {"nvidia.com/gpu": 8}})),
    "protocol": (container(ports=[{"containerPort": 80, "protocol": "UDP"}]), container(ports=[{"containerPort": 80}])),
    "order of variables": (container(env=[{"name": "A"}, {"name": "B"}]), container(env=[{"name": "B"}, {"name": "A"}])),
    "node selector": ({"nodeSelector": {"value": "", "protocol": "TCP"}}, {"nodeSelector": {}}),
    "empty selector": ({"affinity": {"term": {"labelSelector": {}}}}, {"affinity": {"term": {}}}),
    "privileges": (container(securityContext={"privileged": False}), container(securityContext={})),
    "true and one": ({"hostNetwork": True}, {"hostNetwork": 1}),
}


@pytest.mark.parametrize(("left", "right"), SAME.values(), ids=SAME)
def test_spellings_of_the_same_pods_have_one_form(left: Body, right: Body) -> None:
    assert repr(canonical_form(left)) == repr(canonical_form(right))


@pytest.mark.parametrize(("left", "right"), DIFFERENT.values(), ids=DIFFERENT)
def test_other_pods_have_another_form(left: Body, right: Body) -> None:
    assert repr(canonical_form(left)) != repr(canonical_form(right))


@pytest.mark.parametrize(
    "shape", [7, "x", ["a", 1], {"containers": 3}, {"limits": {"cpu": ["a"]}}, {"ports": [None]}, {"limits": {"cpu": "1e999999999"}}]
)
def test_wrong_shapes_are_kept(shape: Any) -> None:
    assert canonical_form(shape) is not None
