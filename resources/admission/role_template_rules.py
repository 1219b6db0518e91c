"""Role template rules: what is said of pod templates of single roles, which the engine does not carry out, and what to write instead."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.resource import Body
from resources.admission.graph_rules import quote
from resources.base.fields import mapping, mappings
from resources.dynamo.backends.port import LEADER, RANK
from resources.schema.dynamo_parts import GraphRole
from resources.schema.issues import ErrorType, Issue, Path

MAIN: Final = "main"
BY_SHELL: Final = frozenset({f"containers[{MAIN}].{field}" for field in ("command", "args", "env")})
"""What one template can have for both roles: a shell line that asks for its rank."""
MOST: Final = 5
"""How many differing fields are named."""


def role_template_issues(roles: tuple[GraphRole, ...], path: Path, name: str) -> Iterator[Issue]:
    """One issue for each template of a role of a component, with the fields in which the roles differ and what to write instead."""
    templates = [(number, role) for number, role in enumerate(roles) if role.pod_template is not None]
    pods = {role.name: mapping(role.pod_template) for _, role in templates}
    if {"leader", "worker"} <= pods.keys():
        instead = _instead(sorted(_differing(_fields(pods["leader"]), _fields(pods["worker"]))))
    else:
        instead = "write one template for both roles"
    for number, role in templates:
        message = (
            f"a podTemplate of the role {quote(role.name)} is not supported by the engine: use podTemplate of {quote(name)}; {instead}"
        )
        yield Issue((*path, "roles", number, "podTemplate"), ErrorType.FORBIDDEN, message)


def _instead(differing: list[str]) -> str:
    """What a component with one template needs where its roles differ in these fields."""
    if not differing:
        return "both roles have the same one"
    others = [field for field in differing if field not in BY_SHELL]
    shell = (
        f"flags such as --nnodes and --node-rank are added to it, and where leader and workers differ, its shell line can ask for ${RANK} "
        f"(0 is the leader) and ${LEADER}"
    )
    if not others:
        return shell
    more = f" and {len(others) - MOST} more" if len(others) > MOST else ""
    return f"{shell}; what has no such counterpart and must be the same for both: {', '.join(others[:MOST])}{more}"


def _fields(template: Body) -> dict[str, Any]:
    """Field -> value, of what a template has: of its metadata, of its pod, and of its main container."""
    metadata, spec = mapping(template.get("metadata")), mapping(template.get("spec"))
    containers = mappings(spec.get("containers"))
    main = next((container for container in containers if container.get("name") == MAIN), {})
    others = [container for container in containers if container.get("name") != MAIN]
    return {
        **{f"metadata.{field}": value for field, value in metadata.items()},
        **{field: value for field, value in spec.items() if field != "containers"},
        **({"containers": others} if others else {}),
        **{f"containers[{MAIN}].{field}": value for field, value in main.items()},
    }


def _differing(leader: Mapping[str, Any], worker: Mapping[str, Any]) -> Iterator[str]:
    return (field for field in {*leader, *worker} if leader.get(field) != worker.get(field))
