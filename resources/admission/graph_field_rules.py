"""Graph field rules: the admission rules for fields of graphs that Dynamo added with v1beta1, in both versions.

What the engine does not do is refused by the name of the field, so that nothing is left out silently.
"""

from collections.abc import Iterator
from typing import Any, Final

from resources.admission.graph_rules import quote, sentence, service_field, service_path
from resources.admission.role_template_rules import role_template_issues
from resources.base import kinds
from resources.base.fields import mapping
from resources.dynamo.model.form import PodForm
from resources.dynamo.model.graph import GraphService, InferenceGraph, Role, about_service
from resources.dynamo.model.names import component
from resources.dynamo.model.overrides import OF_ROLE, OF_SET, PROVIDER_VERSION, foreign_paths, min_available, override_of
from resources.dynamo.restart import PARALLEL
from resources.schema.dynamo_parts import ProviderOverride
from resources.schema.issues import ErrorType, Issue, Located, Path, spelled

SPEC: Final[Path] = ("spec",)
NOT_SUPPORTED: Final = "is not supported by the engine"
REFUSED: Final = {
    "frontend_sidecar": "frontendSidecar",
    "epp_config": "eppConfig",
    "gpu_memory_service": "gpuMemoryService",
    "failover": "failover",
    "checkpoint": "checkpoint",
}
"""Field of the model -> the field of a service that the engine does not carry out."""
WITHOUT_EFFECT: Final = frozenset({"kvTransferPolicy"})
"""The experimental fields of a graph that change no pod."""
ROLES: Final = (Role.LEADER, Role.WORKER)


def issues(graph: InferenceGraph) -> Iterator[Issue]:
    """The issues of these fields."""
    yield from _of_graph(graph)
    yield from _restart(graph)
    for service in graph.services:
        path, field = service_path(service.name), service_field(service.name)
        for attribute, name in REFUSED.items():
            if getattr(service.spec, attribute):
                yield Issue((*path, name), ErrorType.FORBIDDEN, NOT_SUPPORTED)
        for name in mapping(service.spec.experimental):
            yield Issue((*path, "experimental", name), ErrorType.FORBIDDEN, NOT_SUPPORTED)
        yield from _min_available(graph, service, path, field)
        yield from _roles(service, path, field)
        yield from role_template_issues(service, graph.spec.services[service.name], path, field)
        yield from _override(service.spec.provider_override, *override_of(service), (*path, "providerOverride"))
        yield from _topology(graph, service, path)


def new_issues(graph: InferenceGraph) -> Iterator[Issue]:
    """The issues of a graph that is created: in v1beta1 an empty field switches on what the engine does not carry out, too."""
    for service in graph.services if graph.is_written_as_v1beta1 else ():
        for attribute, name in REFUSED.items():
            if getattr(service.spec, attribute) == {}:
                yield Issue((*service_path(service.name), name), ErrorType.FORBIDDEN, NOT_SUPPORTED)


def warnings(graph: InferenceGraph) -> Iterator[str]:
    """Warnings about these fields: what has no effect, and what is left to others."""
    if not graph.form.includes(PodForm.FOURTH):
        order = (*SPEC, "restart", "strategy", "order")
        yield from (Located(f"spec.restart.strategy.order: {fault}", order) for fault in _order_faults(graph))
    for name in sorted(WITHOUT_EFFECT & mapping(graph.spec.experimental).keys()):
        yield Located(f"spec.experimental.{name} has no effect: it changes no pod", (*SPEC, "experimental", name))
    if graph.spec.topology_constraint is not None and not graph.may_use_grove:
        yield Located("spec.topologyConstraint has no effect without Grove", (*SPEC, "topologyConstraint"))
    for service in graph.services:
        adapter = service.spec.scaling_adapter
        if adapter is not None and adapter.enabled:
            yield about_service(
                service,
                f"{service_field(service.name)}.scalingAdapter: replicas is used when the service is made; then the number is that of "
                f"{kinds.SCALING_ADAPTER.name} {component(graph, service)} or, without it, of the object that runs the service",
                "scalingAdapter",
            )


def new_warnings(graph: InferenceGraph) -> Iterator[str]:
    """Warnings about these fields in a graph that does not exist yet."""
    if graph.spec.restart is not None:
        yield Located(
            "spec.restart must be unset on create; set spec.restart.id after creation to request a restart: "
            f"the id {quote(graph.spec.restart.id)} of a new graph counts as carried out",
            (*SPEC, "restart"),
        )


