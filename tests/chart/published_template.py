"""The defaults of what an installation publishes, as a template of the chart."""

import json

from resources.install.publication import published
from resources.ports.configuration import WAITER_IMAGE
from resources.settings import Settings


def published_template() -> str:
    """The file with the defaults. The chart adds the image of the init container and the place of the Leases."""
    document = dict(published(Settings(), WAITER_IMAGE, "").configuration)
    return "\n".join(
        (
            "{{- /* Computed from the fields of the configuration by `make chart`. Do not edit. */}}",
            "",
            "{{/* The fields that an installation publishes, with their defaults. */}}",
            '{{- define "grove-engine.publishedDefaults" -}}',
            json.dumps(document, indent=2, sort_keys=True),
            "{{- end }}",
            "",
        )
    )
