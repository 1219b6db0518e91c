"""Role template rules: the admission rules for pod templates of components of v1beta1, and of single roles in both versions."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.resource import Body
from resources.admission import metadata_rules
from resources.admission.graph_rules import quote, sentence
from resources.base.fields import mapping, mappings
from resources.dynamo.model.graph import GraphService
from resources.dynamo.model.pod_template import MAIN, main_of
from resources.schema.dynamo import GraphServiceSpec
from resources.schema.issues import ErrorType, Issue, Path

ELASTIC: Final = "--enable-elastic-ep"
SIDECAR: Final = "runtime"
"""The init container that runs beside the engine's, with `restartPolicy: Always`."""
OF_PODS: Final = (
    "extraPodSpec",
    "extraPodMetadata",
    "resources",
    "envs",
    "envFromSecret",
    "livenessProbe",
    "readinessProbe",
    "labels",
    "annotations",
)
"""The fields of a service that are the pod template of a component in v1beta1, the one that is named before the others first."""
DIFFERS: Final = "must be the same for all roles: a gang has one scheduler"


def role_template_issues(service: GraphService, written: GraphServiceSpec, path: Path, field: str) -> Iterator[Issue]:
    """The issues of the pod templates of the roles of a service. `written`: the service without what it has of its graph."""
    templates = [
        (number, role.name, role.pod_template.template) for number, role in enumerate(written.roles) if role.pod_template is not None
    ]
    if not templates:
        return
    given = written.body()
    if name := next((name for name in OF_PODS if given.get(name)), ""):
        message = "cannot be combined with roles[].podTemplate; choose one complete PodTemplate source mode"
        yield sentence((*path, name), f"{field}.{name} {message}")
    for volume in (number for number, mount in enumerate(written.volume_mounts) if not mount.use_as_compilation_cache):
        message = "cannot be combined with roles[].podTemplate: mount the claim in each of them"
        yield sentence((*path, "volumeMounts", volume), f"{field}.volumeMounts {message}")
    schedulers = [mapping(template.get("spec")).get("schedulerName") or "" for _, _, template in templates]
    for (number, role, template), scheduler in zip(templates, schedulers, strict=True):
        place = (*path, "roles", number, "podTemplate")
        yield from template_issues(template, place, f"{field}.roles[{quote(role)}].podTemplate", is_multinode=service.is_multinode)
        yield from _metadata(mapping(template.get("metadata")), (*place, "metadata"))
        if scheduler != schedulers[0]:
            yield Issue((*place, "spec", "schedulerName"), ErrorType.INVALID, DIFFERS, scheduler)


def template_issues(template: Body, path: Path, field: str, *, is_multinode: bool) -> Iterator[Issue]:
    """The issues of a pod template at that path, whose container `main` runs the engine."""
    spec = mapping(template.get("spec"))
    place = (*path, "spec", "containers")
    main = main_of(template)
    if main is None:
        yield sentence(place, f"{field}.spec.containers: must have a container named {MAIN}, which runs the engine")
        return
    number, *others = (index for index, container in enumerate(mappings(spec.get("containers"))) if container.get("name") == MAIN)
    yield from (Issue((*place, other, "name"), ErrorType.DUPLICATE, value=MAIN) for other in others)
    if not main.get("image"):
        yield Issue((*place, number, "image"), ErrorType.REQUIRED, f"the image of the container {MAIN}")
    if not is_multinode:
        return
    whose = field.removesuffix(".podTemplate")
    if any(word == ELASTIC for word in _words(main.get("args"))):
        yield sentence((*place, number, "args"), f"{whose}: {ELASTIC} is not supported by the engine on several nodes")
    for index, init in enumerate(mappings(spec.get("initContainers"))):
        if init.get("name") == SIDECAR and init.get("restartPolicy") == "Always":
            message = f"the native sidecar {SIDECAR} is not supported with multinode"
            yield sentence((*path, "spec", "initContainers", index), f"{whose}: {message}")


def _metadata(metadata: Mapping[str, Any], path: Path) -> Iterator[Issue]:
    yield from metadata_rules.labels(mapping(metadata.get("labels")), (*path, "labels"))
    yield from metadata_rules.annotations(mapping(metadata.get("annotations")), (*path, "annotations"))


def _words(value: object) -> Iterator[str]:
    """The words of arguments, those within one argument as well."""
    for argument in value if isinstance(value, list | tuple) else ():
        if isinstance(argument, str):
            yield from (word.partition("=")[0] for word in argument.split())
