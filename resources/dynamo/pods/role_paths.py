"""Role paths: where a field of a service is that was read from the pod template of one of its roles."""

from resources.dynamo.backends.faults import PodFault
from resources.dynamo.model.graph import GraphService, Role
from resources.dynamo.versions.paths import Path, component_paths, with_fields_of_beta


def role_path(service: GraphService, role: Role, path: Path) -> Path:
    """The path in the graph of a field of the pods of a role; itself if the role has no template of its own."""
    template = service.templates.get(role)
    if template is None or path[:2] != ("spec", "services"):
        return path
    component = {"name": service.name, "podTemplate": template}
    _, _, _, *below = component_paths({"spec": {"components": [component]}}).of(path)
    if below[:1] != ["podTemplate"]:
        return path
    number = next(number for number, entry in enumerate(service.spec.roles) if entry.name == role)
    return "spec", "services", service.name, "roles", number, *below


def placed(service: GraphService, role: Role, fault: PodFault) -> PodFault:
    """The fault of the pods of a role, at the field of its template; itself if the role has none of its own."""
    path = role_path(service, role, fault.path)
    return fault if path == fault.path else PodFault(path, with_fields_of_beta(fault.detail))
