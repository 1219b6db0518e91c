"""Adoption: what a PodClique may contain that nobody expects."""

from typing import Any

import pytest

from engine.observed import live
from resources.model.pod_match import is_adopted
from resources.model.template import DEFAULT_BUDGET, Clique

SPEC = {"containers": [{"name": "main", "image": "a:1"}]}
CLIQUE = Clique("work", 1, 1, "", SPEC, {"team": "a"}, {}, "v3-0", (), None, "", DEFAULT_BUDGET)


def podclique(pod_spec: Any, **labels: str) -> Any:
    """A PodClique with the hash of another operator."""
    metadata = {"name": "web-0-work", "namespace": "default", "labels": {"grove.io/pod-template-hash": "4b5c", **labels}}
    return live({"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "metadata": metadata, "spec": {"podSpec": pod_spec}})


@pytest.mark.parametrize("shape", [None, 3, [], {"containers": "x"}, {"containers": [3]}, {"containers": [{"env": [{"name": ["a"]}]}]}])
@pytest.mark.parametrize("is_member", [True, False])
def test_a_pod_spec_of_the_wrong_shape_is_not_adopted_and_raises_nothing(shape: Any, is_member: bool) -> None:
    assert not is_adopted(podclique(shape, team="a"), CLIQUE, is_member=is_member, requests=())


def test_a_member_without_a_label_of_the_template_is_not_adopted() -> None:
    assert is_adopted(podclique(SPEC, team="a"), CLIQUE, is_member=True, requests=())
    assert not is_adopted(podclique(SPEC, team="b"), CLIQUE, is_member=True, requests=())


def test_a_clique_outside_groups_may_have_more_than_the_template() -> None:
    more = {**SPEC, "dnsPolicy": "Default"}

    assert is_adopted(podclique(more), CLIQUE, is_member=False, requests=())
    assert not is_adopted(podclique(more, team="a"), CLIQUE, is_member=True, requests=())
