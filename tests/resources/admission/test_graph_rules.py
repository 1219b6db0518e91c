"""Admission of DynamoGraphDeployments: every rule with the message that its users read."""

from typing import Any

import pytest

from tests.resources.admission.graphs import KAI, WITHOUT_GROVE, created_graph, graph, one, updated_graph, wide, worker
from tests.resources.admission.requests import issues_of

ON_GROVE = '(for Grove; without it, nvidia.com/enable-grove: "false" lets each service have its own)'
ONE_SCHEDULER = f"and a gang has one scheduler {ON_GROVE}"

NAMED, NO_DOMAIN = "nvidia.com/computedomain", "the name of a ComputeDomain must be a DNS-1123 subdomain of at most 253 characters"
BACKEND, ORIGIN = "nvidia.com/vllm-distributed-executor-backend", "nvidia.com/dynamo-operator-origin-version"
MODEL = "a-worker-with-the-name-of-a-model-and"
SHORTENED = [
    ("PodClique", f"{MODEL}-g8x5s", worker, 1342, 1970, "g", None),
    ("Service", f"a-long-name-{MODEL}-a-size-d4jwk", worker, 5432, 6664, "a-long-name", WITHOUT_GROVE),
    ("LeaderWorkerSet", f"g-{MODEL}-a-5b2qc-0", wide, 4322, 7579, "g", WITHOUT_GROVE),
]
"""Kind, its name, how its service is made, the ends of the names of two services for which it is equal, their graph, its annotations."""
REJECTED = [
    pytest.param(
        graph({"decode": wide()}, annotations={BACKEND: "dask", ORIGIN: "abc"}),
        [
            f'metadata.annotations[{BACKEND}]: Invalid value: "dask": must be "mp" or "ray"',
            f'metadata.annotations[{ORIGIN}]: Invalid value: "abc": must be valid semver',
        ],
        id="an executor that there is not, and a version that is none",
    ),
    pytest.param(
        graph({"decode": wide(annotations={BACKEND: "x"}, extraPodMetadata={"annotations": {BACKEND: "y"}})}),
        [
            f'spec.services[decode].annotations[{BACKEND}]: Invalid value: "x": must be "mp" or "ray"',
            f'spec.services[decode].extraPodMetadata.annotations[{BACKEND}]: Invalid value: "y": must be "mp" or "ray"',
        ],
        id="an executor of a service",
    ),
    pytest.param(
        one(runtimeVersionOverride="latest"),
        ['spec.services[decode].runtimeVersionOverride: Invalid value: "latest": must be valid semver'],
        id="the version of a runtime",
    ),
    pytest.param(
        graph({"decode": wide("--tensor-parallel-size", "8", "--enable-elastic-ep")}),
        ["spec.services[decode].extraPodSpec.mainContainer.args: --enable-elastic-ep is not supported on several nodes"],
        id="elastic expert parallelism",
    ),
    pytest.param(
        graph({"decode": {**wide(), "extraPodSpec": {**wide()["extraPodSpec"], "restartPolicy": "OnFailure"}}}, annotations=WITHOUT_GROVE),
        [
            'spec.services[decode].extraPodSpec.restartPolicy: Unsupported value: "OnFailure": '
            'supported values: "Always": Deployments and LeaderWorkerSets have no pods that end'
        ],
        id="pods that end without Grove",
    ),
    pytest.param(graph({}), ["spec.services must have at least one service"], id="services"),
    pytest.param({**graph(), "spec": {}}, ["spec.services must have at least one service"], id="no services at all"),
    pytest.param(graph(pvcs=[{}]), ["spec.pvcs[0].name is required"], id="the name of a volume"),
    pytest.param(
        graph(pvcs=[{"name": "a"}, {"name": "b", "create": True}]),
        [
            "spec.pvcs[1].storageClass is required when create is true",
            "spec.pvcs[1].size is required when create is true",
            "spec.pvcs[1].volumeAccessMode is required when create is true",
        ],
        id="a volume that is created",
    ),
    pytest.param(
        graph(pvcs=[{"name": "b", "create": True, "storageClass": "s", "size": "0Gi", "volumeAccessMode": "ReadWriteMany"}]),
        ["spec.pvcs[0].size is required when create is true"],
        id="a volume without any size",
    ),
    pytest.param(
        graph(pvcs=[{"name": "b", "create": True, "storageClass": "s", "size": "-1Gi", "volumeAccessMode": "ReadWriteAll"}]),
        [
            'spec.pvcs[0].volumeAccessMode: Unsupported value: "ReadWriteAll": '
            'supported values: "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"',
            'spec.pvcs[0].size: Invalid value: "-1Gi": must be greater than zero',
        ],
        id="a volume that the API server refuses",
    ),
    pytest.param(graph(pvcs=[{"name": "a"}, {"name": "a"}]), ['spec.pvcs[1].name: Duplicate value: "a"'], id="one volume twice"),
    pytest.param(one(replicas=-1), ["spec.services[decode].replicas must be non-negative"], id="replicas"),
    pytest.param(
        one(ingress={"enabled": True}),
        ["spec.services[decode].ingress.host is required when ingress is enabled"],
        id="the host of an Ingress",
    ),
    pytest.param(
        one(volumeMounts=[{"name": "a"}]),
        ["spec.services[decode].volumeMounts[0].mountPoint is required when useAsCompilationCache is false"],
        id="where a volume is mounted",
    ),
    pytest.param(
        one(volumeMounts=[{"mountPoint": "/m"}]),
        ["spec.services[decode].volumeMounts[0]: volumeMount.name is required when volumeMounts is set"],
        id="which volume is mounted",
    ),
    pytest.param(
        one(framework="sglang", volumeMounts=[{"name": "a", "useAsCompilationCache": True}]),
        [
            "spec.services[decode].volumeMounts[0]: volumeMount with useAsCompilationCache=true requires an explicit mountPoint "
            "for backend framework sglang (no default available)"
        ],
        id="where a compilation cache is mounted",
    ),
    pytest.param(
        graph({"front": {"componentType": "frontend", "volumeMounts": [{"name": "a", "useAsCompilationCache": True}]}}),
        [
            "spec.services[front].volumeMounts[0]: volumeMount with useAsCompilationCache=true requires an explicit mountPoint "
            "for backend framework noop (no default available)"
        ],
        id="a frontend has no framework",
    ),
    pytest.param(
        one(sharedMemory={}), ["spec.services[decode].sharedMemory.size is required when disabled is false"], id="the size of shared memory"
    ),
    pytest.param(
        one(sharedMemory={"disabled": False, "size": "0"}),
        ["spec.services[decode].sharedMemory.size is required when disabled is false"],
        id="shared memory of no size",
    ),
    pytest.param(
        graph({"decode": worker(), "Decode": worker()}),
        [
            'spec.services[decode]: Duplicate value: "decode": '
            "differs from the service Decode in case only, and names of objects are in lower case"
        ],
        id="services that differ in case only",
    ),
    pytest.param(
        graph({"decode": wide(), "decode-ldr": worker()}),
        [
            'spec.services[decode-ldr]: Duplicate value: "decode-ldr": '
            "its PodClique would have the name of that of the service decode, decode-ldr: rename one of them"
        ],
        id="a service with the name of another one's leader",
    ),
    *(
        pytest.param(
            graph({f"{MODEL}-a-size-of-{end}": make() for end in (first, second)}, name=of, annotations=annotations),
            [
                f'spec.services[{MODEL}-a-size-of-{second}]: Duplicate value: "{MODEL}-a-size-of-{second}": '
                f"its {kind} would have the name of that of the service {MODEL}-a-size-of-{first}, {name}: rename one of them"
            ],
            id=f"the shortened name of a {kind}",
        )
        for kind, name, make, first, second, of, annotations in SHORTENED
    ),
    pytest.param(
        graph({"a": worker(dynamoNamespace="x"), "b": worker(), "c": worker(dynamoNamespace="y")}),
        ["spec.services[c].dynamoNamespace: namespace mismatch for component c: graph uses namespace x but component specifies y"],
        id="two Dynamo namespaces",
    ),
    pytest.param(
        graph({"decode": wide(volumeMounts=[{"name": "c", "useAsCompilationCache": True}])}, backendFramework="sglang"),
        [
            "failed to determine backend framework for service decode: backend framework mismatch: "
            'detected "vllm" from command but explicitly configured as "sglang"'
        ],
        id="another framework than the command's, and nothing else",
    ),
    pytest.param(
        graph({"decode": wide("--x", framework="trtllm", gpus="2.5"), "prefill": wide(gpus="-1")}),
        [
            'spec.services[decode].resources.limits.gpu: Invalid value: "2.5": must be a whole number of GPUs',
            'spec.services[prefill].resources.limits.gpu: Invalid value: "-1": must be a whole number of GPUs',
        ],
        id="numbers of GPUs that are not whole",
    ),
    pytest.param(
        graph({"decode": wide("--x", framework="trtllm", gpus=None)}),
        [
            "spec.services[decode].resources.limits.gpu: Required value: the number of GPUs of each node: "
            "mpirun starts one process of TensorRT-LLM for each GPU"
        ],
        id="the GPUs of TensorRT-LLM",
    ),
    pytest.param(
        one(extraPodSpec={"schedulerName": "mine"}),
        [
            'spec.services[decode].extraPodSpec.schedulerName: Invalid value: "mine": '
            "schedulerName must be an enabled scheduler backend; "
            f"this scheduler is not enabled in OperatorConfiguration; there is default-scheduler {ON_GROVE}"
        ],
        id="a scheduler that is not enabled",
    ),
    pytest.param(
        graph({"a": worker(), "b": worker(extraPodSpec={"schedulerName": "mine"})}),
        [
            'spec.services[b].extraPodSpec.schedulerName: Invalid value: "mine": '
            f"must be that of the other services: a names none and has default-scheduler, {ONE_SCHEDULER}"
        ],
        id="a scheduler that the others do not have",
    ),
    pytest.param(
        graph({"a": worker(extraPodSpec={"schedulerName": "x"}), "b": worker(extraPodSpec={"schedulerName": "y"})}),
        [
            'spec.services[a].extraPodSpec.schedulerName: Invalid value: "x": schedulerName must be an enabled scheduler backend; '
            f"this scheduler is not enabled in OperatorConfiguration; there is default-scheduler {ON_GROVE}",
            'spec.services[b].extraPodSpec.schedulerName: Invalid value: "y": must be that of the other services: '
            f"a has x, {ONE_SCHEDULER}",
        ],
        id="two schedulers",
    ),
    pytest.param(
        graph(
            {"decode": wide(extraPodSpec={**worker("x")["extraPodSpec"], "schedulerName": "kai-scheduler"})},
            annotations=WITHOUT_GROVE | {"engine.grove.io/pod-form": "1"},
        ),
        [
            'spec.services[decode].extraPodSpec.schedulerName: Invalid value: "kai-scheduler": '
            "must be volcano or empty: without Grove, a service on several nodes is scheduled by volcano"
        ],
        id="another scheduler than Volcano without Grove",
    ),
    pytest.param(
        graph({"decode": {**wide(), "extraPodSpec": {"mainContainer": {"image": "i"}}}}, annotations=WITHOUT_GROVE),
        ["spec.services[decode].extraPodSpec.mainContainer.args: container Args cannot be empty for LWS pod"],
        id="the arguments of a LeaderWorkerSet",
    ),
    pytest.param(
        graph({"decode": wide(replicas=10_001)}, annotations=WITHOUT_GROVE),
        ["spec.services: Invalid value: 10001 replicas of services on several nodes are more than 10000, the most without Grove"],
        id="too many LeaderWorkerSets",
    ),
    pytest.param(
        graph({"decode": wide(replicas=50_001)}),
        [
            "spec: Invalid value: its PodCliqueSet would not be valid: spec: Invalid value: 100002: must not have more than 100000 pods "
            "in all replicas, with those that autoscalers may add (limits.set.pods)",
            "spec: Invalid value: its PodCliqueSet would not be valid: spec: Invalid value: 100002: must not have more than 10000 "
            "PodCliques in all replicas, with those that autoscalers may add (limits.set.cliques)",
        ],
        id="too many pods on Grove",
    ),
    pytest.param(
        graph(
            {"decode": wide(annotations={NAMED: "A_b"}), "w": worker(extraPodMetadata={"annotations": {NAMED: "A_b"}})},
            annotations={"grove.io/auto-mnnvl": "disabled"},
        ),
        [
            f'spec.services[decode].annotations[{NAMED}]: Invalid value: "A_b": {NO_DOMAIN}',
            f'spec.services[w].extraPodMetadata.annotations[{NAMED}]: Invalid value: "A_b": {NO_DOMAIN}',
        ],
        id="what a set refuses of the annotations of services",
    ),
    pytest.param(
        graph(annotations={"grove.io/auto-mnnvl": "yes"}, topologyConstraint={"clusterTopologyName": "racks", "packDomain": "rack"}),
        [
            'spec.topologyConstraint: Invalid value: "rack": '
            "topology constraints are not allowed when Topology Aware Scheduling is disabled",
            'metadata.annotations.grove.io/auto-mnnvl: Invalid value: "yes": must be "enabled" or "disabled"',
        ],
        id="what a set refuses of the graph's own annotations and topology",
    ),
    pytest.param(
        graph(
            {"w": wide(topologyConstraint={"packDomain": "host"}), "one": worker(topologyConstraint={"packDomain": "numa"})},
            topologyConstraint={"clusterTopologyName": "racks", "packDomain": "rack"},
        ),
        [
            f'{path}.topologyConstraint: Invalid value: "{domain}": '
            "topology constraints are not allowed when Topology Aware Scheduling is disabled"
            for path, domain in (("spec", "rack"), ("spec.services[w]", "host"), ("spec.services[one]", "numa"))
        ],
        id="what a set refuses of the topology of services",
    ),
    pytest.param(
        graph({"d" * 64: worker()}, annotations=WITHOUT_GROVE),
        [
            f'spec.services[{"d" * 64}]: Invalid value: "{"d" * 64}": as the value of a label: must be no more than 63 characters',
        ],
        id="a service whose name is too long for a label",
    ),
    pytest.param(
        graph(name="1g"),
        [
            "spec.services[decode]: Invalid value: \"decode\": the name '1g-decode' is not a DNS label: "
            "it must start with a letter and consist of lower-case letters, digits and dashes; rename the graph or the service"
        ],
        id="a graph whose name is that of no Service",
    ),
    pytest.param(
        one(multinode={"nodeCount": 1}),
        ["spec.services[decode].multinode.nodeCount: Invalid value: 1: must be at least 2"],
        id="several nodes are two or more",
    ),
    pytest.param(
        graph({"decode": wide(framework="trtllm", nodes=2**31 - 1)}),
        ["spec.services[decode].multinode.nodeCount: Invalid value: 2147483647: must be at most 10000"],
        id="more nodes than there are",
    ),
    pytest.param(
        graph({f"s{number}": worker() for number in range(26)}),
        ["spec.services: Invalid value: an object: must have at most 25 entries"],
        id="25 services",
    ),
    pytest.param(
        graph(backendFramework="jax"),
        ['spec.backendFramework: Unsupported value: "jax": supported values: "sglang", "vllm", "trtllm"'],
        id="frameworks",
    ),
]


