"""Values that have no effect beside others, e.g. those of a server in a CronJob: NOTES.txt has a line for each that is given."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple


class Unused(NamedTuple):
    """Values that have no effect under a condition."""

    when: str
    """The condition of a template."""
    why: str
    values: tuple[str, ...]
    """Paths of values, or of sections of them."""


CRONJOB: Final = 'eq .Values.mode "cronjob"'
DEPLOYMENT: Final = 'eq .Values.mode "deployment"'
ADMISSION: Final = '(include "grove-engine.admission" .)'
UNUSED: Final = (
    Unused(CRONJOB, "a CronJob runs one pod at a time", ("replicaCount", "topologySpreadConstraints", "podDisruptionBudget")),
    Unused(CRONJOB, "a CronJob has no server", ("ui", "service", "config.server", "networkPolicy")),
    Unused(CRONJOB, "a CronJob has no metrics", ("metrics.serviceMonitor", "serviceMonitor", "metrics.prometheusRule", "dashboards")),
    Unused(DEPLOYMENT, "mode is deployment", ("cronJob",)),
    Unused(f'ne {ADMISSION} "webhooks"', "webhooks are installed only with admission: webhooks", ("webhooks", "webhookServerSecret")),
    Unused(f'ne {ADMISSION} "policies"', "policies are installed only with admission: policies", ("mutatingPolicies",)),
    Unused(
        f'and ({DEPLOYMENT}) (ne {ADMISSION} "webhooks")',
        "webhooks are served only with admission: webhooks",
        ("config.server.webhooks",),
    ),
)
"""What of the chart's own values has no effect, and when."""


def unused_lines(values: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a template that name what was given, i.e. differs from these default values, without effect."""
    for when, why, paths in UNUSED:
        yield f"{{{{- if {when} }}}}"
        for path in paths:
            default: Any = values
            for section in path.split("."):
                default = default.get(section) if default else None
            text = json.dumps(default, separators=(",", ":"), sort_keys=True)
            yield f"{{{{- if ne (toJson .Values.{path}) `{text}` }}}}"
            yield f"{path}: {why}"
            yield "{{- end }}"
        yield "{{- end }}"
