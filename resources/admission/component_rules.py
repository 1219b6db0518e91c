"""Component rules: the admission rules for the components of a v1beta1 graph that are no rules for the services of v1alpha1."""

from collections.abc import Iterator
from typing import Final

from engine.quantity import amount
from resources.admission.graph_rules import quote, sentence
from resources.base.fields import mapping, mappings
from resources.dynamo.versions.api_versions import ALPHA_ONLY
from resources.dynamo.versions.to_alpha import MAIN, main_of
from resources.schema.dynamo_v1beta1 import DynamoGraphDeploymentV1Beta1, GraphComponent
from resources.schema.issues import ErrorType, Issue, Path

COMPONENTS: Final = ("spec", "components")
SEVERAL_NODES: Final = frozenset({"worker", "prefill", "decode"})
ELASTIC: Final = "--enable-elastic-ep"
SIDECAR: Final = "runtime"
"""The init container that runs beside the engine's, with `restartPolicy: Always`."""


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
    if all(role.pod_template is None for role in component.roles):
        yield from _pods(component, path, field)


def _pods(component: GraphComponent, path: Path, field: str) -> Iterator[Issue]:
    """The issues of the pods of a component, whose container `main` runs the engine."""
    spec = component.pod_template.spec if component.pod_template is not None else None
    place = (*path, "podTemplate", "spec", "containers")
    main = main_of({"podTemplate": {"spec": spec or {}}})
    if main is None:
        yield sentence(place, f"{field}.podTemplate.spec.containers: must have a container named {MAIN}, which runs the engine")
        return
    number = [container.get("name") for container in mappings(mapping(spec).get("containers"))].index(MAIN)
    if not main.get("image"):
        yield Issue((*place, number, "image"), ErrorType.REQUIRED, f"the image of the container {MAIN}")
    if component.multinode is None:
        return
    if any(word == ELASTIC for word in _words(main.get("args"))):
        yield sentence((*place, number, "args"), f"{field}: {ELASTIC} is not supported by the engine on several nodes")
    for index, init in enumerate(mappings(mapping(spec).get("initContainers"))):
        if init.get("name") == SIDECAR and init.get("restartPolicy") == "Always":
            message = f"the native sidecar {SIDECAR} is not supported with multinode"
            yield sentence((*path, "podTemplate", "spec", "initContainers", index), f"{field}: {message}")


def _words(value: object) -> Iterator[str]:
    """The words of arguments, those within one argument as well."""
    for argument in value if isinstance(value, list | tuple) else ():
        if isinstance(argument, str):
            yield from (word.partition("=")[0] for word in argument.split())
