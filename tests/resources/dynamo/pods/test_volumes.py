"""Volumes of services: claims, shared memory and the compilation cache."""

from typing import Any

import pytest

from resources.dynamo.model.graph import Role
from resources.dynamo.pods.builder import PodFault
from resources.schema.issues import Rejected
from tests.resources.dynamo.pods.graphs import LEADER, MAIN, WORKER, Body, graph_of, main_container, main_of, pod, value_of, worker

COMMANDS = {framework: f"python3 -m dynamo.{framework}" for framework in ("vllm", "sglang", "trtllm")}


def cached(framework: str, *mounts: Body, nodes: int = 1) -> Body:
    return worker(COMMANDS.get(framework, "serve"), nodes=nodes, volumeMounts=list(mounts))


def cache(name: str = "c", mount_point: str = "") -> Body:
    return {"name": name, "useAsCompilationCache": True} | ({"mountPoint": mount_point} if mount_point else {})


def mounts_of(body: Body) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in main_of(body)["volumeMounts"]}


def test_a_volume_mount_is_a_claim_of_that_name() -> None:
    spec = pod(graph_of({"volumeMounts": [{"name": "data", "mountPoint": "/data"}]})).spec

    assert {"name": "data", "persistentVolumeClaim": {"claimName": "data"}} in spec["volumes"]
    assert {"name": "data", "mountPath": "/data"} in spec["containers"][0]["volumeMounts"]


def test_a_claim_that_is_mounted_twice_is_one_volume() -> None:
    body = {"volumeMounts": [{"name": "data", "mountPoint": "/a"}, {"name": "data", "mountPoint": "/b"}]}

    assert mounts_of(body) == {"/a": "data", "/b": "data", "/dev/shm": "shared-memory"}
    assert [volume["name"] for volume in pod(graph_of(body)).spec["volumes"]] == ["data", "shared-memory"]


def test_a_claim_whose_name_no_volume_may_have_keeps_its_name() -> None:
    (volume, _) = pod(graph_of({"volumeMounts": [{"name": "a.b", "mountPoint": "/a"}]})).spec["volumes"]

    assert volume["persistentVolumeClaim"] == {"claimName": "a.b"}
    assert volume["name"].startswith("a-b-")
    assert "." not in volume["name"]


@pytest.mark.parametrize(
    ("memory", "size"), [(None, "8Gi"), ({}, "8Gi"), ({"disabled": False, "size": "1Gi"}, "1Gi"), ({"size": "16Gi"}, "16Gi")]
)
def test_shared_memory_has_8_gibibytes_or_the_given_size(memory: Any, size: str) -> None:
    body = {} if memory is None else {"sharedMemory": memory}
    spec = pod(graph_of(body)).spec

    assert spec["volumes"] == [{"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": size}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "shared-memory", "mountPath": "/dev/shm"}]


def test_shared_memory_can_be_disabled() -> None:
    spec = pod(graph_of({"sharedMemory": {"disabled": True}})).spec

    assert "volumes" not in spec
    assert "volumeMounts" not in spec["containers"][0]


def test_the_size_of_shared_memory_is_a_quantity() -> None:
    with pytest.raises(Rejected) as raised:
        pod(graph_of({"sharedMemory": {"size": "much"}}))

    assert [issue.path for issue in raised.value.issues] == [("spec", "services", "decode", "sharedMemory", "size")]


@pytest.mark.parametrize(
    ("mount", "field", "detail"),
    [
        ({"mountPoint": "/a"}, "name", "volumeMount.name is required when volumeMounts is set"),
        ({"name": "a"}, "mountPoint", "volumeMount.mountPoint is required when useAsCompilationCache is false"),
    ],
)
def test_a_mount_needs_a_name_and_a_mount_point(mount: Body, field: str, detail: str) -> None:
    with pytest.raises(PodFault) as raised:
        pod(graph_of({"volumeMounts": [mount]}))

    assert (raised.value.path, raised.value.detail) == (("spec", "services", "decode", "volumeMounts", 0, field), detail)


@pytest.mark.parametrize(("role", "nodes"), [(MAIN, 1), (LEADER, 2), (WORKER, 2)])
@pytest.mark.parametrize(("mount_point", "directory"), [("/cache", "/cache"), ("", "/root/.cache/vllm")])
def test_vllm_is_told_where_its_cache_is_mounted(role: Role, nodes: int, mount_point: str, directory: str) -> None:
    main = main_of(cached("vllm", cache(mount_point=mount_point), nodes=nodes), role)

    assert value_of(main, "VLLM_CACHE_ROOT") == directory
    assert {"name": "c", "mountPath": directory} in main["volumeMounts"]


def test_the_first_cache_counts() -> None:
    plain = {"name": "p", "mountPoint": "/p"}

    assert value_of(main_of(cached("vllm", plain, cache("a", "/a"), cache("b", "/b"))), "VLLM_CACHE_ROOT") == "/a"
    assert value_of(main_of(cached("vllm", plain)), "VLLM_CACHE_ROOT") is None


def test_another_cache_directory_of_the_user_is_replaced_with_a_warning() -> None:
    body = {**cached("vllm", cache(mount_point="/cache")), "envs": [{"name": "VLLM_CACHE_ROOT", "value": "/other"}]}
    built = pod(graph_of(body))

    assert value_of(main_container(built), "VLLM_CACHE_ROOT") == "/cache"
    assert built.warnings == (
        "service decode, main: VLLM_CACHE_ROOT is /cache, where the compilation cache is mounted, instead of the given value",
    )


@pytest.mark.parametrize("framework", ["sglang", "trtllm", "noop"])
def test_other_frameworks_have_a_cache_where_they_say_and_no_variable(framework: str) -> None:
    main = main_of(cached(framework, cache(mount_point="/cache")))

    assert {"name": "c", "mountPath": "/cache"} in main["volumeMounts"]
    assert value_of(main, "VLLM_CACHE_ROOT") is None


@pytest.mark.parametrize("framework", ["sglang", "trtllm", "noop"])
def test_other_frameworks_have_no_default_place_for_their_cache(framework: str) -> None:
    with pytest.raises(PodFault) as raised:
        main_of(cached(framework, cache()))

    assert raised.value.path == ("spec", "services", "decode", "volumeMounts", 0, "mountPoint")
    assert raised.value.detail == (
        "volumeMount with useAsCompilationCache=true requires an explicit mountPoint for backend framework"
        f" {framework} (no default available)"
    )
