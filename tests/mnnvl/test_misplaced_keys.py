"""N35: keys for domains that have no effect, because of their place or their spelling, cause a warning that says what to write."""

from typing import Any

import pytest

from providers.fabrics.nvidia.names import AUTO, NAMED
from resources.base.labels import DOMAIN_PLACEMENT, ON_COMPLETION, RELEASE_DOMAINS
from tests.builders import clique, group, podcliqueset
from tests.mnnvl.asking import ask, sharing, up
from tests.mnnvl.sets import OPTED_OUT, gpu, gpus, said

ON_CLIQUES = "it is read from spec.template.cliques[].annotations"
ON_SET = "it is read from metadata.annotations"
WHOLE = "automatic domains, and opting out of them, are for the whole set"


def warnings(manifest: dict[str, Any]) -> list[str]:
    """The warnings about keys."""
    return [warning for warning in ask(manifest, flag=False).warnings if "has no effect" in warning]


@pytest.mark.parametrize(
    "key", ["nvidia.com/computeDomain", "nvidia.com/compute-domain", "NVIDIA.com/compute_domain", "nvidia.com/compute.domain"]
)
def test_N35_a_misspelled_name_of_a_domain_is_warned_about(key: str) -> None:
    manifest = sharing(gpu(annotations={key: "rack"}))

    assert warnings(manifest) == [f"spec.template.cliques[0].annotations[{key}] has no effect: the annotation is {NAMED}"]
    assert up(manifest).domains() == {}


@pytest.mark.parametrize("key", ["grove.io/autoMNNVL", "grove.io/auto-MNNVL", "grove.io/auto_mnnvl", "Grove.io/AutoMnnvl"])
def test_N35_a_misspelled_opt_out_is_warned_about(key: str) -> None:
    manifest = said(podcliqueset("demo", gpu()), {key: "disabled"})

    assert warnings(manifest) == [f"metadata.annotations[{key}] has no effect: the annotation is {AUTO}"]


def test_N35_a_key_in_the_wrong_place_is_warned_about_with_the_right_one() -> None:
    spec = {**gpus(), "metadata": {"annotations": {NAMED: "rack"}}}
    manifest = said(podcliqueset("demo", gpu(pod_spec=spec), groups=(group("pool", "worker"),)), {**OPTED_OUT, NAMED: "rack"})
    manifest["spec"]["template"]["podCliqueScalingGroups"][0]["annotations"] = {NAMED: "rack"}

    assert warnings(manifest) == [
        f"metadata.annotations[{NAMED}] has no effect: {ON_CLIQUES}",
        f"spec.template.podCliqueScalingGroups[0].annotations[{NAMED}] has no effect: {ON_CLIQUES}",
        f"spec.template.cliques[0].spec.podSpec.metadata.annotations[{NAMED}] has no effect: {ON_CLIQUES}",
    ]


def test_N35_a_label_is_no_annotation() -> None:
    manifest = sharing(gpu(labels={NAMED: "rack"}))
    manifest["metadata"]["labels"] = {"grove.io/autoMNNVL": "disabled"}

    assert warnings(manifest) == [
        f"metadata.labels[grove.io/autoMNNVL] has no effect: the annotation is {AUTO}; it is an annotation, not a label; {ON_SET}",
        f"spec.template.cliques[0].labels[{NAMED}] has no effect: it is an annotation, not a label; {ON_CLIQUES}",
    ]


def test_N35_single_cliques_and_groups_cannot_opt_out() -> None:
    manifest = podcliqueset("demo", gpu(annotations=OPTED_OUT), groups=(group("pool", "worker"),))
    manifest["spec"]["template"]["podCliqueScalingGroups"][0]["annotations"] = OPTED_OUT

    assert warnings(manifest) == [
        f"spec.template.podCliqueScalingGroups[0].annotations[{AUTO}] has no effect: {ON_SET}; {WHOLE}",
        f"spec.template.cliques[0].annotations[{AUTO}] has no effect: {ON_SET}; {WHOLE}",
    ]


def test_N35_keys_in_their_place_and_keys_of_others_cause_no_warning() -> None:
    others = {"nvidia.com/computedomain-size": "2", "resource.nvidia.com/computeDomain": "uid", "example.com/computedomain": "x"}
    manifest = sharing(gpu(annotations={NAMED: "rack", **others}, labels={"nvidia.com/gpu.clique": "x"}), clique("frontend"))

    assert warnings(manifest) == []


def test_N35_keys_of_the_engine_itself_are_warned_about_too() -> None:
    manifest = sharing(gpu(annotations={NAMED: "rack", RELEASE_DOMAINS: ON_COMPLETION}, labels={DOMAIN_PLACEMENT: "required"}))
    manifest["metadata"]["annotations"] |= {"engine.grove.io/domain_placement": "required", "engine.grove.io/releaseDomains": ON_COMPLETION}

    assert warnings(manifest) == [
        f"metadata.annotations[engine.grove.io/domain_placement] has no effect: the annotation is {DOMAIN_PLACEMENT}",
        f"spec.template.cliques[0].labels[{DOMAIN_PLACEMENT}] has no effect: it is an annotation, not a label; {ON_SET}",
        f"metadata.annotations[engine.grove.io/releaseDomains] has no effect: the annotation is {RELEASE_DOMAINS}",
        f"spec.template.cliques[0].annotations[{RELEASE_DOMAINS}] has no effect: {ON_SET}",
    ]
