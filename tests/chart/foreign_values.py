"""Values of the chart of Grove's operator that mean nothing in this one: they are accepted, and NOTES.txt has a line for each."""

from collections.abc import Mapping
from typing import Any, Final

from tests.chart.unused_values import unused_lines

NAME: Final = "names of objects are fixed, because two engines in one cluster would disturb each other"
TEXT: Final = {"type": "string"}
FOREIGN: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "clusterRole.name": (TEXT, NAME),
    "clusterRoleBinding.name": (TEXT, NAME),
    "crdInstaller": ({"type": "object"}, "the engine has no right to change definitions; they are applied by hand, as said below"),
    "leaseRole.name": (TEXT, NAME),
    "leaseRoleBinding.name": (TEXT, NAME),
    "metrics.serviceMonitor.name": (TEXT, NAME),
    "service.name": (TEXT, NAME),
    "service.port": ({"type": "integer"}, "the Service has the ports of config.server"),
    "serviceAccount.automount": ({"type": "boolean"}, "the token is always a projected one"),
    "serviceAccount.name": (TEXT, NAME),
    "serviceMonitor.name": (TEXT, NAME),
}
"""Path of a value -> its schema, and why it has no effect."""
MOVED: Final[Mapping[str, Mapping[str, Any]]] = {
    "serviceMonitor.enable": {"type": "boolean"},
    "serviceMonitor.labels": {"type": "object", "additionalProperties": TEXT},
}
"""Values that have another path here, `metrics.serviceMonitor`, and that the template of the ServiceMonitor reads."""


def allow_foreign_values(schema: dict[str, Any]) -> None:
    """Adds what is accepted from a values file of Grove's chart to the schema of the values."""
    for path, allowed in {**{path: each for path, (each, _) in FOREIGN.items()}, **MOVED}.items():
        *sections, name = path.split(".")
        section = schema
        for each in sections:
            empty = {"type": "object", "additionalProperties": False, "properties": {}}
            section = section["properties"].setdefault(each, empty)
        section["properties"][name] = dict(allowed)


def notices_template(values: Mapping[str, Any]) -> str:
    """The template with a line for each given value that has no effect. `values` are the defaults."""
    lines = [
        "{{/* Values that have no effect here, a line for each that is given. Computed by `make chart`. */}}",
        '{{- define "grove-engine.notices" -}}',
        *unused_lines(values),
        '{{- if include "grove-engine.isGrovesImage" . }}',
        'image.repository, image.tag: {{ .Values.image.repository }} is Grove\'s operator, so {{ include "grove-engine.image" . }} runs',
        "{{- end }}",
        '{{- with include "grove-engine.grovesInitImage" . }}',
        "deployment.env: {{ . }} is Grove's init container, so pods start with that of this release",
        "{{- end }}",
    ]
    for path, (_, reason) in FOREIGN.items():
        *sections, name = path.split(".")
        section = f"(default dict .Values.{'.'.join(sections)})" if sections else ".Values"
        lines += [f'{{{{- if hasKey {section} "{name}" }}}}', f"{path}: {reason}", "{{- end }}"]
    lines.append("{{- end }}")
    return "\n".join(lines) + "\n"
