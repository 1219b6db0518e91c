"""CRDs: the CustomResourceDefinitions of Grove's five kinds and of the two of Dynamo, generated from the models."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import orjson
from msgspec import Struct

from engine.ids import Kind
from resources.base import kinds
from resources.schema.child_kinds import PodClique, PodCliqueScalingGroup, PodGang
from resources.schema.dynamo import DynamoGraphDeployment
from resources.schema.dynamo_v1beta1 import DynamoGraphDeploymentV1Beta1
from resources.schema.meta import ApiObject
from resources.schema.podcliqueset import PodCliqueSet
from resources.schema.scaling_adapter import DynamoGraphDeploymentScalingAdapter
from resources.schema.structural import structural
from resources.schema.topology import ClusterTopologyBinding

_READY: Final = '.status.conditions[?(@.type=="Ready")]'


class Column(Struct, frozen=True):
    """A column of `kubectl get`; a `wide` one is shown with `-o wide` only."""

    name: str
    path: str
    type: str = "integer"
    wide: bool = False

    def body(self) -> dict[str, Any]:
        """The entry of `additionalPrinterColumns`."""
        return {"name": self.name, "type": self.type, "jsonPath": self.path} | ({"priority": 1} if self.wide else {})


class Definition(Struct, frozen=True):
    """The content of a CRD besides the schema.

    `selector` is the path of the label selector for the scale subresource; empty if the kind has no such subresource.
    """

    kind: Kind
    model: type[ApiObject]
    short_name: str
    columns: tuple[Column, ...]
    selector: str = ""


AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")
BREACHED: Final = Column("MinBreached", '.status.conditions[?(@.type=="MinAvailableBreached")].status', "string", wide=True)

GRAPH_COLUMNS: Final = (
    Column("State", ".status.state", "string"),
    Column("Ready", _READY + ".status", "string"),
    Column("Backend", ".spec.backendFramework", "string", wide=True),
    Column("Reason", _READY + ".reason", "string", wide=True),
    AGE,
)
DEFINITIONS: Final = (
    Definition(
        kinds.PODCLIQUE,
        PodClique,
        "pclq",
        (
            Column("MinAvail", ".spec.minAvailable"),
            Column("Replicas", ".spec.replicas"),
            Column("Ready", ".status.readyReplicas"),
            Column("Scheduled", ".status.scheduledReplicas"),
            Column("Updated", ".status.updatedReplicas"),
            Column("Gated", ".status.scheduleGatedReplicas", wide=True),
            BREACHED,
            AGE,
        ),
        selector=".status.hpaPodSelector",
    ),
    Definition(
        kinds.PODCLIQUESET,
        PodCliqueSet,
        "pcs",
        (
            Column("Replicas", ".spec.replicas"),
            Column("Available", ".status.availableReplicas"),
            Column("Updated", ".status.updatedReplicas"),
            Column("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
            Column("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
            Column("PCSGs-Updated", ".status.updateProgress.updatedPodCliqueScalingGroupsCount"),
            Column("PCSGs-Total", ".status.updateProgress.totalPodCliqueScalingGroupsCount"),
            Column("Update", '.status.conditions[?(@.type=="UpdateInProgress")].reason', "string", wide=True),
            Column("Ready", _READY + ".status", "string", wide=True),
            Column("Reason", _READY + ".reason", "string", wide=True),
            AGE,
        ),
        selector=".status.hpaPodSelector",
    ),
    Definition(
        kinds.SCALING_GROUP,
        PodCliqueScalingGroup,
        "pcsg",
        (
            Column("MinAvail", ".spec.minAvailable"),
            Column("Replicas", ".spec.replicas"),
            Column("Available", ".status.availableReplicas"),
            Column("Scheduled", ".status.scheduledReplicas"),
            Column("Updated", ".status.updatedReplicas"),
            Column("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
            Column("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
            BREACHED,
            AGE,
        ),
        selector=".status.selector",
    ),
    Definition(kinds.TOPOLOGY_BINDING, ClusterTopologyBinding, "ct", (Column("Domains", ".spec.levels[*].domain", "string"), AGE)),
    Definition(kinds.PODGANG, PodGang, "pg", (Column("Phase", ".status.phase", "string"), AGE)),
    Definition(kinds.DYNAMO_GRAPH, DynamoGraphDeployment, "dgd", GRAPH_COLUMNS),
    Definition(
        kinds.SCALING_ADAPTER,
        DynamoGraphDeploymentScalingAdapter,
        "dgdsa",
        (
            Column("Graph", ".spec.dgdRef.name", "string"),
            Column("Service", ".spec.dgdRef.serviceName", "string"),
            Column("Desired", ".spec.replicas"),
            Column("Replicas", ".status.replicas"),
            AGE,
        ),
        selector=".status.selector",
    ),
)
"""Every CRD, in the order of installation."""
NEWER: Final[Mapping[Kind, Definition]] = {
    kinds.DYNAMO_GRAPH: Definition(kinds.DYNAMO_GRAPH_V1BETA1, DynamoGraphDeploymentV1Beta1, "dgd", GRAPH_COLUMNS)
}
"""Kind -> its newer version, which is served where something converts the objects."""


class Conversion(Struct, frozen=True):
    """Who converts objects between the versions of a kind, and which version is stored."""

    service: Mapping[str, Any]
    """The reference to the Service of the webhook, with path and port."""
    storage: str = kinds.DYNAMO_GRAPH.version


def crds(conversion: Conversion | None = None) -> tuple[dict[str, Any], ...]:
    """The CustomResourceDefinitions, in the order of `DEFINITIONS`, as bodies for server-side apply.

    With a conversion, kinds with a newer version have both; without one, each has one. Every call returns equal bodies of its own: a
    change of one changes no other.
    """
    return tuple(_crd(definition, conversion) for definition in DEFINITIONS)


def schema(model: type[ApiObject]) -> dict[str, Any]:
    """The structural schema of one of these kinds. Every call returns an equal copy."""
    copied: dict[str, Any] = orjson.loads(_encoded_schema(model))
    return copied


@cache
def _encoded_schema(model: type[ApiObject]) -> bytes:
    """The structural schema as JSON. Computing it takes a hundred times as long as reading it."""
    raw: Mapping[str, Any] = model.model_json_schema(by_alias=True)
    return orjson.dumps(structural(raw, raw.get("$defs", {})))


def _crd(definition: Definition, conversion: Conversion | None) -> dict[str, Any]:
    kind, newer = definition.kind, NEWER.get(definition.kind)
    both = [definition, newer] if newer is not None and conversion is not None else [definition]
    stored = conversion.storage if len(both) > 1 and conversion is not None else kind.version
    return {
        "apiVersion": kinds.CRD.api_version,
        "kind": kinds.CRD.name,
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [definition.short_name],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(each, stored) for each in both],
            **(_converted_by(conversion) if len(both) > 1 and conversion is not None else {}),
        },
    }


def _converted_by(conversion: Conversion) -> dict[str, Any]:
    webhook = {"clientConfig": {"service": dict(conversion.service)}, "conversionReviewVersions": ["v1"]}
    return {"conversion": {"strategy": "Webhook", "webhook": webhook}}


def _version(definition: Definition, stored: str) -> dict[str, Any]:
    return {
        "name": definition.kind.version,
        "served": True,
        "storage": definition.kind.version == stored,
        "additionalPrinterColumns": [column.body() for column in definition.columns],
        "schema": {"openAPIV3Schema": schema(definition.model)},
        "subresources": {"status": {}} | _scale_subresource(definition.selector),
    }


def _scale_subresource(selector: str) -> dict[str, Any]:
    if not selector:
        return {}
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": selector}
    return {"scale": paths}
