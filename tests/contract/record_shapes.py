"""Writes `shapes.txt` of the sandbox: what the built-in types look like, as a real server's OpenAPI and Go's API modules state it.

    python -m tests.contract.record_shapes KUBECONFIG > sandbox/src/grove_sandbox/types/shapes.txt

The server is one with gangs, as that of the fixture `gang_plane`. The grammar stands in sandbox/src/grove_sandbox/types/shapes.py.
OpenAPI does not tell a pointer from a value, and only a pointer survives a round trip through the server when it is zero; hence the look
at the Go module k8s.io/api of the same release.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from grove_sandbox.kinds.served import builtin_kinds

GO_MOD = Path(__file__).parents[1] / "controlplane" / "go.mod"
PREFIX = "#/components/schemas/"
SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "q",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "x",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "t",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "u",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "o",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "o",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "o",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "o",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "o",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "o",
}
FIELD = re.compile(r'^\s+\w*\s*(?P<type>[\[\]\w.*]+)\s+`[^`]*json:"(?P<name>\w*),?(?P<flags>[\w,]*)"', re.MULTILINE)
STRUCT = re.compile(r"^type (?P<name>\w+) struct \{(?P<body>.*?)^\}", re.MULTILINE | re.DOTALL)


FURTHER = {"Binding", "Eviction", "Scale", "TokenRequest", "ObjectMeta", "DeleteOptions"}
"""The types of which subresources and errors speak."""


def is_wanted(full: str, schema: dict[str, Any]) -> bool:
    """Whether a schema is that of a kind that the sandbox serves, or one of `FURTHER`."""
    served = {(kind.group, kind.version, kind.name) for kind in builtin_kinds()}
    kinds = {(kind["group"], kind["version"], kind["kind"]) for kind in schema.get("x-kubernetes-group-version-kind") or ()}
    return full.rpartition(".")[2] in FURTHER or not served.isdisjoint(kinds)


def module(path: str) -> Path:
    """The folder of a Go module of the release that is tested."""
    release = re.search(r"k8s\.io/kubernetes v1(\S+)", GO_MOD.read_text())
    assert release
    done = subprocess.run(["go", "mod", "download", "-json", f"{path}@v0{release[1]}"], capture_output=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])


def embedded(body: str) -> set[str]:
    """Names of structs that a struct takes in whole: since 1.36 their tag is empty."""
    return {m[1].rpartition(".")[2] for m in re.finditer(r'^\s+(?:\w+\s+)?([\w.]+)\s+`[^`]*json:"(?:,inline)?"', body, re.MULTILINE)}


def go_fields() -> dict[tuple[str, str], dict[str, str]]:
    """Per package and struct, each JSON name's mark, as sandbox/src/grove_sandbox/types/shapes.py explains them."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    inline: dict[tuple[str, str], set[str]] = {}
    apiextensions = module("k8s.io/apiextensions-apiserver") / "pkg/apis/apiextensions/v1"
    meta = module("k8s.io/apimachinery") / "pkg/apis/meta/v1"
    ours = (apiextensions / "types.go", apiextensions / "types_jsonschema.go", meta / "types.go")
    files = [*module("k8s.io/api").glob("*/v*/types.go"), *ours]
    for file in files:
        package = {apiextensions: "apiextensions.v1", meta: "meta.v1"}.get(file.parent, f"{file.parent.parent.name}.{file.parent.name}")
        for struct in STRUCT.finditer(re.sub(r"//.*", "", file.read_text())):
            key = package, struct["name"]
            inline[key] = embedded(struct["body"])
            found[key] = {m["name"]: _mark(m["type"], m["flags"]) for m in FIELD.finditer(struct["body"]) if m["name"]}
    for (package, name), others in inline.items():
        for other in others:
            found[package, name] |= found.get((package, other), {})
    return found


def _mark(type_: str, flags: str) -> str:
    if type_.startswith("*"):
        return "?" if "omitempty" in flags else "^"
    if "omitzero" in flags:
        return ""
    # Go never finds a struct empty: without omitzero a time is written as null, a struct as {}.
    return "" if "omitempty" in flags and not re.fullmatch(r"(\w+\.)?(Micro)?Time", type_) else "!"


