"""Graphs with every kind of setting: on either orchestrator they come up, and a second sync of the same file writes nothing."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.runtime.sync_report import Ending
from resources.base import kinds
from resources.ports.configuration import DynamoSettings
from tests.stories.graphs import graph, service
from tests.stories.stage import SETUP, stage

pytestmark = pytest.mark.anyio

CAPACITY = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8", "amd.com/gpu": "8", "rdma/ib": "8"}
AMOUNTS = {
    "limits": {"gpu": "2", "gpuType": "amd.com/gpu", "cpu": "1000m", "memory": "1.5Gi", "custom": {"rdma/ib": "1"}},
    "requests": {"cpu": "0.5", "memory": "1024Mi", "custom": {"rdma/ib": "1"}},
}
ASIDE = {"name": "aside", "image": "example/aside:1", "env": [{"name": "B", "value": ""}, {"name": "A", "value": "$(B)"}]}
POD = {
    "containers": [ASIDE],
    "initContainers": [{"name": "first", "image": "example/first:1", "command": ["true"]}],
    "volumes": [{"name": "own", "emptyDir": {"sizeLimit": "1024Mi"}}],
    "tolerations": [{"key": "z", "operator": "Exists"}, {"key": "a", "operator": "Exists"}],
    "hostNetwork": False,
    "mainContainer": {
        "image": "example/dynamo:1",
        "args": ["python3 -m dynamo.vllm"],
        "volumeMounts": [{"name": "own", "mountPath": "/own"}],
        "livenessProbe": {"failureThreshold": 3},
    },
}
WORDS = {
    "image": "example/dynamo:1",
    "command": ["python3", "-m", "dynamo.sglang"],
    "args": ["--host", "$(B)", "--x=$(A-b)"],
    "env": [{"name": "B", "value": "$(Z)"}, {"name": "A-b", "value": "q"}, {"name": "Z", "value": "1"}],
}
CLAIM = {"create": True, "size": "1024Mi", "storageClass": "fast", "volumeAccessMode": "ReadWriteMany"}
CACHE: list[dict[str, Any]] = [{"name": "cache", "useAsCompilationCache": True}, {"name": "models", "mountPoint": "/models"}]

GRAPHS = {
    "every framework": graph(
        v=service(nodes=2),
        s=service(nodes=2, script="python3 -m dynamo.sglang"),
        t=service(nodes=2, script="python3 -m dynamo.trtllm"),
        w=service(2, nodes=3),
    ),
    "pods of the user": graph(
        several=service(nodes=2, resources=AMOUNTS, sharedMemory={"disabled": True}, extraPodSpec=POD),
        single=service(resources=AMOUNTS, sharedMemory={"size": "1.5Gi"}, extraPodSpec=POD),
    ),
    "variables that refer to one another": graph(
        Decode=service(nodes=2, componentType="Decode", extraPodSpec={"mainContainer": WORDS}, envs=[{"name": "Z", "value": "$(G)"}])
    )
    | {"metadata": {"name": "chat", "namespace": "default", "annotations": {"nvidia.com/enable-metrics": "false"}}},
    "names that are shortened": graph(
        "my-multinode-deployment",
        **{"my-service": service(nodes=2), "my-service-2": service(nodes=2), "a-service-with-a-long-name": service()},
    ),
    "claims, caches and an Ingress": graph(
        decode=service(nodes=2, volumeMounts=CACHE),
        Frontend=service(
            componentType="frontend",
            script="python3 -m dynamo.frontend",
            ingress={"enabled": True, "host": "h", "ingressControllerClassName": "nginx", "tls": {"secretName": "t"}},
        ),
    ),
    "a frontend on several nodes, and values in quotes": graph(
        f=service(componentType="frontend", multinode={"nodeCount": "2"}, resources={"limits": {"gpu": 1, "cpu": 0.5}}),
        none=service(0),
    ),
}
GRAPHS["claims, caches and an Ingress"]["spec"]["pvcs"] = [{"name": "cache", **CLAIM}, {"name": "models", **CLAIM}]
GRAPHS["variables that refer to one another"]["spec"]["envs"] = [{"name": "G", "value": "g"}, {"name": "B", "value": "$(Z)-$(G)"}]

GRAPHS["a frontend on several nodes, and values in quotes"]["spec"]["services"]["f"]["replicas"] = "2"

PATHS: dict[str, dict[str, Any]] = {"Grove": {}, "LeaderWorkerSet": {"grove": False, "addons": ("lws", "volcano")}}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", GRAPHS)
async def test_a_second_sync_of_the_same_graph_writes_nothing(name: str, path: str) -> None:
    async with stage(capacity=CAPACITY, **PATHS[path]) as cluster:
        cluster.setup = replace(SETUP, dynamo=DynamoSettings(create_ssh_secret=True))

        report = await cluster.sync(manifests=[GRAPHS[name]])

        (live,) = cluster.there(kinds.DYNAMO_GRAPH).values()
        assert (report.ending, live["status"]["state"]) == (Ending.DONE, "successful")
        ours = cluster.start()
        again = await cluster.sync(ours, manifests=[GRAPHS[name]])
        assert again.ending is Ending.DONE
        assert not ours.writes and not ours.refused
