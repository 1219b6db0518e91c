"""The reference pages of the site: the fields of each kind, from deploy/crds, and of each JSON document, from docs/schema."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

Schema = Mapping[str, Any]

KINDS: Final = "deploy/crds"
DOCUMENTS: Final = "docs/schema"
PARTS_OF_KUBERNETES: Final = (
    (frozenset({"containers", "volumes"}), "PodSpec"),
    (frozenset({"image", "command", "volumeMounts"}), "Container"),
    (frozenset({"containerResource", "external"}), "MetricSpec"),
)
"""Fields that only such an object has, and the type by which Kubernetes documents it. Its own fields are not repeated."""
LIMITS: Final = {
    "minimum": "At least {}.",
    "maximum": "At most {}.",
    "minLength": "Length at least {}.",
    "maxLength": "Length at most {}.",
    "minItems": "Number of entries at least {}.",
    "maxItems": "Number of entries at most {}.",
    "pattern": "Matches `{}`.",
}
HEADER: Final = "| field | type | meaning |\n|---|---|---|\n"
INDEX: Final = """# Reference

Computed from the definitions that are installed, and from the schemas that `engine schema` prints.

## Kinds

{kinds}

## JSON documents

Within a version, keys and values are only added: ignore those that you do not know.

{documents}
"""


def references(root: Path) -> dict[str, str]:
    """The pages of the reference by their names on the site, with their index."""
    kinds = dict(kind_page(yaml.load(path.read_text(), yaml.CSafeLoader)) for path in sorted((root / KINDS).glob("*.yaml")))
    documents = {path.stem: document_page(json.loads(path.read_text())) for path in sorted((root / DOCUMENTS).glob("*.json"))}
    index = INDEX.format(kinds=listed(kinds), documents=listed(documents))
    return {"reference/index.md": index} | {f"reference/{name}.md": text for name, text in (kinds | documents).items()}


def listed(pages: Mapping[str, str]) -> str:
    """A list of pages by their headings."""
    return "\n".join(f"- [{text.partition(chr(10))[0].removeprefix('# ')}]({name}.md)" for name, text in sorted(pages.items()))


def kind_page(crd: Schema) -> tuple[str, str]:
    """The name and the page of one kind."""
    spec = crd["spec"]
    kind = spec["names"]["kind"]
    lines = [f"# {kind}\n"]
    for version in spec["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        lines += [f"{escaped(schema.get('description', ''))}\n", f"`apiVersion: {spec['group']}/{version['name']}`, {names(spec)}.\n"]
        for name in ("spec", "status"):
            for place, part in objects(schema["properties"].get(name, {}), name):
                title = f"{place} of {version['name']}" if len(spec["versions"]) > 1 else place
                lines += [f"## {title}\n", table(part)]
    return kind.lower(), "\n".join(lines)


def names(spec: Schema) -> str:
    """Where objects of a kind are, and what kubectl calls them."""
    words = ", ".join(f"`{word}`" for word in (spec["names"]["plural"], *spec["names"].get("shortNames", ())))
    return f"{'in a namespace' if spec['scope'] == 'Namespaced' else 'of the whole cluster'}, for kubectl {words}"


def objects(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Each object below a place that has fields of ours, with its place: itself first, then those in it, by the names of their fields."""
    if not schema.get("properties") or part_of_kubernetes(schema):
        return
    yield path, schema
    for name, field in sorted(schema["properties"].items()):
        inner, suffix = inside(field)
        yield from objects(inner, f"{path}.{name}{suffix}")


def table(schema: Schema) -> str:
    """A table of the fields of an object, by their names."""
    required = schema.get("required", ())
    rows = (
        f"| `{key}` | {type_of(body)} | {meaning(body, required=key in required)} |" for key, body in sorted(schema["properties"].items())
    )
    return HEADER + "\n".join(rows) + "\n"


def inside(field: Schema) -> tuple[Schema, str]:
    """What has the fields of a field: itself, the entries of a list or the values of a map; and how a path says so."""
    if isinstance(field.get("items"), Mapping):
        inner, suffix = inside(field["items"])
        return inner, "[]" + suffix
    if isinstance(field.get("additionalProperties"), Mapping):
        inner, suffix = inside(field["additionalProperties"])
        return inner, ".*" + suffix
    return field, ""


def part_of_kubernetes(schema: Schema) -> str:
    """The type by which Kubernetes documents an object, or empty for one of ours."""
    return next((name for own, name in PARTS_OF_KUBERNETES if own <= schema.get("properties", {}).keys()), "")


def type_of(schema: Schema) -> str:
    """The type of a value, in a few words; links lead to definitions of the same page."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if choices := schema.get("anyOf", schema.get("oneOf")):
        if not schema.get("x-kubernetes-int-or-string"):
            return " or ".join(dict.fromkeys(type_of(choice) for choice in choices))
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if isinstance(schema.get("items"), Mapping):
        return f"list of {type_of(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"map of {type_of(schema['additionalProperties'])}"
    kind = schema.get("type") or ("string" if "enum" in schema or "const" in schema else "any")
    return part_of_kubernetes(schema) or (" or ".join(kind) if isinstance(kind, list) else kind)


def meaning(schema: Schema, *, required: bool) -> str:
    """What a field means, with its default and its limits."""
    entries = schema.get("items") if isinstance(schema.get("items"), Mapping) else None
    parts = ["Required." if required else "", escaped(schema.get("description", ""))]
    values = schema.get("enum") or (entries or {}).get("enum") or ([schema["const"]] if "const" in schema else [])
    parts += [f"One of {', '.join(code(value) for value in values)}." if len(values) > 1 else f"{code(values[0])}."] if values else []
    parts += [f"Default: {code(schema['default'])}."] if schema.get("default") not in (None, [], {}) else []
    parts += [text.format(escaped_code(str(schema[key]))) for key, text in LIMITS.items() if key in schema]
    parts += [f"Rule: {escaped(rule['message'])}." for rule in schema.get("x-kubernetes-validations", ()) if "message" in rule]
    return " ".join(part for part in parts if part)


def document_page(schema: Schema) -> str:
    """The page of one document: its own fields, then each definition that it refers to."""
    definitions = dict(schema.get("$defs", {}))
    top = schema.get("$ref", "").rpartition("/")[2]
    first = definitions.pop(top) if top else schema
    lines = [f"# {schema['title']}\n", *definition("" if top == "" else top, first)]
    for name, body in sorted(definitions.items()):
        lines += definition(name, body)
    return "\n".join(lines)


def definition(name: str, schema: Schema) -> Iterator[str]:
    """A heading, what the definition is, and a table of its fields."""
    if name:
        yield f"## {name}\n"
    yield f"{meaning({key: value for key, value in schema.items() if key != 'default'}, required=False)}\n"
    if "properties" not in schema:
        yield f"Type: {type_of(schema)}.\n"
        return
    yield table(schema)


def code(value: object) -> str:
    """A value as it is written in YAML and JSON."""
    return f"`{escaped_code(value if isinstance(value, str) and value else json.dumps(value))}`"


def escaped_code(text: str) -> str:
    """The inside of a code span in a cell of a table."""
    return text.replace("|", "\\|").replace("`", "'")


def escaped(text: str) -> str:
    """A description as Markdown in a cell of a table: nothing but code spans is markup."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(
        part.replace("|", "\\|") if part.startswith("`") and len(part) > 1 else re.sub(r"([\\`*_{}\[\]<>|#$~])", r"\\\1", part)
        for part in parts
    )