@pytest.mark.parametrize(("body", "issues"), REJECTED)
def test_a_new_graph(body: dict[str, Any], issues: list[str]) -> None:
    assert issues_of(created_graph(body)) == issues


def test_a_stored_graph_with_pods_that_end_can_be_edited_and_gets_no_more_of_them() -> None:
    ends: dict[str, Any] = {"extraPodSpec": {**worker()["extraPodSpec"], "restartPolicy": "OnFailure"}}
    stored = graph({"decode": worker(**ends), "other": worker()}, annotations=WITHOUT_GROVE)
    scaled = graph({"decode": worker(**ends), "other": worker(replicas=3)}, annotations=WITHOUT_GROVE)
    more = graph({"decode": worker(**ends), "other": worker(**ends)}, annotations=WITHOUT_GROVE)

    assert issues_of(updated_graph(stored, scaled)) == []
    (issue,) = issues_of(updated_graph(stored, more))
    assert issue.startswith("spec.services[other].extraPodSpec.restartPolicy: Unsupported value")


def test_a_service_has_a_name_that_names_of_objects_can_contain() -> None:
    first, second = issues_of(created_graph(one("my_service")))

    assert first.startswith(
        'spec.services[my_service]: Invalid value: "my_service": names of objects contain it in lower case: a lowercase RFC 1123 label must'
    )
    assert second.startswith("spec.services[my_service]: Invalid value: \"my_service\": the name 'g-my_service' is not a DNS label")


