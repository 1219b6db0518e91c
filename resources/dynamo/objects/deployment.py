"""Deployments: one for each single-node service of a graph on the component path."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from engine.observed import Live
from engine.resource import Policy, Want
from resources.base import kinds
from resources.base.fields import annotations_of, manifest, mapping, omitted_fields
from resources.base.labels import POD_FORM
from resources.dynamo.model.graph import GraphService, InferenceGraph, Role
from resources.dynamo.objects.labels import SELECTOR, own_labels
from resources.dynamo.objects.pod_template import (
    STRATEGY,
    TEMPLATE_HASH,
    object_annotations,
    object_labels,
    pod_template,
    template_hash,
)
from resources.dynamo.objects.server_form import hash_label, server_form
from resources.dynamo.objects.service import service_name
from resources.ports.configuration import DynamoSettings

_TEMPLATE_AND_STRATEGY = (("spec", "template"), ("spec", "strategy"))
_SCALE = ("spec", "replicas")
POLICY = Policy(
    exact=_TEMPLATE_AND_STRATEGY, seal=TEMPLATE_HASH, immutable=(("spec", "selector"),), omitted=omitted_fields(kinds.DEPLOYMENT)
)
SCALED_BY_OTHERS = replace(POLICY, seeded=(_SCALE,))
"""The policy for a service without `replicas`, or with a scaling adapter: the autoscaler of the Deployment owns its number."""


def _rolling(surge: int | str, unavailable: int | str) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


DEFAULT_STRATEGY = _rolling("25%", "25%")
STRATEGIES: Mapping[str, dict[str, Any]] = {
    "RollingUpdate": DEFAULT_STRATEGY,
    "Recreate": {"type": "Recreate"},
    "RampedSlowRollout": _rolling(1, 0),
    "BestEffortControlledRollout": _rolling(0, "20%"),
}
"""The value of the annotation `STRATEGY` of a service -> the strategy of its Deployment; any other value means the default."""


def deployment(graph: InferenceGraph, service: GraphService, settings: DynamoSettings, live: Live | None) -> Want:
    """The Deployment of a single-node service. Raises `PodFault` for what the manifest shows to be wrong."""
    name = service_name(graph, service)
    selector = {SELECTOR: name}
    template = pod_template(graph, service, Role.MAIN, settings)
    template["metadata"]["labels"].update(selector)
    live_template = mapping(live.body.get("spec")).get("template") if live else None
    form = server_form(template, live_template)
    own_hash = hash_label(template_hash(template), [(form, live_template)], live)
    body = manifest(
        kinds.DEPLOYMENT,
        graph.namespace,
        name,
        {**object_labels(graph, service), TEMPLATE_HASH: own_hash, **own_labels(graph)},
        annotations={**object_annotations(service), **_form(graph, live)},
        spec={
            "replicas": service.replicas,
            "selector": {"matchLabels": selector},
            "strategy": STRATEGIES.get(object_annotations(service).get(STRATEGY, ""), DEFAULT_STRATEGY),
            "template": form,
        },
    )
    policy = SCALED_BY_OTHERS if service.is_scaled_by_others else POLICY
    why = f"{service.name}: {'1 replica' if service.replicas == 1 else f'{service.replicas} replicas'} on one node each"
    return Want(kinds.DEPLOYMENT.id(graph.namespace, name), why, (graph.owner,), body=body, policy=policy)


def _form(graph: InferenceGraph, live: Live | None) -> dict[str, str]:
    """The annotation with the form of the pods. A Deployment that was created without it does not get it: an upgrade would change it."""
    is_wanted = graph.is_recorded and (live is None or POD_FORM in annotations_of(live.body))
    return {POD_FORM: graph.form.value} if is_wanted else {}
