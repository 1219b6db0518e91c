"""Resources of services."""

from typing import Any

import pytest

from resources.dynamo.pods.builder import PodFault
from tests.resources.dynamo.pods.graphs import main_of


def resources(service: dict[str, Any], container: dict[str, Any] | None = None) -> Any:
    body = {"resources": service, "extraPodSpec": {"mainContainer": {"resources": container or {}}}}
    return main_of(body).get("resources")


def test_limits_have_gpus_and_requests_do_not() -> None:
    item = {"cpu": "1", "memory": "1Gi", "gpu": "4", "custom": {"example.com/nic": "2"}}
    common = {"cpu": "1", "memory": "1Gi", "example.com/nic": "2"}

    assert resources({"limits": item, "requests": item}) == {"limits": {**common, "nvidia.com/gpu": "4"}, "requests": common}


def test_the_type_of_gpus_is_their_name() -> None:
    assert resources({"limits": {"gpu": "4", "gpuType": "nvidia.com/mig-1g.5gb"}}) == {"limits": {"nvidia.com/mig-1g.5gb": "4"}}


def test_resources_of_the_service_win_over_those_of_the_container_key_by_key() -> None:
    own = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}, "claims": [{"name": "a"}]}

    assert resources({"limits": {"cpu": "2"}, "claims": [{"name": "b"}]}, own) == {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "1"},
        "claims": [{"name": "a"}, {"name": "b"}],
    }


@pytest.mark.parametrize("service", [{}, {"limits": {}}, {"limits": {"cpu": "", "gpu": None}}])
def test_nothing_is_set_where_nothing_is_asked_for(service: dict[str, Any]) -> None:
    assert resources(service) is None


@pytest.mark.parametrize("kind", ["limits", "requests"])
@pytest.mark.parametrize(("field", "below"), [("cpu", ()), ("memory", ()), ("example.com/nic", ("custom",))])
def test_a_value_that_is_no_quantity_is_a_fault_of_its_field(kind: str, field: str, below: tuple[str, ...]) -> None:
    item = {"custom": {field: "many"}} if below else {field: "many"}
    with pytest.raises(PodFault) as raised:
        resources({kind: item})

    assert raised.value.path == ("spec", "services", "decode", "resources", kind, *below, field)
    assert raised.value.detail == f"failed to get resources config: parse {kind} {field} quantity: 'many' is no quantity"


def test_gpus_that_are_no_quantity_are_a_fault_where_they_are_emitted() -> None:
    with pytest.raises(PodFault, match="parse limits gpu quantity: 'many' is no quantity"):
        resources({"limits": {"gpu": "many"}})
    assert resources({"requests": {"gpu": "many"}}) is None
