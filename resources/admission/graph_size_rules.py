"""Graph size rules: what makes a graph without a PodCliqueSet, or by a scaling adapter, larger than it may be. Only growth is refused."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from engine.paths import get
from engine.resource import Body
from resources.admission import size_rules
from resources.admission.cel import rule
from resources.base import names
from resources.base.set_size import GraphSize, ScaledPart, SetSizes, Totals, json_bytes
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.model.names import base_name
from resources.dynamo.objects.replica_limit import MOST_INSTANCES, instance_count
from resources.ports.configuration import UNLIMITED, SizeLimits, WorkloadLimits
from resources.ports.fabric import PolicyRule, PolicyVariable
from resources.schema.graph_values import NODE_COUNT
from resources.schema.issues import ErrorType, Issue

TOO_MANY: Final = "{count} replicas of services on several nodes are more than {most}, the most without Grove"


def issues(
    graph: InferenceGraph, spec: Any, old: InferenceGraph | None, old_spec: Any, limits: WorkloadLimits, sizes: SetSizes | None
) -> Iterator[Issue]:
    """The issues of a graph and its spec as JSON, compared with the stored one. With Grove the limits of its PodCliqueSet count.

    `sizes`: those of its namespace, if they are known.
    """
    if graph.may_use_grove:
        return
    count = instance_count(graph)
    if count > MOST_INSTANCES and limits != UNLIMITED and (old is None or count > instance_count(old)):
        yield Issue(("spec", "services"), ErrorType.INVALID, TOO_MANY.format(count=count, most=MOST_INSTANCES))
    others = sizes.besides_graph(graph.name) if sizes is not None else None
    yield from size_rules.issues(_totals(graph, spec), _totals(old, old_spec) if old is not None else None, limits, others)


def scale_issues(adapter: str, new: Body, old: Body, limits: WorkloadLimits, sizes: SetSizes | None) -> Iterator[Issue]:
    """The issues of a change of the replicas of the scaling adapter of this name, or of its `scale`.

    The other services count as their graph specifies them. Without `sizes` nothing is known of the graph, and nothing is refused.
    """
    after, before = (get(body, ("spec", "replicas"), 0) for body in (new, old))
    if sizes is None or not size_rules.is_growth(before, after):
        return
    for name in size_rules.owner_names(adapter):
        if (graph := sizes.graphs.get(name)) is None:
            continue
        for service in graph.services:
            if names.scaling_adapter(name, service.name) == adapter:
                issues = _scale_issues(name, graph, service, after, before, limits, sizes)
                yield from (replace(issue, path=size_rules.REPLICAS) for issue in issues)


def _scale_issues(
    name: str, graph: GraphSize, service: ScaledPart, after: int, before: int, limits: WorkloadLimits, sizes: SetSizes
) -> Iterator[Issue]:
    """The issues of more replicas of a service: as the part of the graph's PodCliqueSet that runs it counts, if that is known."""
    is_multinode = service.pods > 1
    if not graph.has_set and is_multinode and limits != UNLIMITED:
        count = after + sum(each.most for each in graph.services if each.pods > 1 and each is not service)
        if count > MOST_INSTANCES:
            yield Issue(size_rules.REPLICAS, ErrorType.INVALID, TOO_MANY.format(count=count, most=MOST_INSTANCES), after)
    set_size = sizes.by_name.get(name) if graph.has_set else None
    base = base_name(name, service.name.lower(), is_multinode=is_multinode)
    part = next((part for part in set_size.parts if part.name == base), None) if set_size is not None else None
    if set_size is None or part is None:
        totals, scaled, others = graph.totals, service, sizes.besides_graph(name)
    else:
        totals, scaled, others = set_size.totals, part, sizes.besides(name)
    yield from size_rules.issues(scaled.grown(totals, after), scaled.grown(totals, before), limits, others)


def _totals(graph: InferenceGraph, spec: Any) -> Totals:
    size = json_bytes(spec)
    return Totals(pods=sum(max(service.replicas, 0) * service.nodes for service in graph.services), bytes=size, stored=size)


def policy_variables() -> Iterator[PolicyVariable]:
    """The pods of the new and of the stored version, whichever API they have, for `policy_rules`."""
    yield PolicyVariable("pods", _pods_cel("object"))
    yield PolicyVariable("oldPods", f"request.operation == 'UPDATE' ? {_pods_cel('oldObject')} : 0.0")


def policy_rules(limits: SizeLimits) -> Iterator[PolicyRule]:
    """The limit of pods as CEL, also for a graph with a PodCliqueSet, which has as many."""
    path, message = size_rules.MEASURES["pods"]
    bad = f"variables.pods > {limits.pods}.0 && variables.pods > variables.oldPods"
    yield rule(bad, ".".join(map(str, path)), message.format(limit=limits.pods))


def _pods_cel(graph: str) -> str:
    services, components = f"{graph}.?spec.?services.orValue({{}})", f"{graph}.?spec.?components.orValue([])"
    nodes = f"(has(c.multinode) ? c.multinode.?nodeCount.orValue({NODE_COUNT}) : 1)"
    return f"({services}.map(name, {services}[name]) + {components}).map(c, double(c.?replicas.orValue(1)) * double({nodes})).sum()"
