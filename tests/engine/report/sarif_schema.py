"""The parts of SARIF 2.1.0 that we write, with what the standard and GitHub's code scanning require of them."""

from typing import Any

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}, "additionalProperties": False}
LEVEL = {"enum": ["none", "note", "warning", "error"]}


def closed(required: tuple[str, ...], optional: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """An object of these properties and no others."""
    assert {*required, *optional} == set(properties)
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


LOCATION = closed(
    ("physicalLocation",),
    ("logicalLocations",),
    physicalLocation=closed(
        ("artifactLocation", "region"),
        artifactLocation=closed(("uri",), uri={"type": "string", "format": "uri-reference", "minLength": 1}),
        region=closed(("startLine",), startLine={"type": "integer", "minimum": 1}),
    ),
    logicalLocations={"type": "array", "items": closed(("fullyQualifiedName",), fullyQualifiedName={"type": "string"})},
)
RESULT = closed(
    ("ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"),
    ("suppressions",),
    ruleId={"type": "string", "minLength": 1},
    ruleIndex={"type": "integer", "minimum": 0},
    level=LEVEL,
    message=TEXT,
    locations={"type": "array", "minItems": 1, "maxItems": 1, "items": LOCATION},
    partialFingerprints={"type": "object", "additionalProperties": {"type": "string", "pattern": "^[0-9a-f]{64}$"}},
    suppressions={
        "type": "array",
        "items": closed(("kind", "justification"), kind={"enum": ["inSource", "external"]}, justification={"type": "string"}),
    },
)
RUN = closed(
    ("tool", "invocations", "columnKind", "results"),
    ("automationDetails",),
    tool=closed(
        ("driver",),
        driver=closed(
            ("name", "version", "rules"),
            name={"const": "engine"},
            version={"type": "string"},
            rules={
                "type": "array",
                "uniqueItems": True,
                "items": closed(("id", "shortDescription"), id={"type": "string"}, shortDescription=TEXT),
            },
        ),
    ),
    invocations={
        "type": "array",
        "items": closed(
            ("executionSuccessful", "toolExecutionNotifications"),
            executionSuccessful={"type": "boolean"},
            toolExecutionNotifications={"type": "array", "items": closed(("level", "message"), level=LEVEL, message=TEXT)},
        ),
    },
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "maxItems": 5000, "items": RESULT},
    automationDetails=closed(("id",), id={"type": "string"}),
)
SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "items": RUN},
    },
    "additionalProperties": False,
}