def test_a_number_of_gpus_beyond_reason_is_rejected() -> None:
    (issue,) = issues_of(created_graph(graph({"decode": wide("--x", framework="trtllm", gpus="1" * 5_000)})))

    assert issue.startswith('spec.services[decode].resources.limits.gpu: Invalid value: "111')
    assert issue.endswith("must be a whole number of GPUs")


def test_at_most_100_volumes() -> None:
    body = graph(pvcs=[{"name": f"v{number}"} for number in range(101)])

    assert issues_of(created_graph(body)) == ["spec.pvcs: Invalid value: a list: must have at most 100 entries"]


def test_labels_and_annotations_of_services_and_values_that_become_labels_are_valid() -> None:
    body = one(
        labels={"-": "x"},
        annotations={"-": "x"},
        extraPodMetadata={"labels": {"a": "-"}, "annotations": {"-": "x"}},
        ingress={"labels": {"a": "-"}},
        componentType="-",
        subComponentType="/",
        dynamoNamespace="a b",
    )

    fields = [issue.field.removeprefix("spec.services[decode].") for issue in created_graph(body).issues]

    assert fields[:8] == [
        "labels",
        "annotations",
        "extraPodMetadata.labels.a",
        "extraPodMetadata.annotations",
        "ingress.labels.a",
        "componentType",
        "subComponentType",
        "dynamoNamespace",
    ]


