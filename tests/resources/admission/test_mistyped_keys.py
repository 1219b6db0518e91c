"""Typing errors in the keys of annotations, and in names by which one part of a set refers to another."""

import string
from collections.abc import Iterator

import pytest

from resources.admission.annotation_rules import known_keys
from resources.schema.issues import Located, Path
from tests.resources.admission.graphs import created_graph, graph, worker
from tests.resources.admission.requests import SETUP, TOPOLOGY, binding, created, issues_of, pod_spec, put, references_to, whole

KNOWN = sorted(known_keys(SETUP))
GRAPH_KEYS = (
    "nvidia.com/enable-grove",
    "nvidia.com/kai-scheduler-queue",
    "nvidia.com/enable-metrics",
    "nvidia.com/deployment-strategy",
    "nvidia.com/disable-image-pull-secret-discovery",
)
PLACES: dict[str, Path] = {
    "metadata.annotations": ("metadata", "annotations"),
    "metadata.labels": ("metadata", "labels"),
    "spec.template.cliques.1.annotations": ("spec", "template", "cliques", 1, "annotations"),
    "spec.template.podCliqueScalingGroups.0.annotations": ("spec", "template", "podCliqueScalingGroups", 0, "annotations"),
}


def typing_errors(key: str) -> Iterator[str]:
    """The key without, with another, and with one more letter at each place of its name; and with a wrong prefix."""
    prefix, _, name = key.partition("/")
    for at in range(1, len(name)):
        yield f"{prefix}/{name[:at]}{name[at + 1 :]}"
        yield f"{prefix}/{name[:at]}x{name[at + 1 :]}"
        yield f"{prefix}/{name[:at]}x{name[at:]}"
    yield from (f"{other}/{name}" for other in ("nvidia.com", "grove.io", "engine.grove.io", f"{prefix[:-1]}", f"w{prefix}"))
    if "-" in name:
        yield name


@pytest.mark.parametrize("key", KNOWN)
def test_a_typing_error_in_a_key_is_a_warning_at_that_key(key: str) -> None:
    written = [each for each in dict.fromkeys(typing_errors(key)) if each not in KNOWN and each[-1] in string.ascii_letters]
    for place, path in PLACES.items():
        for each in written:
            decision = created(put(whole(), {place: {each: "x"}}), TOPOLOGY, references_to(binding("zone", "rack", "host")))
            about = [warning for warning in decision.warnings if isinstance(warning, Located) and warning.path == (*path, each)]

            assert len(about) == 1 and "has no effect" in about[0], (place, each, decision.warnings)


@pytest.mark.parametrize("key", [*KNOWN, *GRAPH_KEYS])
def test_a_typing_error_in_a_key_of_a_graph_or_a_service_is_a_warning_at_that_key(key: str) -> None:
    for each in dict.fromkeys(typing_errors(key)):
        if each not in (*KNOWN, *GRAPH_KEYS) and each[-1] in string.ascii_letters:
            of_graph = created_graph(graph({"a": worker()}, annotations={each: "x"}))
            of_service = created_graph(graph({"a": worker(extraPodMetadata={"annotations": {each: "x"}})}))
            paths = [warning.path for warning in (*of_graph.warnings, *of_service.warnings) if isinstance(warning, Located)]

            assert ("metadata", "annotations", each) in paths
            assert ("spec", "services", "a", "extraPodMetadata", "annotations", each) in paths


def test_keys_of_others_and_known_keys_are_no_typing_errors() -> None:
    words = (f"{key}-size" for key in KNOWN)
    others = (
        *words,
        "app.kubernetes.io/name",
        "nvidia.com/gpu.product",
        "queue",
        "protect",
        "example.com/auto-mnnvl",
        "grove.io/podclique",
        "a/b",
    )
    body = put(whole(), {"metadata.annotations": dict.fromkeys((*others, *GRAPH_KEYS), "x")})
    services = graph({"a": worker()}, annotations=dict.fromkeys((*others, *GRAPH_KEYS), "x"))

    assert not [warning for warning in created(body).warnings if "did you mean" in warning]
    assert not [warning for warning in created_graph(services).warnings if "did you mean" in warning]


REFERENCES = {
    "spec.template.cliques.2.spec.startsAfter": (["laed"], "did you mean lead? There are lead, front"),
    "spec.template.podCliqueScalingGroups.0.cliqueNames": (["lead", "wrok"], "did you mean work? There are work, front, lead"),
    "spec.template.resourceSharing.0.filter.childCliqueNames": (["fronnt"], "did you mean front? There are front, lead, work"),
    "spec.template.resourceSharing.0.filter.childScalingGroupNames": (["modl"], "did you mean model? There is model"),
    "spec.template.podCliqueScalingGroups.0.resourceSharing.0.filter.childCliqueNames": (
        ["wrok"],
        "did you mean work? There are work, lead",
    ),
    "spec.template.topologyConstraint.topologyName": ("rack", "did you mean racks? There is racks"),
    "spec.template.topologyConstraint.pack.required": ("zoen", "[zone rack host]; did you mean zone?"),
    "spec.template.cliques.0.spec.podSpec.schedulerName": (
        "default-schedulr",
        "did you mean default-scheduler? There is default-scheduler",
    ),
    "spec.template.cliques.0.spec.podSpec": (
        pod_spec(
            volumes=[{"name": "data", "emptyDir": {}}, {"name": "cache", "emptyDir": {}}],
            containers=[{"name": "main", "image": "i", "volumeMounts": [{"name": "cachee", "mountPath": "/c"}]}],
        ),
        "did you mean cache? There are cache, data",
    ),
}


@pytest.mark.parametrize("field", REFERENCES)
def test_a_name_that_does_not_exist_is_told_with_those_that_exist_the_nearest_first(field: str) -> None:
    value, expected = REFERENCES[field]
    decision = created(put(whole(), {field: value}), TOPOLOGY, references_to(binding("zone", "rack", "host")))

    assert any(expected in text for text in (*issues_of(decision), *map(str, decision.pods))), issues_of(decision)


def test_many_names_are_not_all_listed() -> None:
    names = [f"worker-{number}" for number in range(30)]
    cliques = [{"name": name, "spec": {"roleName": name, "podSpec": pod_spec()}} for name in names]
    body = put(whole(), {"spec.template.cliques": cliques, "spec.template.podCliqueScalingGroups.0.cliqueNames": ["workr-7", "zz"]})

    assert any(
        "did you mean worker-7? There are worker-7, worker-0" in text and text.endswith("and 20 more") for text in issues_of(created(body))
    )
