"""Pod affinity in the sandbox's scheduler: required and preferred terms, by the pods that are placed, as kube-scheduler has them."""

from typing import Any

import pytest

from engine.ids import Kind
from grove_sandbox.actors.body import uid_of
from grove_sandbox.actors.pool import Pool, Shortage
from grove_sandbox.actors.store import InformerStore
from resources.base.added_to_pods import REQUIRED
from resources.base.kinds import POD
from resources.placement.node_fit import requirements_of
from resources.placement.pod_affinity import PREFERRED, affinity_of
from sandbox.tests.actors.manifests import node, pod

KEY = "example.com/island"
Body = dict[str, Any]


def term(**selected: str) -> Body:
    return {"labelSelector": {"matchLabels": selected}, "topologyKey": KEY}


def labelled(name: str, *required: Body, preferred: tuple[Body, ...] = (), **labels: str) -> Body:
    """A pod that takes a whole node, with these labels and terms."""
    weighted = [{"weight": 100, "podAffinityTerm": item} for item in preferred]
    affinity = {"podAffinity": {REQUIRED: list(required), PREFERRED: weighted}}
    body = pod(name, gpus=8, affinity=affinity)
    return {**body, "metadata": {**body["metadata"], "uid": f"uid-{name}", "labels": labels}}


def placed(*pods: Body, islands: str = "abab") -> list[str]:
    """The node of each pod, placed in this order; empty if it fits none. Node `n<i>` is in the island `islands[i]`; `-` is none."""
    pool, store = Pool(), InformerStore(Kind(POD.group, POD.version, POD.name, POD.plural))
    for number, island in enumerate(islands):
        body = node(f"n{number}")
        labels = {KEY: island} if island != "-" else {}
        pool.set_node(f"n{number}", {**body, "metadata": {**body["metadata"], "labels": labels}})
    for body in pods:
        store.objects[body["metadata"].get("namespace", ""), body["metadata"]["name"]] = body
    nodes = []
    for body in pods:
        affinity = affinity_of(body, store.objects.values())
        found = pool.place([(uid_of(body), requirements_of(body))], {uid_of(body): affinity} if affinity else {})
        nodes.append("" if isinstance(found, Shortage) else found[uid_of(body)])
    return nodes


def test_the_first_pod_that_matches_its_own_term_takes_any_node_with_the_label_and_the_others_follow() -> None:
    pods = [labelled(f"p{number}", term(app="x"), app="x") for number in range(3)]

    assert placed(*pods) == ["n0", "n2", ""]
    assert placed(*pods, islands="-bab") == ["n1", "n3", ""]
    assert placed(*pods, islands="----") == ["", "", ""]


def test_a_pod_that_does_not_match_its_own_term_needs_one_that_does() -> None:
    assert placed(labelled("p", term(app="x"))) == [""]
    assert placed(labelled("x", app="x"), labelled("other"), labelled("p", term(app="x"))) == ["n0", "n1", "n2"]


def test_with_several_terms_a_pod_is_placed_only_beside_pods_that_match_all_of_them() -> None:
    both = (term(app="x"), term(tier="y"))

    assert placed(labelled("x", app="x"), labelled("y", tier="y"), labelled("p", *both)) == ["n0", "n1", ""]
    assert placed(labelled("xy", app="x", tier="y"), labelled("p", *both)) == ["n0", "n2"]


def test_a_preferred_term_chooses_among_the_nodes_that_are_free() -> None:
    pods = [labelled(f"p{number}", preferred=(term(app="x"),), app="x") for number in range(3)]

    assert placed(*pods) == ["n0", "n2", "n1"]


@pytest.mark.parametrize(
    "selector", [None, {"matchLabels": {"app": "y"}}, {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}]
)
def test_a_term_selects_by_labels_and_without_a_selector_nothing(selector: Any) -> None:
    own = {"topologyKey": KEY} | ({"labelSelector": selector} if selector else {})

    assert placed(labelled("x", app="x"), labelled("p", own, app="x")) == ["n0", ""]


def test_pods_that_have_ended_and_those_of_other_namespaces_do_not_count() -> None:
    ended = {**labelled("x", app="x"), "status": {"phase": "Succeeded"}}
    elsewhere = labelled("x", app="x")
    elsewhere["metadata"] |= {"namespace": "elsewhere"}
    named = {**term(app="x"), "namespaces": ["elsewhere"]}

    assert placed(ended, labelled("p", term(app="x")))[1] == ""
    assert placed(elsewhere, labelled("p", term(app="x")))[1] == ""
    assert placed(elsewhere, labelled("p", named))[1] == "n2"


def alone(name: str) -> Body:
    """A pod that must not be at the same value of the key as another of its kind."""
    body = labelled(name, app="x")
    body["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [term(app="x")]}}
    return body


def spread(name: str, most: int = 1, **fields: Any) -> Body:
    body = labelled(name, app="x")
    constraint = {"topologyKey": KEY, "maxSkew": most, "labelSelector": {"matchLabels": {"app": "x"}}, **fields}
    body["spec"] |= {"affinity": None, "topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule", **constraint}]}
    return body


def test_pods_that_exclude_one_another_are_each_at_another_value_of_the_label() -> None:
    assert placed(*(alone(f"p{number}") for number in range(3))) == ["n0", "n1", ""]
    assert placed(*(alone(f"p{number}") for number in range(2)), islands="aa--") == ["n0", "n2"]


def test_pods_that_are_spread_are_nowhere_more_than_the_skew_allows() -> None:
    pods = [spread(f"p{number}") for number in range(4)]

    assert placed(*pods, islands="aabb") == ["n0", "n2", "n1", "n3"]
    assert placed(*pods, islands="aaab") == ["n0", "n3", "n1", ""]
    assert placed(*pods, islands="----") == ["", "", "", ""]
    assert placed(*(spread(f"p{number}", minDomains=2) for number in range(2)), islands="aa--") == ["n0", ""]
    assert placed(*(spread(f"p{number}", whenUnsatisfiable="ScheduleAnyway") for number in range(2)), islands="aabb") == ["n0", "n1"]


def test_a_spread_counts_only_the_values_of_nodes_that_the_pod_may_have() -> None:
    pods = [spread(f"p{number}") for number in range(2)]
    for body in pods:
        body["spec"]["nodeSelector"] = {KEY: "a"}

    assert placed(*pods, islands="aab") == ["n0", "n1"]
