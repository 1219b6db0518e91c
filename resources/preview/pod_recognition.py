"""Pod recognition: how approvals recognise pods, by clique and index, and manifests without what the cluster adds while it works."""

from collections.abc import Mapping
from typing import Any

from engine.approval.approval import ObjectKey
from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import Body
from resources.base import kinds, labels
from resources.base.fields import mapping, mappings

ENDED = ("Succeeded", "Failed")


class WorkloadRecognition:
    """`engine.approval.approval.Recognition` for the objects of sets and graphs."""

    def subject(self, id: ResourceId, object_labels: Mapping[str, Any]) -> ObjectKey:
        """A pod is an index of its clique; a pod without these labels, and every other object, is itself."""
        clique, index = object_labels.get(labels.PODCLIQUE), object_labels.get(labels.POD_INDEX)
        if id.kind == kinds.POD.name and not id.group and isinstance(clique, str) and isinstance(index, str) and clique and index:
            return ObjectKey(id.group, id.kind, id.namespace, clique, index)
        return ObjectKey(*id)

    def essence(self, body: Body) -> Body:
        """A pod without its name and scheduling gates, which depend on uids and on whether its gang may start; a gang without its pods."""
        if body.get("kind") == kinds.POD.name:
            metadata = {key: value for key, value in mapping(body.get("metadata")).items() if key != "name"}
            spec = {key: value for key, value in mapping(body.get("spec")).items() if key != "schedulingGates"}
            return {"kind": kinds.POD.name, "metadata": metadata, "spec": spec}
        if body.get("kind") == kinds.PODGANG.name:
            gang = mapping(body.get("spec"))
            groups = [{**group, "podReferences": []} for group in mappings(gang.get("podgroups"))]
            return {**body, "spec": {**gang, "podgroups": groups}}
        return body

    def is_replaceable(self, live: Live) -> bool:
        """Whether it is a pod."""
        return live.id.kind == kinds.POD.name and not live.id.group

    def has_ended(self, live: Live) -> bool:
        """Whether it is a pod that has failed or completed."""
        return self.is_replaceable(live) and mapping(live.body.get("status")).get("phase") in ENDED


RECOGNITION = WorkloadRecognition()
