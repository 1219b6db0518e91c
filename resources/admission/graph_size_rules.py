"""Graph size rules: what makes a DynamoGraphDeployment without a PodCliqueSet larger than a set may be. Only growth is refused."""

from collections.abc import Iterator
from typing import Any

from resources.admission import size_rules
from resources.admission.cel import rule
from resources.base.set_size import SetSizes, Totals, json_bytes
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.objects.instance_limit import MOST_INSTANCES, instance_count
from resources.ports.configuration import UNLIMITED, SizeLimits, WorkloadLimits
from resources.ports.fabric import PolicyRule, PolicyVariable
from resources.schema.graph_values import NODE_COUNT
from resources.schema.issues import ErrorType, Issue


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
        message = f"{count} replicas of services on several nodes are more than {MOST_INSTANCES}, the most without Grove"
        yield Issue(("spec", "services"), ErrorType.INVALID, message)
    others = sizes.besides_graph(graph.name) if sizes is not None else None
    yield from size_rules.issues(_totals(graph, spec), _totals(old, old_spec) if old is not None else None, limits, others)


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