class Recorder:
    """Follows references from the served kinds on and states each type once."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self.schemas = schemas
        self.fields = go_fields()
        self.lines: dict[str, str] = {}
        self.names = self._short_names()

    def _short_names(self) -> dict[str, str]:
        """The last word of each schema's name; a group before it where two would clash and it is neither core's nor the newer one."""
        taken: dict[str, str] = {}
        names: dict[str, str] = {}
        for full in sorted(self.schemas, key=lambda f: (".core.v1." not in f, ".meta.v1." not in f, "alpha" in f, f)):
            short = full.rpartition(".")[2]
            if short in taken:
                short = f"{full.split('.')[-3]}.{short}"
            taken[short] = full
            names[full] = short
        return names

    def record(self, full: str) -> str:
        name = self.names[full]
        if name not in self.lines:
            self.lines[name] = ""
            marks = self.fields.get((".".join(full.split(".")[-3:-1]), full.rpartition(".")[2]), {})
            schema = self.schemas[full]
            fields = [f"{field}={self._marked(field, sub, marks)}" for field, sub in schema.get("properties", {}).items()]
            atomic = "@ " if schema.get("x-kubernetes-map-type") == "atomic" else ""
            self.lines[name] = f"{name}: {atomic}{' '.join(fields)}".rstrip()
        return name

    def _marked(self, field: str, schema: dict[str, Any], marks: dict[str, str]) -> str:
        text = self._type(schema)
        mark = marks.get(field, "?")
        if mark == "" and text[0].isupper() and schema.get("default") == {}:
            mark = "!"
        default = schema.get("default")
        shown = f"={json.dumps(default, separators=(',', ':'))}" if default not in (None, {}, "", 0, False) else ""
        return f"{mark}{text}{shown}"

    def _type(self, schema: dict[str, Any]) -> str:
        reference = schema.get("$ref") or (schema.get("allOf") or [{}])[0].get("$ref")
        atomic = "@" if schema.get("x-kubernetes-map-type") == "atomic" else ""
        if reference:
            full = reference.removeprefix(PREFIX)
            return SCALARS.get(full) or atomic + self.record(full)
        match schema.get("type"), schema.get("format"):
            case "array", _:
                return self._list(schema)
            case "object", _ if "additionalProperties" in schema:
                return f"{atomic}{{{self._type(schema['additionalProperties'])}}}"
            case "string", "byte":
                return "y"
            case "integer", "int64":
                return "l"
            case ((("string" | "boolean" | "integer" | "number") as kind), _):
                return {"string": "s", "boolean": "b", "integer": "i", "number": "n"}[kind]
        return "o"

    def _list(self, schema: dict[str, Any]) -> str:
        item = self._type(schema["items"])
        keys = schema.get("x-kubernetes-list-map-keys")
        head = f"{','.join(keys)}|" if keys else "*" if schema.get("x-kubernetes-list-type") == "set" else ""
        strategy = schema.get("x-kubernetes-patch-strategy", "")
        merge = f"~{schema.get('x-kubernetes-patch-merge-key', '')}" if "merge" in strategy else ""
        return f"[{head}{item}]{merge}"


def openapi(kubeconfig: str) -> dict[str, Any]:
    """All schemas of all served groups."""
    schemas: dict[str, Any] = {}
    for kind in builtin_kinds():
        path = f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"
        command = ["kubectl", "--kubeconfig", kubeconfig, "get", "--raw", f"/openapi/v3/{path}"]
        raw = subprocess.run(command, capture_output=True, check=True)
        schemas |= json.loads(raw.stdout)["components"]["schemas"]
    return schemas


def main(kubeconfig: str) -> None:
    """Print the table."""
    recorder = Recorder(openapi(kubeconfig))
    for full, schema in sorted(recorder.schemas.items()):
        if is_wanted(full, schema):
            recorder.record(full)
    sys.stdout.write("\n".join(recorder.lines[name] for name in sorted(recorder.lines)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
