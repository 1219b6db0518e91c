"""Autoscalers: a HorizontalPodAutoscaler for each clique and scaling group with an autoscaling configuration."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.ids import ResourceId
from engine.observed import Live
from engine.reason import Because, Reason
from engine.resource import Policy, Want
from resources.base import kinds, labels
from resources.base.fields import manifest, omitted_fields
from resources.children.child_kind import DeletionGroup, unexpected
from resources.model.view import View

CPU_AT_80 = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]

POLICY = Policy(
    defaults=((("spec", "minReplicas"), 1), (("spec", "metrics"), CPU_AT_80)),
    quantities=frozenset({"value", "averageValue"}),
    omitted=omitted_fields(kinds.AUTOSCALER),
)
"""The server fills in a missing metric and minimum, and normalizes quantities."""


def render(view: View) -> Iterator[Want]:
    """The HPAs of a replica. Each has the name of its target; metrics are copied unchanged.

    An empty list of metrics is left out: the server fills it in as it does a missing one.
    """
    for clique in view.cliques:
        if clique.clique.autoscaling and clique.group is None:
            yield _autoscaler(view, clique.id, clique.clique.autoscaling)
    for group in view.groups:
        if group.group.autoscaling:
            yield _autoscaler(view, group.id, group.group.autoscaling)


def _autoscaler(view: View, target: ResourceId, config: Mapping[str, Any]) -> Want:
    reference = {"apiVersion": kinds.PODCLIQUE.api_version, "kind": target.kind, "name": target.name}
    given = {key: value for key in ("minReplicas", "maxReplicas", "metrics") if (value := config.get(key)) not in (None, [], ())}
    spec = {"scaleTargetRef": reference, **given}
    body = manifest(kinds.AUTOSCALER, view.namespace, target.name, labels.child(view.root, "pcs-hpa", target.name), spec=spec)
    return Want(
        kinds.AUTOSCALER.id(view.namespace, target.name),
        f"autoscaler of {target.kind} {target.name}",
        (view.owner,),
        body=body,
        after=frozenset({target}),
        policy=POLICY,
    )


def obsolete(view: View, live: Live) -> DeletionGroup:
    """An autoscaler is deleted with its target, or because the template has no autoscaling for it."""
    targets = {clique.name for clique in view.cliques} | {group.name for group in view.groups}
    why = f"the template has no autoscaling for {live.id.name}"
    return DeletionGroup(Because(Reason.TEMPLATE_CHANGED, why)) if live.id.name in targets else unexpected(why)
