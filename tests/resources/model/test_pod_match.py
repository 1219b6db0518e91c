"""A pod without a hash label is judged by its contents."""

from typing import Any

import pytest

from resources.model.pod_match import is_created_from

SPEC = {"containers": [{"name": "main", "image": "a:1", "args": ["--x"]}], "hostNetwork": False, "tolerations": [{"key": "gpu"}]}


def pod(**over: Any) -> dict[str, Any]:
    """A pod as a server stores it: with defaults, and what the engine and admission have added."""
    main = {"name": "main", "image": "a:1", "args": ["--x"], "env": [{"name": "GROVE_PCS_NAME"}], "imagePullPolicy": "Always"}
    spec = {
        "containers": [main, {"name": "sidecar", "image": "b"}],
        "tolerations": [{"key": "unreachable"}, {"key": "gpu"}],
        "nodeName": "n",
    }
    return {"spec": {**spec, **over}}


def test_additions_to_a_pod_and_gates_that_were_lifted_do_not_matter() -> None:
    assert is_created_from(pod(), {**SPEC, "schedulingGates": [{"name": "theirs"}]})


@pytest.mark.parametrize(
    "changed",
    [
        {"containers": [{"name": "main", "image": "a:2", "args": ["--x"]}]},
        {"containers": [{"name": "main", "image": "a:1", "args": ["--x", "--y"]}]},
        {"containers": [{"name": "other", "image": "a:1"}]},
        {"hostNetwork": True},
        {"volumes": [{"name": "data"}]},
    ],
)
def test_a_pod_of_another_spec_is_recognised(changed: dict[str, Any]) -> None:
    assert not is_created_from(pod(), {**SPEC, **changed})
