"""CRDs: names, columns, required fields, defaults and structural schemas."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from resources.base.kinds import DEFINED
from resources.schema import published
from resources.schema.crds import DEFINITIONS, crds

STRUCTURAL = frozenset(
    "type properties required items additionalProperties enum default description format pattern minimum minLength maxLength minItems"
    " maxItems maxProperties not anyOf x-kubernetes-int-or-string x-kubernetes-preserve-unknown-fields x-kubernetes-validations"
    " x-kubernetes-list-type x-kubernetes-list-map-keys".split()
)
"""Every key that the schemas use, all of which structural schemas may have."""


def version(name: str) -> dict[str, Any]:
    """The one version of the CRD with that name."""
    versions: list[dict[str, Any]] = next(crd["spec"]["versions"] for crd in crds() if crd["metadata"]["name"] == name)
    assert len(versions) == 1
    return versions[0]


INNER = {"[]": "items", "{}": "additionalProperties"}


def schema(name: str, *path: str) -> dict[str, Any]:
    """The schema of a field; `[]` means the items of a list, `{}` the entries of a map."""
    node: dict[str, Any] = version(name)["schema"]["openAPIV3Schema"]
    for step in path:
        node = node[INNER[step]] if step in INNER else node["properties"][step]
    return node


def nodes(schema: Mapping[str, Any], path: str = "$") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every schema within a schema, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{path}[]")


def emptied(value: Any) -> None:
    """Empty every map and every list in a value."""
    if isinstance(value, dict | list):
        for inner in list(value.values() if isinstance(value, dict) else value):
            emptied(inner)
        value.clear()


def is_quantity(node: Mapping[str, Any]) -> bool:
    """Whether it is a quantity: text or any number, for which CRDs have no type."""
    return "type" not in node and node.get("not") == {"enum": [False, True, [], {}]} and bool(node["x-kubernetes-preserve-unknown-fields"])


NAMES = [crd["metadata"]["name"] for crd in crds()]


def test_whoever_changes_a_definition_changes_no_other_one() -> None:
    before, changed = json.dumps(crds()), crds()
    for definition in changed:
        emptied(definition)

    assert json.dumps(crds()) == before and list(changed) == [{}] * len(DEFINITIONS)


def test_there_is_one_definition_for_each_kind_that_we_define() -> None:
    assert {(crd["spec"]["group"], crd["spec"]["names"]["kind"], crd["spec"]["scope"]) for crd in crds()} == {
        (kind.group, kind.name, "Namespaced" if kind.namespaced else "Cluster") for kind in DEFINED
    }


def test_definitions_are_in_installation_order_and_deterministic() -> None:
    assert [crd["metadata"]["name"] for crd in crds()] == [
        "podcliques.grove.io",
        "podcliquesets.grove.io",
        "podcliquescalinggroups.grove.io",
        "clustertopologybindings.grove.io",
        "podgangs.scheduler.grove.io",
        "dynamographdeployments.nvidia.com",
        "dynamographdeploymentscalingadapters.nvidia.com",
    ]
    assert repr(crds()) == repr(crds())


@pytest.mark.parametrize("name", NAMES)
def test_every_node_is_structural(name: str) -> None:
    for path, node in nodes(schema(name)):
        assert set(node) <= STRUCTURAL, path
        assert [isinstance(node.get("type"), str), bool(node.get("x-kubernetes-int-or-string")), is_quantity(node)].count(True) == 1, path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert node.get("format") in ("int32", "int64") or node.get("type") != "integer", path
        assert set(node.get("required", ())) <= set(node.get("properties", node.get("required", ()))), path


MOST_BYTES = 200_000
"""Of a definition as JSON: `kubectl apply` keeps a copy of it in an annotation, and all annotations have 256 KiB."""


def properties(node: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every field in a schema, with its path."""
    for name, field in node.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from properties(field, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), Mapping):
            yield from properties(node[key], f"{path}[]")


@pytest.mark.parametrize("name", NAMES)
def test_every_field_has_a_description(name: str) -> None:
    definition = next(crd for crd in crds() if crd["metadata"]["name"] == name)
    (version,) = definition["spec"]["versions"]
    root = version["schema"]["openAPIV3Schema"]
    described = {path: field.get("description", "") for path, field in properties(root)}
    assert described.pop(".metadata") == "", "an API server forbids it"

    assert [path for path, text in described.items() if not re.fullmatch(r"[A-Z][^\n]{2,200}[.)]", text)] == []
    assert root["description"]
    assert len(orjson.dumps(definition)) < MOST_BYTES


