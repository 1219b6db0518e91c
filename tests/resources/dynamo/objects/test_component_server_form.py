"""Pod templates as servers return them: a second pass finds no difference, a change shows only itself."""

import copy
from typing import Any

import pytest

from engine.diff import Rules, compare
from engine.leaves import explain
from engine.observed import Live, slice_of
from engine.observed import live as observed
from engine.operation import Cause, Patch
from engine.resource import Want
from resources.dynamo.model.graph import InferenceGraph
from tests.resources.dynamo.objects.component_graphs import resources
from tests.resources.dynamo.objects.grove_graphs import graph, worker

KEYS = ("Deployment/g-a", "LeaderWorkerSet/g-b-0")


def both(image: str = "server:1", **container: Any) -> InferenceGraph:
    """A graph with a Deployment and a LeaderWorkerSet of this container."""
    main = {"image": image, "command": ["/bin/sh", "-c"], "args": ["serve"], "env": [{"name": "EMPTY", "value": ""}], **container}
    services = {
        "a": worker(replicas=1, extra_pod_spec={"mainContainer": main}),
        "b": worker(nodes=2, extra_pod_spec={"mainContainer": main}),
    }
    for service in services.values():
        service["resources"] = {"limits": {"cpu": "1000m", "memory": "2048Mi", "gpu": "4"}}
    return graph(services)


def templates(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The pod templates of a workload."""
    group = body["spec"].get("leaderWorkerTemplate")
    return [group["leaderTemplate"], group["workerTemplate"]] if group else [body["spec"]["template"]]


def stored(resource: Want) -> dict[str, Any]:
    """What a server makes of a workload: defaults are added, zero values are left out, and quantities are spelled its way."""
    body: dict[str, Any] = copy.deepcopy(dict(resource.body))
    for template in templates(body):
        template["metadata"]["creationTimestamp"] = None
        spec = template["spec"]
        spec.update(dnsPolicy="ClusterFirst", securityContext={}, serviceAccount=spec["serviceAccountName"])
        spec.setdefault("schedulerName", "default-scheduler")
        for container in spec["containers"]:
            container.update(terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File", imagePullPolicy="IfNotPresent")
            limits = container["resources"]["limits"]
            limits.update({key: value for key, value in {"cpu": "1", "memory": "2Gi"}.items() if key in limits})
            for env in container["env"]:
                if env.get("value") == "":
                    del env["value"]
    return body


def differences(specified: InferenceGraph, *bodies: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """`<kind>/<name>` -> the paths of the fields that differ from the live objects, as a diff shows them."""
    lives = slice_of(observed(body) for body in bodies)
    made = resources(specified, lives)
    return {key: _paths(made[key], lives.objects[made[key].id]) for key in KEYS}


def _paths(resource: Want, live: Live) -> tuple[str, ...]:
    changes = compare(resource.body, live.body, Rules(resource.policy, Cause.DRIFT)).changes
    operation = Patch(resource.id, resource.why, Cause.INTENT, patch={}, changes=changes)
    return tuple(".".join(change.path) for change in explain(operation))


def server(specified: InferenceGraph) -> list[dict[str, Any]]:
    """The live workloads of a graph."""
    made = resources(specified)
    return [stored(made[key]) for key in KEYS]


def test_a_second_pass_finds_no_difference_whatever_the_server_filled_in() -> None:
    assert differences(both(), *server(both())) == dict.fromkeys(KEYS, ())


def test_a_new_image_is_shown_as_the_new_image_and_not_as_removed_defaults() -> None:
    shown = differences(both("server:2"), *server(both()))

    for key in KEYS:
        fields = {path.rpartition("containers.[main].")[2] for path in shown[key]} - {"metadata.labels.nvidia.com/dynamo-template-hash"}
        assert fields == {"image"}


def test_a_pull_policy_that_no_longer_follows_from_the_tag_is_removed() -> None:
    shown = differences(both("server:latest"), *server(both()))

    for key in KEYS:
        fields = {path.rpartition("containers.[main].")[2] for path in shown[key]} - {"metadata.labels.nvidia.com/dynamo-template-hash"}
        assert fields == {"image", "imagePullPolicy"}


SPELLED: list[dict[str, Any]] = [
    {"stdin": False},
    {"imagePullPolicy": "IfNotPresent"},
    {"imagePullPolicy": ""},
    {"terminationMessagePath": ""},
    {"env": [{"name": "EMPTY"}]},
]


@pytest.mark.parametrize("more", SPELLED)
def test_another_spelling_of_the_same_pods_changes_nothing(more: dict[str, Any]) -> None:
    assert differences(both(**more), *server(both())) == dict.fromkeys(KEYS, ())
    assert differences(both(), *server(both(**more))) == dict.fromkeys(KEYS, ())


def test_a_field_that_the_user_removes_is_removed() -> None:
    before = server(both(workingDir="/srv", ports=[{"name": "x", "containerPort": 1}]))

    for paths in differences(both(), *before).values():
        assert any(path.endswith("containers.[main].workingDir") for path in paths)
        assert any("containers.[main].ports" in path for path in paths)


def test_a_value_that_somebody_changed_in_a_live_template_is_set_back() -> None:
    bodies = server(both())
    for body in bodies:
        for template in templates(body):
            template["spec"]["containers"][0]["image"] = "other:1"

    assert all(any(path.endswith("[main].image") for path in paths) for paths in differences(both(), *bodies).values())


@pytest.mark.parametrize("more", [{"livenessProbe": {"httpGet": {"port": "http"}}}, {"securityContext": {"runAsUser": 0}}])
def test_a_new_value_is_sent_also_if_it_is_zero_and_a_server_would_keep_it(more: dict[str, Any]) -> None:
    shown = differences(both(**more), *server(both()))

    assert all(any(next(iter(more)) in path for path in paths) for paths in shown.values())


def test_a_label_that_is_called_like_a_field_with_a_default_is_removed_like_any_other() -> None:
    def labelled(labels: dict[str, str]) -> InferenceGraph:
        return graph(a=worker(replicas=1, labels=labels), b=worker(nodes=2, labels=labels))

    shown = differences(labelled({}), *server(labelled({"protocol": "TCP"})))

    assert all(any(path.endswith("emplate.metadata.labels.protocol") for path in paths) for paths in shown.values())
