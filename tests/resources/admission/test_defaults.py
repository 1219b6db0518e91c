"""Defaults of a PodCliqueSet."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.admission.defaults import defaulted
from resources.base.kinds import PODCLIQUESET
from resources.schema.parse import faults
from tests.resources.manifests import JSON, WHOLE, clique, paths, pcs, put


def template(**given: Any) -> Any:
    """The template of a set after defaulting."""
    return defaulted(pcs(**given))["spec"]["template"]


def spec(**given: Any) -> Any:
    """The spec of a clique after defaulting."""
    bare = {"name": "a", "spec": {"roleName": "a", "podSpec": {"containers": []}, **given}}
    return defaulted(pcs(bare))["spec"]["template"]["cliques"][0]["spec"]


def test_a_minimal_set_gets_all_defaults() -> None:
    least = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "d"},
        "spec": {"template": {"cliques": [{"name": "a", "spec": {"podSpec": {"containers": [{"name": "c"}]}}}]}},
    }

    assert defaulted(least) == {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {
            "replicas": 0,
            "template": {
                "cliqueStartupType": "CliqueStartupTypeAnyOrder",
                "terminationDelay": "4h0m0s",
                "headlessServiceConfig": {"publishNotReadyAddresses": True},
                "podCliqueScalingGroups": [],
                "cliques": [
                    {
                        "name": "a",
                        "spec": {
                            "roleName": "",
                            "replicas": 1,
                            "minAvailable": 1,
                            "podSpec": {
                                "containers": [{"name": "c"}],
                                "restartPolicy": "Always",
                                "terminationGracePeriodSeconds": 30,
                            },
                        },
                    }
                ],
            },
        },
    }
    assert faults(PODCLIQUESET, defaulted(least)) == ()


@pytest.mark.parametrize(
    ("given", "replicas", "quorum"),
    [({}, 1, 1), ({"replicas": 0}, 1, 1), ({"replicas": 3}, 3, 3), ({"replicas": 3, "minAvailable": 2}, 3, 2), ({"minAvailable": 0}, 1, 0)],
)
def test_replicas_default_to_one_and_min_available_to_replicas(given: dict[str, int], replicas: int, quorum: int) -> None:
    found = spec(**given)

    assert (found["replicas"], found["minAvailable"]) == (replicas, quorum)


def test_an_empty_string_counts_as_absent_only_where_a_string_belongs() -> None:
    given = spec(replicas=3, minAvailable="", podSpec={"containers": [], "restartPolicy": "", "terminationGracePeriodSeconds": ""})

    assert (given["minAvailable"], given["podSpec"]["terminationGracePeriodSeconds"]) == ("", "")
    assert given["podSpec"]["restartPolicy"] == "Always"


def test_the_minimum_of_an_autoscaler_defaults_to_replicas() -> None:
    group = {"name": "g", "cliqueNames": ["a"], "scaleConfig": {"maxReplicas": 6}}

    assert spec(replicas=3, autoScalingConfig={"maxReplicas": 5})["autoScalingConfig"] == {"maxReplicas": 5, "minReplicas": 3}
    assert spec(replicas=3, autoScalingConfig={"maxReplicas": 5, "minReplicas": 2})["autoScalingConfig"]["minReplicas"] == 2
    assert template(podCliqueScalingGroups=[group])["podCliqueScalingGroups"] == [
        {**group, "replicas": 1, "minAvailable": 1, "scaleConfig": {"maxReplicas": 6, "minReplicas": 1}}
    ]
    assert template(podCliqueScalingGroups=[{**group, "replicas": 2}])["podCliqueScalingGroups"][0]["scaleConfig"]["minReplicas"] == 2


@pytest.mark.parametrize(
    ("given", "delay"), [("4h", "4h0m0s"), ("4h0m0s", "4h0m0s"), ("90m", "1h30m0s"), ("soon", "soon"), (None, "4h0m0s"), (4, 4)]
)
def test_a_delay_is_stored_in_canonical_form(given: Any, delay: Any) -> None:
    assert template(terminationDelay=given)["terminationDelay"] == delay


@pytest.mark.parametrize(("given", "published"), [({}, True), ({"publishNotReadyAddresses": False}, False), (None, True)])
def test_pods_have_dns_names_before_they_are_ready_by_default(given: Any, published: bool) -> None:
    assert template(headlessServiceConfig=given)["headlessServiceConfig"] == {"publishNotReadyAddresses": published}


def test_an_update_strategy_gets_a_type_but_is_not_added() -> None:
    body = pcs()

    assert "updateStrategy" not in defaulted(body)["spec"]
    assert defaulted({**body, "spec": {**body["spec"], "updateStrategy": {}}})["spec"]["updateStrategy"] == {"type": "RollingRecreate"}


def test_a_complete_pod_spec_is_returned_itself() -> None:
    said = {"containers": [], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}

    assert spec(podSpec=said)["podSpec"] is said


def test_a_null_in_a_known_field_of_a_pod_spec_is_removed() -> None:
    container = {"name": "c", "env": None, "resources": {"limits": {"cpu": None, "memory": "1Gi"}}, "novel": None}

    filled = spec(podSpec={"containers": [container], "nodeSelector": {"a": None, "b": "c"}, "novel": {"a": None}})["podSpec"]

    assert filled["containers"] == [{"name": "c", "resources": {"limits": {"memory": "1Gi"}}, "novel": None}]
    assert filled["nodeSelector"] == {"b": "c"}
    assert filled["novel"] == {"a": None}


def test_false_does_not_count_as_zero_replicas() -> None:
    assert spec(replicas=False)["replicas"] is False


def test_unchanged_parts_are_shared_and_a_complete_set_is_returned_itself() -> None:
    finished = clique("b", minAvailable=1, podSpec={"containers": [], "restartPolicy": "Always", "terminationGracePeriodSeconds": 1})
    body = pcs(clique("a"), finished)

    filled = defaulted(body)

    assert filled["spec"]["template"]["cliques"][1] is finished
    assert filled["metadata"] is body["metadata"]
    assert defaulted(filled) is filled


@given(st.sampled_from(paths(WHOLE)), JSON)
def test_defaulting_is_idempotent_and_does_not_change_its_input(path: tuple[Any, ...], junk: Any) -> None:
    body = put(WHOLE, path, junk)
    if not isinstance(body, dict):
        return
    before = copy.deepcopy(body)

    filled = defaulted(body)

    assert defaulted(filled) is filled
    assert body == before


def test_an_update_that_leaves_out_min_available_keeps_it() -> None:
    before = defaulted(pcs(clique("a", replicas=2), clique("b", replicas=2)))

    after = defaulted(pcs(clique("b", replicas=3), clique("a", replicas=3, minAvailable=1), clique("new", replicas=3)), before)

    assert [one["spec"]["minAvailable"] for one in after["spec"]["template"]["cliques"]] == [2, 1, 3]
    assert defaulted(after, before) is after


def test_an_update_that_leaves_out_a_role_keeps_it_and_an_empty_role_is_a_change() -> None:
    before = defaulted(pcs(clique("a", roleName="leader"), clique("b", roleName=None)))

    after = defaulted(pcs(clique("a", roleName=None), clique("b", roleName=None)), before)
    emptied = defaulted(pcs(clique("a", roleName=""), clique("b", roleName=None)), before)

    assert [one["spec"]["roleName"] for one in after["spec"]["template"]["cliques"]] == ["leader", ""]
    assert [one["spec"]["roleName"] for one in emptied["spec"]["template"]["cliques"]] == ["", ""]
    assert defaulted(after, before) is after


@given(st.sampled_from(paths(WHOLE)), JSON)
def test_any_stored_set_can_be_updated(path: tuple[Any, ...], junk: Any) -> None:
    spoiled = put(WHOLE, path, junk)
    if isinstance(spoiled, dict):
        assert isinstance(defaulted(WHOLE, spoiled), dict)
        assert isinstance(defaulted(spoiled, WHOLE), dict)
