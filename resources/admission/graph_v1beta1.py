"""Graphs of v1beta1 in admission: they are judged as the graphs of v1alpha1 that they mean, and told about in their own fields."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, Protocol

from msgspec.structs import replace
from pydantic import ValidationError

from engine.paths import get
from engine.quantity import amount
from engine.resource import Body
from resources.admission import json_rules
from resources.admission.graph_rules import quote, sentence
from resources.admission.request import Decision, unknown_field
from resources.admission.role_template_rules import template_issues
from resources.base.fields import mapping, mappings
from resources.dynamo.versions.api_versions import ALPHA_ONLY
from resources.dynamo.versions.converted import as_alpha, saved_fault
from resources.dynamo.versions.paths import ComponentPaths, component_paths, in_beta
from resources.schema.dynamo_v1beta1 import DynamoGraphDeploymentV1Beta1, GraphComponent
from resources.schema.graph_values import NODE_COUNT
from resources.schema.issues import ErrorType, Issue, Located, Path, rejection
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


class Decide(Protocol):
    """Decides on a graph of v1alpha1 that another one means, which keeps the rules of its own version if `is_valid`."""

    def __call__(self, alpha: Body, *, is_valid: bool) -> Decision:
        """The decision."""
        ...


def decided(body: Body, decide: Decide) -> Decision:
    """The decision on a graph of v1beta1 that is JSON; `decide` returns that on a graph of v1alpha1."""
    complete = defaulted_components(body)
    paths = component_paths(complete)
    unknown = tuple(unknown_field(paths.named(path)) for path in unknown_paths(body, MODEL))
    model, malformed = shape(complete)
    if model is None:
        return Decision(tuple(named(malformed, paths)), unknown, body=body)
    own = tuple(named(issues(model, saved_fault(complete)), paths))
    decision = decide(as_alpha(complete), is_valid=not own)
    known = {issue.path for issue in own}
    repeated = {name for name, times in Counter(each.name.lower() for each in model.spec.components).items() if times > 1}
    others = (issue for issue in located(decision.issues, paths) if issue.path not in known and not _is_of_names(issue, repeated))
    warnings = tuple(dict.fromkeys((*unknown, *(_warning(warning, paths) for warning in decision.warnings))))
    return replace(decision, issues=(*own, *others), warnings=warnings, pods=tuple(located(decision.pods, paths)), body=complete)


def _is_of_names(issue: Issue, repeated: Collection[str]) -> bool:
    """Whether an issue is about the name of a service that another one has but for its case: `_names` tells of all of them.

    `repeated`: such names, in lower case. Names of objects may be equal although those of the services are not.
    """
    return issue.type is ErrorType.DUPLICATE and issue.path[:-1] == COMPONENTS and str(issue.value).lower() in repeated


def located(issues: Iterable[Issue], paths: ComponentPaths) -> Iterator[Issue]:
    """Issues of a graph of v1alpha1 at the fields of v1beta1 that they are about."""
    return (replace(issue, path=paths.of(issue.path), message=in_beta(issue.message)) for issue in issues)


def named(issues: Iterable[Issue], paths: ComponentPaths) -> Iterator[Issue]:
    """Issues of a graph of v1beta1, with their components as texts name them."""
    return (replace(issue, path=paths.named(issue.path)) for issue in issues)


def _warning(warning: str, paths: ComponentPaths) -> str:
    text = in_beta(warning)
    return Located(text, paths.of(warning.path)) if isinstance(warning, Located) else text


COMPONENTS: Final = ("spec", "components")
SEVERAL_NODES: Final = frozenset({"worker", "prefill", "decode"})


def issues(model: DynamoGraphDeploymentV1Beta1, saved_fault: str) -> Iterator[Issue]:
    """The issues of a graph that has its shape. `saved_fault`: what is wrong with the annotation of fields of v1alpha1."""
    if saved_fault:
        yield Issue(("metadata", "annotations", ALPHA_ONLY), ErrorType.INVALID, saved_fault)
    yield from _names(model)
    types = [component.type for component in model.spec.components]
    if types.count("epp") > 1:
        yield sentence(COMPONENTS, "spec.components: at most one component may have type epp")
    for number, component in enumerate(model.spec.components):
        yield from _component(component, (*COMPONENTS, number), f"spec.components[{quote(component.name)}]")


def _names(model: DynamoGraphDeploymentV1Beta1) -> Iterator[Issue]:
    seen: set[str] = set()
    for number, component in enumerate(model.spec.components):
        if component.name.lower() in seen:
            message = f"spec.components[{quote(component.name)}]: component names must be unique case-insensitively"
            yield sentence((*COMPONENTS, number, "name"), message)
        seen.add(component.name.lower())


def _component(component: GraphComponent, path: Path, field: str) -> Iterator[Issue]:
    size = component.shared_memory_size
    if size is not None and (amount(str(size)) or 0) < 0:
        yield sentence((*path, "sharedMemorySize"), f"{field}.sharedMemorySize must be non-negative")
    if component.multinode is not None and component.type not in SEVERAL_NODES:
        message = "multinode is supported only for worker, prefill, or decode components"
        yield sentence((*path, "multinode"), f"{field}: {message}")
    template = component.pod_template
    if template is not None or all(role.pod_template is None for role in component.roles):
        spec = template.spec if template is not None else None
        place, name = (*path, "podTemplate"), f"{field}.podTemplate"
        yield from template_issues({"spec": spec or {}}, place, name, is_multinode=component.multinode is not None)
