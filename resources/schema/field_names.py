"""Field names: which fields the types of pod specs have, as recorded and as a cluster serves them; the nearest name of an unknown one."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from engine.report.printable import clipped
from resources.base.fields import mapping
from resources.schema.issues import Issue
from resources.schema.published import definitions
from resources.schema.unknown_fields import nearest_name

MAX_SHOWN = 100
"""The largest number of characters of a name in a message."""
DOCUMENT = "api/v1"
"""The group and version whose OpenAPI document has the types of pods."""


class ServedFields(Struct, frozen=True):
    """The fields of the types of pod specs that a cluster serves: one that it does not serve is unknown, whatever its name is."""

    types: Mapping[str, frozenset[str]]
    """Type -> its fields."""

    def has(self, finding: Issue) -> bool:
        """Whether the cluster knows an unknown field."""
        return str(finding.path[-1]) in self.types.get(finding.within, ())


def served_fields(document: Mapping[str, Any]) -> ServedFields | None:
    """The fields in an OpenAPI document (v3); None if it does not have the types of pods. The document is not trusted."""
    schemas = mapping(mapping(document.get("components")).get("schemas"))
    recorded = definitions()
    types: dict[str, frozenset[str]] = {}
    for name, schema in schemas.items():
        short = str(name).rpartition(".")[2]
        if short in recorded and (fields := mapping(mapping(schema).get("properties"))):
            types[short] = frozenset(map(str, fields)) | types.get(short, frozenset())
    return ServedFields(types) if "PodSpec" in types and "Container" in types else None


def suggestion(finding: Issue, served: ServedFields | None = None) -> str:
    """The known field whose name is nearest to that of an unknown one; empty if none is similar."""
    known = definitions().get(finding.within, {}).get("properties", {})
    names = {*known, *(served.types.get(finding.within, ()) if served else ())}
    return nearest_name(str(finding.path[-1]), sorted(names)) or ""


def with_suggestion(finding: Issue, name: str) -> Issue:
    """The unknown field, with the question whether the nearest one is meant."""
    return Issue(finding.path, finding.type, f"did you mean {clipped(name, MAX_SHOWN)}?", within=finding.within) if name else finding
