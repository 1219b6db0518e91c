"""The order of lists in pod specs."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.dynamo.pods.order import in_order, variables_in_order
from tests.resources.dynamo.backends.container_run import environment

NAMES = ("A", "B", "C", "D")
POD: dict[str, Any] = {
    "containers": [
        {
            "name": "b",
            "env": [{"name": "Y"}, {"name": "X"}],
            "envFrom": [{"configMapRef": {"name": "b"}}, {"configMapRef": {"name": "a"}}, {"secretRef": {"name": "a"}}],
            "ports": [{"name": "y", "containerPort": 1}, {"name": "x", "containerPort": 2}],
            "volumeMounts": [{"name": "v", "mountPath": "/b"}, {"name": "v", "mountPath": "/a"}, {"name": "u", "mountPath": "/c"}],
            "args": ["z", "a"],
        },
        {"name": "a"},
        {},
    ],
    "volumes": [{"name": "b"}, {"name": "a"}],
    "imagePullSecrets": [{"name": "b"}, {"name": "a"}, {"name": "b"}],
    "tolerations": [{"key": "b"}, {"key": "a", "value": "2"}, {"key": "a", "value": "1"}],
    "topologySpreadConstraints": [{"topologyKey": "b"}, {"topologyKey": "a"}],
    "hostAliases": [{"ip": "2"}, {"ip": "1"}],
    "dnsConfig": {"nameservers": ["9.9.9.9", "1.1.1.1"], "searches": ["b", "a"], "options": [{"name": "b"}, {"name": "a"}]},
    "initContainers": [{"name": "b"}, {"name": "a"}],
}


def test_lists_whose_order_means_nothing_are_sorted() -> None:
    pod = in_order(POD)
    container = pod["containers"][2]

    assert [entry.get("name", "") for entry in pod["containers"]] == ["", "a", "b"]
    assert [entry["name"] for entry in container["env"]] == ["X", "Y"]
    assert container["envFrom"] == [{"configMapRef": {"name": "a"}}, {"configMapRef": {"name": "b"}}, {"secretRef": {"name": "a"}}]
    assert [entry["name"] for entry in container["ports"]] == ["x", "y"]
    assert [(entry["name"], entry["mountPath"]) for entry in container["volumeMounts"]] == [("u", "/c"), ("v", "/a"), ("v", "/b")]
    assert [entry["name"] for entry in pod["volumes"]] == ["a", "b"]
    assert pod["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert pod["tolerations"] == [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}, {"key": "b"}]
    assert [entry["topologyKey"] for entry in pod["topologySpreadConstraints"]] == ["a", "b"]
    assert [entry["ip"] for entry in pod["hostAliases"]] == ["1", "2"]
    assert pod["dnsConfig"]["options"] == [{"name": "a"}, {"name": "b"}]


def test_lists_whose_order_means_something_stay() -> None:
    pod = in_order(POD)

    assert pod["containers"][2]["args"] == ["z", "a"]
    assert pod["initContainers"] == POD["initContainers"]
    assert pod["dnsConfig"]["nameservers"] == ["9.9.9.9", "1.1.1.1"]
    assert pod["dnsConfig"]["searches"] == ["b", "a"]


def test_pods_that_differ_in_such_an_order_only_become_equal() -> None:
    def shuffled(value: Any, seed: int) -> Any:
        if isinstance(value, dict):
            fixed = {"args", "initContainers", "nameservers", "searches"}
            return {key: entry if key in fixed else shuffled(entry, seed) for key, entry in value.items()}
        if isinstance(value, list):
            return random.Random(seed).sample([shuffled(entry, seed) for entry in value], len(value))
        return value

    assert all(in_order(shuffled(POD, seed)) == in_order(POD) for seed in range(10))


def test_odd_shapes_stay() -> None:
    odd = {"tolerations": "x", "volumes": [1, "a"], "containers": [{"name": "c", "env": "x", "ports": [None]}], "imagePullSecrets": [1]}

    assert in_order(odd) == odd


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=2), min_size=1))
def test_a_variable_follows_those_that_it_refers_to(targets: dict[str, list[str]]) -> None:
    envs = [{"name": name, "value": "".join(f"$({target})" for target in refers)} for name, refers in targets.items()]
    ordered = [env["name"] for env in variables_in_order(envs)]

    assert sorted(ordered) == sorted(targets)
    for name in targets:
        targets_of_name = closure_of(targets, name)
        if not any(target in closure_of(targets, target) for target in targets_of_name | {name}):
            assert targets_of_name & targets.keys() <= set(ordered[: ordered.index(name)])


def closure_of(targets: dict[str, list[str]], name: str) -> set[str]:
    """The names that a variable refers to, directly or not."""
    closure: set[str] = set()
    waiting = list(targets.get(name, []))
    while waiting:
        if (target := waiting.pop()) not in closure:
            closure.add(target)
            waiting += targets.get(target, [])
    return closure


def test_values_that_were_right_in_the_order_of_the_user_stay_right() -> None:
    envs = [{"name": "PORT", "value": "80"}, {"name": "HOST", "value": "h"}, {"name": "ADDRESS", "value": "$(HOST):$(PORT)"}]
    ordered = variables_in_order(envs)

    assert [env["name"] for env in ordered] == ["HOST", "PORT", "ADDRESS"]
    assert environment({"env": ordered}, {}, {})["ADDRESS"] == "h:80"


@pytest.mark.parametrize("envs", [[{"name": "A", "value": "$(B)"}, {"name": "B", "value": "$(A)"}], [{"name": "A", "value": "$(A)"}]])
def test_circles_stay(envs: list[dict[str, str]]) -> None:
    assert variables_in_order(envs) == envs


def test_a_list_with_a_name_twice_stays() -> None:
    envs = [{"name": "B", "value": "1"}, {"name": "A"}, {"name": "B", "value": "$(B)2"}]

    assert variables_in_order(envs) == envs