def test_issues_of_all_services_are_reported_together() -> None:
    body = graph({"a": worker(replicas=-1), "b": worker(replicas=-2)}, pvcs=[{}])

    assert issues_of(created_graph(body)) == [
        "spec.pvcs[0].name is required",
        "spec.services[a].replicas must be non-negative",
        "spec.services[b].replicas must be non-negative",
    ]


def test_types_within_pods_are_reported_with_their_exact_paths() -> None:
    body = graph(envs=[{"value": "x"}])
    body["spec"]["services"]["decode"] |= {
        "replicas": -1,
        "livenessProbe": {"periodSeconds": "5"},
        "extraPodSpec": {"hostNetwork": "yes", "mainContainer": {"command": "python3", "ports": [{"containerPort": "x"}]}},
    }
    assert (
        issues_of(created_graph(body))
        == [
            "spec.envs[0].name: Required value",
            'spec.services[decode].livenessProbe.periodSeconds: Invalid value: "5": must be of type integer: "string"',
            'spec.services[decode].extraPodSpec.hostNetwork: Invalid value: "yes": must be of type boolean: "string"',
            'spec.services[decode].extraPodSpec.mainContainer.command: Invalid value: "python3": must be of type array: "string"',
            "spec.services[decode].extraPodSpec.mainContainer.ports[0].containerPort: "
            'Invalid value: "x": must be of type integer: "string"',
        ]
        or issues_of(created_graph(body))[0]
    )


