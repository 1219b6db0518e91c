"""Graphs of v1beta1 in admission: they are judged as the graphs of v1alpha1 that they mean, and told about in their own fields."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace
from pydantic import ValidationError

from engine.paths import get
from engine.resource import Body
from resources.admission import component_rules, json_rules
from resources.admission.request import Decision, unknown_field
from resources.base.fields import mapping, mappings
from resources.dynamo.versions.converted import as_alpha, saved_fault
from resources.dynamo.versions.paths import ComponentPaths, component_paths, in_beta
from resources.schema.dynamo_v1beta1 import DynamoGraphDeploymentV1Beta1
from resources.schema.graph_values import NODE_COUNT
from resources.schema.issues import Issue, Located, rejection
from resources.schema.unknown_fields import unknown_paths

MODEL: Final = DynamoGraphDeploymentV1Beta1


def defaulted_components(body: Body) -> Body:
    """The graph with its defaults. Idempotent: a graph that has them is returned itself."""
    if isinstance(metadata := body.get("metadata"), dict) and not metadata.get("namespace"):
        body = {**body, "metadata": {**metadata, "namespace": "default"}}
    components = get(body, ("spec", "components"))
    if not isinstance(components, list | tuple) or not any(map(_lacks_nodes, mappings(components))):
        return body
    nodes = {"nodeCount": NODE_COUNT}
    filled = [{**each, "multinode": {**each["multinode"], **nodes}} if _lacks_nodes(mapping(each)) else each for each in components]
    return {**body, "spec": {**body["spec"], "components": filled}}


def _lacks_nodes(component: Body) -> bool:
    multinode = component.get("multinode")
    return isinstance(multinode, dict) and multinode.get("nodeCount") is None


def shape(body: Body) -> tuple[DynamoGraphDeploymentV1Beta1 | None, tuple[Issue, ...]]:
    """The model of a graph, or None; and what is malformed in it."""
    try:
        return MODEL.model_validate(body, extra="ignore"), ()
    except ValidationError as error:
        return None, rejection(error).issues


def alpha_of(body: Any) -> Any:
    """A stored graph as one of v1alpha1, if it has the shape of v1beta1; anything else as it is."""
    is_readable = not any(json_rules.issues(body)) and shape(body)[0] is not None
    return as_alpha(body) if is_readable else body


def decided(body: Body, decide: Callable[[Body], Decision]) -> Decision:
    """The decision on a graph of v1beta1 that is JSON; `decide` returns that on a graph of v1alpha1."""
    complete = defaulted_components(body)
    unknown = tuple(unknown_field(path) for path in unknown_paths(body, MODEL))
    model, malformed = shape(complete)
    if model is None:
        return Decision(malformed, unknown, body=body)
    own = tuple(component_rules.issues(model, saved_fault(complete)))
    paths = component_paths(complete)
    decision = decide(as_alpha(complete))
    known = {issue.path for issue in own}
    others = (issue for issue in located(decision.issues, paths) if issue.path not in known)
    warnings = tuple(dict.fromkeys((*unknown, *(_warning(warning, paths) for warning in decision.warnings))))
    return replace(decision, issues=(*own, *others), warnings=warnings, pods=tuple(located(decision.pods, paths)), body=complete)


def located(issues: Iterable[Issue], paths: ComponentPaths) -> Iterator[Issue]:
    """Issues of a graph of v1alpha1 at the fields of v1beta1 that they are about."""
    return (replace(issue, path=paths.of(issue.path), message=in_beta(issue.message)) for issue in issues)


def _warning(warning: str, paths: ComponentPaths) -> str:
    text = in_beta(warning)
    return Located(text, paths.of(warning.path)) if isinstance(warning, Located) else text