def _of_graph(graph: InferenceGraph) -> Iterator[Issue]:
    for name in mapping(graph.spec.experimental):
        if name not in WITHOUT_EFFECT:
            yield Issue((*SPEC, "experimental", name), ErrorType.FORBIDDEN, NOT_SUPPORTED)
    yield from _override(graph.spec.provider_override, *OF_SET, (*SPEC, "providerOverride"))
    if graph.spec.provider_override is not None and graph.spec.topology_constraint is not None:
        yield Issue((*SPEC, "providerOverride"), ErrorType.FORBIDDEN, "must not be used beside topologyConstraint")
    overrides = (graph.spec.provider_override, *(service.spec.provider_override for service in graph.services))
    if any(overrides) and not graph.may_use_grove:
        yield Issue((*SPEC, "providerOverride"), ErrorType.FORBIDDEN, "fields of Grove's objects need Grove, which the graph disables")


def _restart(graph: InferenceGraph) -> Iterator[Issue]:
    """The issues of a restart. Older graphs may have any order: what it does not name comes last."""
    if graph.form.includes(PodForm.FOURTH):
        path = (*SPEC, "restart", "strategy", "order")
        yield from (sentence(path, f"spec.restart.strategy.order {fault}") for fault in _order_faults(graph))


def _order_faults(graph: InferenceGraph) -> Iterator[str]:
    strategy = graph.spec.restart.strategy if graph.spec.restart is not None else None
    if strategy is None or not strategy.order:
        return
    if strategy.type == PARALLEL:
        yield "cannot be specified when strategy is parallel"
    names = {service.name for service in graph.services}
    if len(set(strategy.order)) < len(strategy.order):
        yield "must be unique"
    elif len(strategy.order) != len(names):
        yield "must have the same number of unique components as the deployment"
    elif unknown := [name for name in strategy.order if name not in names]:
        yield f"names no component of the deployment: {', '.join(map(quote, unknown))}"


def _min_available(graph: InferenceGraph, service: GraphService, path: Path, field: str) -> Iterator[Issue]:
    given = service.spec.min_available
    if given is not None and not graph.may_use_grove:
        message = "is currently supported only for Grove-backed DynamoGraphDeployment components"
        yield sentence((*path, "minAvailable"), f"{field}.minAvailable {message}")
    number = min_available(service)
    if number < 1:
        yield Issue((*path, "minAvailable"), ErrorType.INVALID, "must be greater than 0", number)
    if 0 < service.replicas < number:
        message = f"must not be greater than replicas ({service.replicas}), unless that is 0"
        yield Issue((*path, "minAvailable"), ErrorType.INVALID, message, number)


def _roles(service: GraphService, path: Path, field: str) -> Iterator[Issue]:
    roles = service.spec.roles
    if not roles:
        return
    if not service.is_multinode:
        yield Issue((*path, "roles"), ErrorType.FORBIDDEN, "needs multinode")
        return
    names = [role.name for role in roles]
    yield from (sentence((*path, "roles"), f'{field}.roles must contain the "{role}" role') for role in ROLES if role not in names)
    templates = [role for role in roles if role.pod_template is not None]
    for number, role in enumerate(roles):
        place = (*path, "roles", number)
        if role.name not in ROLES or role.name in names[:number]:
            yield Issue((*place, "name"), ErrorType.INVALID, "must be leader or worker, each once", role.name)
            continue
        expected = service.pods(Role(role.name))
        if role.replicas is not None and role.replicas != expected:
            yield sentence(
                (*place, "replicas"), f'{field}.roles[{quote(role.name)}].replicas must equal {expected} for multinode role "{role.name}"'
            )
        if templates and role.pod_template is None:
            message = "is required on every role when role-specific PodTemplates are used"
            yield sentence((*place, "podTemplate"), f"{field}.roles[{quote(role.name)}].podTemplate {message}")
        yield from _override(role.provider_override, *OF_ROLE, (*place, "providerOverride"))


def _override(override: ProviderOverride | None, target: str, allowed: tuple[tuple[str, ...], ...], path: Path) -> Iterator[Issue]:
    """The issues of an override: it may have these paths of this target."""
    if override is None:
        return
    if override.api_version != PROVIDER_VERSION:
        yield Issue((*path, "apiVersion"), ErrorType.UNSUPPORTED, f'supported values: "{PROVIDER_VERSION}"', override.api_version)
    if override.target != target:
        yield Issue((*path, "target"), ErrorType.UNSUPPORTED, f'supported values: "{target}"', override.target)
        return
    names = " and ".join(map(spelled, allowed))
    for foreign in foreign_paths(override.value, allowed):
        yield Issue((*path, "value", *foreign), ErrorType.FORBIDDEN, f"only {names} can be overridden here")


def _topology(graph: InferenceGraph, service: GraphService, path: Path) -> Iterator[Issue]:
    own: Any = service.spec.topology_constraint
    if own is None:
        return
    if graph.spec.topology_constraint is None:
        message = "spec.topologyConstraint is required when any component topology constraint is set"
        yield sentence((*SPEC, "topologyConstraint"), message)
    if service.spec.provider_override is not None:
        yield Issue((*path, "providerOverride"), ErrorType.FORBIDDEN, "must not be used beside topologyConstraint")
