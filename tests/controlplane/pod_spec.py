"""Writes resources/schema/pod_spec.json and pod_defaults.json: the types of a pod spec, from the OpenAPI document of a real API server,
and what it puts into pods by itself, from dry-runs. And pod_verdicts.json here: which of our broken sample pods it refuses.

    export KUBEBUILDER_ASSETS=$(tests/controlplane/build)
    python -m tests.controlplane.pod_spec

Types refer to one another as in the original. Prose, defaults and hints about patches are left out: a server fills in and merges by them,
and in what is only handed on to it, that would be read as somebody's change.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from resources.schema.published import definitions
from tests.controlplane.cluster import Broken, ControlPlane, Missing, running
from tests.controlplane.pod_breaks import breaks, verdicts
from tests.controlplane.pod_defaults import recorded
from tests.controlplane.pod_trials import FLAGS, tried

SCHEMA: Final = Path(__file__).parents[2] / "resources" / "schema"
FILE: Final = SCHEMA / "pod_spec.json"
DEFAULTS_FILE: Final = SCHEMA / "pod_defaults.json"
VERDICTS_FILE: Final = Path(__file__).with_name("pod_verdicts.json")
ROOT: Final = "io.k8s.api.core.v1.PodSpec"
KEPT: Final = ("type", "format", "enum")
"""Keys that are copied; references to other types are followed."""

Schema = Mapping[str, Any]


def stripped(schema: Schema) -> dict[str, Any]:
    """The type without descriptions."""
    (*_, reference) = ("", *(one["$ref"] for one in (schema, *schema.get("allOf", ())) if "$ref" in one))
    if reference:
        return {"$ref": short(reference)}
    plain: dict[str, Any] = {key: schema[key] for key in KEPT if key in schema}
    if "required" in schema:
        plain["required"] = sorted(schema["required"])
    if "oneOf" in schema:
        plain["oneOf"] = [stripped(one) for one in schema["oneOf"]]
    for key in ("items", "additionalProperties"):
        if key in schema:
            plain[key] = stripped(schema[key])
    if "properties" in schema:
        plain["properties"] = {name: stripped(field) for name, field in schema["properties"].items()}
    return plain


def short(name: str) -> str:
    """The last part of a type's name: `Container`."""
    return name.rpartition(".")[2]


def references(schema: Any) -> Iterator[str]:
    """The full names of all types that a schema refers to."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        for inner in schema.values():
            yield from references(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from references(inner)


def closure(schemas: Mapping[str, Schema], root: str) -> dict[str, Schema]:
    """The type and all types that it refers to. Raises `ValueError` if two of them have the same short name."""
    found: dict[str, Schema] = {}
    ahead = [root]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found[name] = schemas[name]
            ahead += references(schemas[name])
    if len({short(name) for name in found}) < len(found):
        raise ValueError("two types of different groups have the same last word")
    return found


def written(schemas: Mapping[str, Schema], release: str) -> str:
    """The content of the file: JSON with one type in each line, sorted, so that the diff of a new release can be read."""
    types = {short(name): stripped(schema) for name, schema in closure(schemas, ROOT).items()}
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(types[name], sort_keys=True, separators=(',', ':'))}" for name in sorted(types))
    return f'{{"definitions":{{\n{lines}\n}},"release":{json.dumps(release)}}}\n'


def asked(plane: ControlPlane, path: str) -> Any:
    """The answer of the server to a GET."""
    code, answer = plane.call(path)
    if code != 200:
        raise Broken(f"{path}: {code} {answer.decode(errors='replace')[:200]}")
    return json.loads(answer)


def main() -> None:
    """Start a control plane and record the types that it serves, and the defaults that it sets."""
    try:
        with tempfile.TemporaryDirectory() as folder, running(Path(folder), flags=FLAGS) as plane:
            release = asked(plane, "/version")["gitVersion"]
            FILE.write_text(written(asked(plane, "/openapi/v3/api/v1")["components"]["schemas"], release), encoding="ascii")
            definitions.cache_clear()
            DEFAULTS_FILE.write_text(recorded(plane, release), encoding="ascii")
            answers = tried(plane, (each.spec for each in breaks()))
            VERDICTS_FILE.write_text(verdicts(answer.spec is None for answer in answers), encoding="ascii")
    except (Missing, Broken) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
