"""Autoscalers: a HorizontalPodAutoscaler for each clique and scaling group with an autoscaling configuration."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.ids import ResourceId
from engine.resource import Policy, Want
from resources.base import kinds, labels
from resources.base.fields import manifest, omitted_fields
from resources.model.view import View

CPU_AT_80 = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]

POLICY = Policy(
    defaults=((("spec", "minReplicas"), 1), (("spec", "metrics"), CPU_AT_80)),
    quantities=frozenset({"value", "averageValue"}),
    omitted=omitted_fields(kinds.AUTOSCALER),
)
"""The server fills in a missing metric and minimum, and normalizes quantities."""


def render(view: View) -> Iterator[Want]:
    """The HPAs of a replica. Each has the name of its target; metrics are copied unchanged."""
    for clique in view.cliques:
        if clique.clique.autoscaling and clique.group is None:
            yield _autoscaler(view, clique.id, clique.clique.autoscaling)
    for group in view.groups:
        if group.group.autoscaling:
            yield _autoscaler(view, group.id, group.group.autoscaling)


def _autoscaler(view: View, target: ResourceId, config: Mapping[str, Any]) -> Want:
    reference = {"apiVersion": kinds.PODCLIQUE.api_version, "kind": target.kind, "name": target.name}
    spec = {"scaleTargetRef": reference, **{key: config[key] for key in ("minReplicas", "maxReplicas", "metrics") if key in config}}
    body = manifest(kinds.AUTOSCALER, view.namespace, target.name, labels.child(view.root, "pcs-hpa", target.name), spec=spec)
    return Want(
        kinds.AUTOSCALER.id(view.namespace, target.name),
        f"autoscaler of {target.kind} {target.name}",
        (view.owner,),
        body=body,
        after=frozenset({target}),
        policy=POLICY,
    )