def test_every_recorded_description_is_used() -> None:
    recorded = orjson.loads((Path(published.__file__).parent / "field_descriptions.json").read_bytes())
    fields = {name: set(schema.get("properties", ())) for name, schema in published.definitions().items()}
    fields |= {base: fields[base] | fields[name] for name, (base, _) in published.EXTENDED.items()}
    fields["Container"] |= fields["EphemeralContainer"]
    common = {field for known in fields.values() for field in known}

    assert {name: set(texts) - fields.get(name, common) for name, texts in recorded.items()} == {name: set() for name in recorded}


@pytest.mark.parametrize(
    ("name", "short", "columns"),
    [
        (
            "podcliquesets.grove.io",
            "pcs",
            "Replicas Available Updated PCLQs-Updated PCLQs-Total PCSGs-Updated PCSGs-Total Update* Ready* Reason* Age",
        ),
        ("podcliques.grove.io", "pclq", "MinAvail Replicas Ready Scheduled Updated Gated* MinBreached* Age"),
        (
            "podcliquescalinggroups.grove.io",
            "pcsg",
            "MinAvail Replicas Available Scheduled Updated PCLQs-Updated PCLQs-Total MinBreached* Age",
        ),
        ("clustertopologybindings.grove.io", "ct", "Domains Age"),
        ("podgangs.scheduler.grove.io", "pg", "Phase Age"),
        ("dynamographdeployments.nvidia.com", "dgd", "State Ready Backend* Reason* Age"),
        ("dynamographdeploymentscalingadapters.nvidia.com", "dgdsa", "Graph Service Desired Replicas Age"),
    ],
)
def test_short_names_and_columns_are_those_of_grove_and_dynamo(name: str, short: str, columns: str) -> None:
    definition = next(crd for crd in crds() if crd["metadata"]["name"] == name)

    assert definition["spec"]["names"]["shortNames"] == [short]
    assert (
        " ".join(column["name"] + ("*" if column.get("priority") else "") for column in version(name)["additionalPrinterColumns"])
        == columns
    )


@pytest.mark.parametrize(
    ("name", "selector"),
    [
        ("podcliquesets.grove.io", ".status.hpaPodSelector"),
        ("podcliques.grove.io", ".status.hpaPodSelector"),
        ("podcliquescalinggroups.grove.io", ".status.selector"),
        ("dynamographdeploymentscalingadapters.nvidia.com", ".status.selector"),
    ],
)
def test_scalable_kinds_have_a_selector_path(name: str, selector: str) -> None:
    assert version(name)["subresources"] == {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": selector},
    }


@pytest.mark.parametrize("name", ["clustertopologybindings.grove.io", "podgangs.scheduler.grove.io", "dynamographdeployments.nvidia.com"])
def test_other_kinds_have_no_scale_subresource(name: str) -> None:
    assert version(name)["subresources"] == {"status": {}}


