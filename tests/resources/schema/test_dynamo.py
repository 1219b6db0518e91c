"""The model of a DynamoGraphDeployment, from manifests and from live objects."""

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.base.kinds import DYNAMO_GRAPH
from resources.schema.dynamo import DynamoGraphDeployment
from resources.schema.parse import faults, parse
from resources.schema.pod_spec_rules import object_findings
from tests.resources.manifests import JSON, paths, put, whole_pod_spec

MANIFEST = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: g, namespace: ai, annotations: {nvidia.com/kai-scheduler-queue: gpu-intensive}}
spec:
  backendFramework: vllm
  pvcs: [{create: true, name: cache, storageClass: fast, size: 50Gi, volumeAccessMode: ReadWriteMany}]
  envs: [{name: A, value: b}]
  services:
    Frontend:
      componentType: frontend
      replicas: 2
      ingress: {enabled: true, host: x, hostPrefix: a-, hostSuffix: example.com, tls: {secretName: t}, ingressControllerClassName: n}
      extraPodSpec: {mainContainer: {image: "i:1"}}
    decode:
      componentType: worker
      subComponentType: decode
      dynamoNamespace: d
      serviceName: decode
      annotations: {a: b}
      labels: {a: b}
      envFromSecret: hf
      multinode: {nodeCount: 2}
      resources:
        requests: {cpu: "4", memory: 16Gi, custom: {example.com/nic: "1"}}
        limits: {gpu: "8", gpuType: nvidia.com/gpu}
        claims: [{name: imex, request: channel}]
      volumeMounts: [{name: cache, mountPoint: /cache, useAsCompilationCache: true}]
      sharedMemory: {size: 16Gi}
      modelRef: {name: m, revision: main}
      extraPodMetadata: {labels: {a: b}, annotations: {a: b}}
      livenessProbe: {httpGet: {path: /live, port: system}, periodSeconds: 5}
      readinessProbe: {tcpSocket: {port: 2222}}
      extraPodSpec:
        tolerations: [{operator: Exists}]
        containers: [{name: sidecar, image: "s:1"}]
        mainContainer:
          image: "i:1"
          command: [python3, -m, dynamo.vllm]
          args: ["--tensor-parallel-size", "16"]
          startupProbe: {httpGet: {path: /live, port: system}}
status:
  state: pending
  conditions:
  - {type: Ready, status: "False", reason: some_resources_are_not_ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
  services:
    decode: {componentKind: PodCliqueScalingGroup, componentName: g-0-decode, replicas: 1, updatedReplicas: 1, availableReplicas: 0}
"""
BODY: dict[str, Any] = yaml.load(MANIFEST, yaml.CSafeLoader)
DECODE = ("spec", "services", "decode")


def issues_of(body: Any, **how: bool) -> list[str]:
    """Every issue of a graph, as text."""
    return [str(issue) for issue in faults(DYNAMO_GRAPH, body, **how)]


def test_a_whole_graph_is_parsed_and_serialized_unchanged() -> None:
    model = parse(DYNAMO_GRAPH, BODY)

    assert isinstance(model, DynamoGraphDeployment)
    assert model.spec.services["decode"].multinode is not None
    assert model.spec.services["decode"].multinode.node_count == 2
    assert model.body() == BODY


def test_a_main_container_needs_no_name_and_an_extra_pod_spec_no_containers() -> None:
    assert issues_of(put(BODY, (*DECODE, "extraPodSpec"), {"mainContainer": {"image": "i"}})) == []


def test_every_field_of_a_pod_spec_is_known_in_an_extra_pod_spec() -> None:
    spec = whole_pod_spec()
    body = put(BODY, (*DECODE, "extraPodSpec"), {**spec, "mainContainer": spec["containers"][0]})

    assert issues_of(body) == []
    assert [finding for finding in object_findings(DYNAMO_GRAPH, body) if not finding.pods_only] == []


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (
            ("spec", "backendFramework"),
            "jax",
            'spec.backendFramework: Unsupported value: "jax": supported values: "sglang", "vllm", "trtllm"',
        ),
        (("spec", "services"), [], "spec.services: must be an object, got a list"),
        ((*DECODE,), None, "spec.services[decode]: must be an object, got null"),
        ((*DECODE, "multinode"), {"nodeCount": 1}, "spec.services[decode].multinode.nodeCount: Invalid value: 1: must be at least 2"),
        ((*DECODE, "multinode"), {"nodeCount": 2**31}, "spec.services[decode].multinode.nodeCount: must fit 32 bits, got 2147483648"),
        ((*DECODE, "replicas"), 1.0, "spec.services[decode].replicas: must be an integer, got 1.0"),
        ((*DECODE, "modelRef"), {}, "spec.services[decode].modelRef.name: Required value"),
        ((*DECODE, "replcas"), 1, "spec.services[decode].replcas: unknown field"),
        ((*DECODE, "resources", "claims"), [{}], "spec.services[decode].resources.claims[0].name: Required value"),
        (
            (*DECODE, "resources", "limits"),
            {"gpu": True},
            "spec.services[decode].resources.limits.gpu: must be a string, got true",
        ),
        (("spec", "pvcs"), [{"size": "big"}], 'spec.pvcs[0].size: must be a quantity such as 2, 500m or 4Gi, got "big"'),
        (
            (*DECODE, "livenessProbe"),
            {"httpGet": {"port": []}},
            'spec.services[decode].livenessProbe.httpGet.port: Invalid value: a list: must be of type integer,string: "array"',
        ),
        (
            (*DECODE, "extraPodSpec", "mainContainer", "image"),
            5,
            'spec.services[decode].extraPodSpec.mainContainer.image: Invalid value: 5: must be of type string: "integer"',
        ),
        (("kind",), "Graph", 'kind: must be "DynamoGraphDeployment", got "Graph"'),
    ],
)
def test_an_issue_has_its_exact_path(path: tuple[Any, ...], value: Any, text: str) -> None:
    body = copy.deepcopy(BODY)
    holder = body
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value

    assert text in issues_of(body)


@pytest.mark.parametrize(("text", "number"), [("2", 2), ("16", 16), ("007", 7)])
def test_a_number_in_quotes_is_that_number(text: str, number: int) -> None:
    model = parse(DYNAMO_GRAPH, put(BODY, (*DECODE, "multinode", "nodeCount"), text))

    assert isinstance(model, DynamoGraphDeployment)
    assert model.spec.services["decode"].multinode is not None
    assert model.spec.services["decode"].multinode.node_count == number


def test_unknown_fields_of_kubernetes_are_kept_and_no_issues() -> None:
    body = put(BODY, (*DECODE, "extraPodSpec", "mainContainer"), {"image": "i", "future": 1})

    assert issues_of(body) == []
    assert [issue.field for issue in object_findings(DYNAMO_GRAPH, body)] == ["spec.services[decode].extraPodSpec.mainContainer.future"]


def test_a_live_graph_may_have_fields_of_a_newer_version() -> None:
    body = put(BODY, ("spec",), {**BODY["spec"], "future": 1})

    assert issues_of(body) == ["spec.future: unknown field"]
    assert issues_of(body, strict=False) == []


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(paths(BODY)), JSON)
def test_any_value_anywhere_is_judged_without_an_error(path: tuple[Any, ...], value: Any) -> None:
    body = put(BODY, path, value)

    assert all(text.isprintable() for strict in (True, False) for text in issues_of(body, strict=strict))