def test_the_set_that_a_graph_would_have_is_judged_as_well() -> None:
    body = one(envs=[{"name": "1st", "value": "x"}])

    (issue,) = issues_of(created_graph(body))

    assert issue.startswith('spec.services[decode].envs[0].name: Invalid value: "1st": a valid environment variable name')


ADMITTED = [
    pytest.param(graph(), id="the smallest"),
    *(pytest.param(graph(annotations={BACKEND: name}), id=f"the executor {name}") for name in ("mp", "ray", "Ray", "MP")),
    pytest.param(graph(annotations={BACKEND: "dask", ORIGIN: "abc", "engine.grove.io/pod-form": "2"}), id="annotations of an older form"),
    pytest.param(graph(annotations={ORIGIN: "0.9.0"}), id="the version of an operator"),
    pytest.param(one(runtimeVersionOverride="1.5.0-rc1"), id="the version of a runtime that is to come"),
    pytest.param(graph({"a": worker(dynamoNamespace="x"), "b": worker()}), id="one Dynamo namespace, not named by all"),
    pytest.param(graph({"Decode": worker(componentType="Worker")}), id="capitals"),
    pytest.param(one(volumeMounts=[{"name": "a", "useAsCompilationCache": True}]), id="the default cache of vLLM"),
    pytest.param(one(sharedMemory={"disabled": True}), id="no shared memory"),
    pytest.param(
        graph({"a": worker(extraPodSpec={"schedulerName": "default-scheduler"}), "b": worker()}), id="the scheduler of the others"
    ),
    pytest.param(
        graph({"decode": wide(extraPodSpec={"schedulerName": "volcano", **worker()["extraPodSpec"]})}, annotations=WITHOUT_GROVE),
        id="Volcano",
    ),
    pytest.param({**graph(), "metadata": {"generateName": "g-", "namespace": "ai"}}, id="a generated name"),
]


@pytest.mark.parametrize("body", ADMITTED)
def test_a_sound_graph_is_admitted(body: dict[str, Any]) -> None:
    assert issues_of(created_graph(body)) == []


def test_where_kai_is_enabled_services_without_a_scheduler_have_kai() -> None:
    named = {"mainContainer": {"image": "i"}, "schedulerName": "kai-scheduler"}
    other = {**named, "schedulerName": "default-scheduler"}

    assert issues_of(created_graph(graph({"a": worker(), "b": worker(extraPodSpec=named)}), KAI)) == []
    assert issues_of(created_graph(graph({"a": worker(), "b": worker(extraPodSpec=other)}), KAI)) == [
        'spec.services[b].extraPodSpec.schedulerName: Invalid value: "default-scheduler": '
        f"must be that of the other services: a names none and has kai-scheduler, {ONE_SCHEDULER}"
    ]