@pytest.mark.parametrize(
    ("name", "path", "required"),
    [
        ("podcliquesets.grove.io", "", "spec"),
        ("podcliquesets.grove.io", "spec", "template"),
        ("podcliquesets.grove.io", "spec template", "cliques"),
        ("podcliquesets.grove.io", "spec template cliques []", "name spec"),
        ("podcliquesets.grove.io", "spec template cliques [] spec", "podSpec"),
        ("podcliquesets.grove.io", "spec template headlessServiceConfig", "publishNotReadyAddresses"),
        ("podcliquesets.grove.io", "spec template resourceSharing []", "name scope"),
        ("podcliquesets.grove.io", "spec template resourceClaimTemplates []", "name templateSpec"),
        ("podcliquesets.grove.io", "spec template podCliqueScalingGroups []", "name cliqueNames"),
        ("podcliquesets.grove.io", "spec template podCliqueScalingGroups [] scaleConfig", "maxReplicas"),
        ("podcliquesets.grove.io", "status", "updatedReplicas availableReplicas"),
        ("podcliquesets.grove.io", "status lastErrors []", "code description observedAt"),
        ("podcliquesets.grove.io", "status podGangStatuses []", "name phase"),
        ("podcliques.grove.io", "", "spec"),
        ("podcliques.grove.io", "spec", "roleName podSpec replicas"),
        ("podcliques.grove.io", "status", "readyReplicas updatedReplicas scheduleGatedReplicas scheduledReplicas"),
        ("podcliques.grove.io", "status updateProgress", "podCliqueSetGenerationHash podTemplateHash"),
        ("podcliquescalinggroups.grove.io", "spec", "replicas cliqueNames"),
        ("podcliquescalinggroups.grove.io", "status", "scheduledReplicas availableReplicas updatedReplicas"),
        ("podcliquescalinggroups.grove.io", "status updateProgress", "updateStartedAt podCliqueSetGenerationHash"),
        ("clustertopologybindings.grove.io", "spec", "levels"),
        ("clustertopologybindings.grove.io", "spec levels []", "domain key"),
        ("clustertopologybindings.grove.io", "status schedulerTopologyStatuses []", "schedulerName topologyReference inSync"),
        ("podgangs.scheduler.grove.io", "spec", "podgroups"),
        ("podgangs.scheduler.grove.io", "spec podgroups []", "name podReferences minReplicas"),
        ("podgangs.scheduler.grove.io", "spec topologyConstraintGroupConfigs []", "name podGroupNames"),
        ("podgangs.scheduler.grove.io", "status", "phase"),
        ("dynamographdeployments.nvidia.com", "spec pvcs []", "name"),
        ("dynamographdeploymentscalingadapters.nvidia.com", "spec", "dgdRef replicas"),
        ("dynamographdeployments.nvidia.com", "spec services {} volumeMounts []", "name"),
        ("dynamographdeployments.nvidia.com", "spec services {} modelRef", "name"),
        ("dynamographdeployments.nvidia.com", "spec services {} resources claims []", "name"),
        ("dynamographdeployments.nvidia.com", "spec envs []", "name"),
        ("dynamographdeployments.nvidia.com", "status services {}", "componentKind componentName replicas updatedReplicas"),
    ],
)
def test_exactly_these_fields_are_required(name: str, path: str, required: str) -> None:
    assert set(schema(name, *path.split())["required"]) == set(required.split())


DEFAULTS = {
    "podcliquesets.grove.io": {
        "$.spec.replicas": 0,
        "$.spec.updateStrategy.type": "RollingRecreate",
        "$.spec.template.cliqueStartupType": "CliqueStartupTypeAnyOrder",
        "$.spec.template.headlessServiceConfig.publishNotReadyAddresses": True,
        "$.spec.template.podCliqueScalingGroups[].replicas": 1,
        "$.spec.template.podCliqueScalingGroups[].minAvailable": 1,
        "$.status.updatedReplicas": 0,
        "$.status.availableReplicas": 0,
        "$.status.updateProgress.updatedPodCliquesCount": 0,
        "$.status.updateProgress.totalPodCliquesCount": 0,
        "$.status.updateProgress.updatedPodCliqueScalingGroupsCount": 0,
        "$.status.updateProgress.totalPodCliqueScalingGroupsCount": 0,
    },
    "podcliques.grove.io": {
        "$.status.readyReplicas": 0,
        "$.status.updatedReplicas": 0,
        "$.status.scheduleGatedReplicas": 0,
        "$.status.scheduledReplicas": 0,
    },
    "podcliquescalinggroups.grove.io": {
        "$.spec.replicas": 1,
        "$.spec.minAvailable": 1,
        "$.status.scheduledReplicas": 0,
        "$.status.availableReplicas": 0,
        "$.status.updatedReplicas": 0,
    },
    "clustertopologybindings.grove.io": {},
    "podgangs.scheduler.grove.io": {},
    "dynamographdeployments.nvidia.com": {"$.spec.services[].multinode.nodeCount": 2},
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_exactly_these_fields_have_a_default(name: str) -> None:
    assert {path: node["default"] for path, node in nodes(schema(name)) if "default" in node} == DEFAULTS[name]


def test_cliques_are_a_list_map_and_metrics_are_atomic() -> None:
    cliques = schema("podcliquesets.grove.io", "spec", "template", "cliques")
    metrics = schema("podcliques.grove.io", "spec", "autoScalingConfig", "metrics")

    assert (cliques["x-kubernetes-list-type"], cliques["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    assert metrics["x-kubernetes-list-type"] == "atomic"


POD_SPECS = [
    ("podcliques.grove.io", ("spec", "podSpec")),
    ("podcliquesets.grove.io", ("spec", "template", "cliques", "[]", "spec", "podSpec")),
]
GRAPH = "dynamographdeployments.nvidia.com"
EXTRA = (GRAPH, ("spec", "services", "{}", "extraPodSpec"))


def test_an_extra_pod_spec_is_a_pod_spec_without_required_fields_and_with_a_main_container() -> None:
    extra, pod_spec = schema(*EXTRA[:1], *EXTRA[1]), schema(POD_SPECS[0][0], *POD_SPECS[0][1])
    main, container = extra["properties"].pop("mainContainer"), pod_spec["properties"]["containers"]["items"]

    assert "required" not in extra and "required" not in main
    assert extra["properties"] == pod_spec["properties"]
    assert main["properties"] == container["properties"]


def test_a_graph_has_at_most_25_services_and_100_volumes_and_its_node_counts_begin_at_2() -> None:
    spec = schema(GRAPH, "spec")["properties"]

    assert spec["services"]["maxProperties"] == 25
    assert spec["pvcs"]["maxItems"] == 100
    assert spec["backendFramework"]["enum"] == ["sglang", "vllm", "trtllm"]
    assert schema(GRAPH, "spec", "services", "{}", "multinode", "nodeCount")["minimum"] == 2


def test_a_volume_claim_that_is_created_needs_a_class_a_size_and_an_access_mode() -> None:
    (rule,) = schema(GRAPH, "spec", "pvcs", "[]")["x-kubernetes-validations"]

    assert rule["message"] == "When create is true, size, storageClass, and volumeAccessMode are required"
    assert rule["rule"] == "!has(self.create) || !self.create || (has(self.size) && has(self.storageClass) && has(self.volumeAccessMode))"


@pytest.mark.parametrize(("name", "path"), POD_SPECS)
def test_a_pod_spec_has_the_types_of_kubernetes(name: str, path: tuple[str, ...]) -> None:
    pod_spec = schema(name, *path)
    container = pod_spec["properties"]["containers"]["items"]

    assert pod_spec["required"] == ["containers"]
    assert pod_spec["properties"]["hostNetwork"].items() >= {"type": "boolean"}.items()
    policy = pod_spec["properties"]["restartPolicy"]
    assert (policy["type"], policy["enum"]) == ("string", ["Always", "Never", "OnFailure", ""])
    assert container["required"] == ["name"]
    port = container["properties"]["ports"]["items"]["properties"]["containerPort"]
    assert port.items() >= {"type": "integer", "format": "int32"}.items()
    assert container["properties"]["livenessProbe"]["properties"]["tcpSocket"]["properties"]["port"]["x-kubernetes-int-or-string"] is True


@pytest.mark.parametrize(("name", "path"), [*POD_SPECS, EXTRA])
def test_every_object_in_a_pod_spec_keeps_unknown_fields(name: str, path: tuple[str, ...]) -> None:
    closed = [
        where
        for where, node in nodes(schema(name, *path))
        if node.get("type") == "object"
        and "additionalProperties" not in node
        and node.get("x-kubernetes-preserve-unknown-fields") is not True
    ]

    assert closed == []


@pytest.mark.parametrize(("name", "path"), [*POD_SPECS, EXTRA])
def test_a_pod_spec_has_no_defaults_and_no_list_keys(name: str, path: tuple[str, ...]) -> None:
    hints = {"default", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-patch-merge-key"}

    assert [where for where, node in nodes(schema(name, *path)) if hints & set(node)] == []


def test_definitions_are_small_enough_for_kubectl_apply() -> None:
    # The server takes annotations up to 256 KiB; `kubectl apply` without --server-side puts a whole definition into one.
    assert max(len(json.dumps(crd)) for crd in crds()) < 200_000


def test_pack_domain_is_rejected_on_creation_only() -> None:
    rules = schema("podcliquesets.grove.io")["x-kubernetes-validations"]

    assert [rule["fieldPath"] for rule in rules] == [
        ".spec.template.topologyConstraint.packDomain",
        ".spec.template.cliques",
        ".spec.template.podCliqueScalingGroups",
    ]
    assert all(rule["optionalOldSelf"] and rule["reason"] == "FieldValueForbidden" for rule in rules)
