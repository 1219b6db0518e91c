"""The chart's webhook configurations as a template: computed from the table of webhooks."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from providers.fabrics.nvidia.fabric import Nvidia
from providers.schedulers.kube import KubeScheduler
from resources.children.table import CHILDREN
from resources.install.installation import EngineInstallation
from resources.install.webhooks import webhook_configurations
from resources.ports.configuration import Configuration

VALUES: Final[Mapping[str, str]] = {
    "podcliqueset-defaulting-webhook": "podCliqueSetDefaultingWebhook",
    "podcliqueset-validating-webhook": "podCliqueSetValidationWebhook",
    "clustertopology-validating-webhook": "clusterTopologyValidationWebhook",
    "dynamographdeployment-defaulting-webhook": "dynamoGraphDeploymentDefaultingWebhook",
    "dynamographdeployment-validating-webhook": "dynamoGraphDeploymentValidationWebhook",
    "authorizer-webhook": "authorizerWebhook",
}
"""Webhook configuration -> its section in the values."""
CONDITIONS: Final[Mapping[str, str]] = {
    "dynamographdeployment-defaulting-webhook": 'include "grove-engine.graphs" .',
    "dynamographdeployment-validating-webhook": 'include "grove-engine.graphs" .',
    "authorizer-webhook": 'include "grove-engine.protects" .',
}
"""Webhook configuration -> when it is installed; the others always are."""
WITH_DOMAINS: Final = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler", fabrics=(Nvidia(),))
SOME: Final = "some-namespace"
"""A name that stands for those of the values."""
REPLACED: Final[Mapping[str, str]] = {
    "namespace: namespace-here": "namespace: {{ .Release.Namespace }}",
    "port: 4711": 'port: {{ include "grove-engine.port" (list . "webhooks") }}',
    "clientConfig:\n": "clientConfig:\n    {{- with .Values.webhooks.caBundle }}\n    caBundle: {{ . }}\n    {{- end }}\n",
}
"""What stands for a value -> the template of the value."""


def webhooks_template() -> str:
    """The file with the webhook configurations."""
    configuration = {"authorizer": {"enabled": True}, "server": {"webhooks": {"port": 4711}}, "namespaces": [SOME]}
    installation = EngineInstallation(namespace="namespace-here", configuration=configuration)
    bodies = list(webhook_configurations(installation, CHILDREN.protected(WITH_DOMAINS)))
    lines = (line for body in bodies for line in webhook_lines(body))
    first = "{{- /* Computed from the table of webhooks by `make chart`. Do not edit. */}}"
    return "\n".join((first, '{{- if eq (include "grove-engine.admission" .) "webhooks" }}', *lines, "{{- end }}", ""))


def webhook_lines(body: Mapping[str, Any]) -> Iterator[str]:
    """The lines of one configuration."""
    name = body["metadata"]["name"]
    section = f".Values.webhooks.{VALUES[name]}"
    if name in CONDITIONS:
        yield f"{{{{- if {CONDITIONS[name]} }}}}"
    yield "---"
    yield f"apiVersion: {body['apiVersion']}"
    yield f"kind: {body['kind']}"
    yield "metadata:"
    yield f"  name: {name}"
    yield "  labels:"
    yield f'    {{{{- include "grove-engine.labels" (list . "webhooks" {section}.labels) | nindent 4 }}}}'
    yield f"  {{{{- with {section}.annotations }}}}"
    yield "  annotations:"
    yield "    {{- toYaml . | nindent 4 }}"
    yield "  {{- end }}"
    text = yaml.safe_dump({"webhooks": body["webhooks"]}, sort_keys=False, width=1000)
    for sign, template in REPLACED.items():
        text = text.replace(sign, template)
    yield from with_namespaces(text.splitlines())
    if name in CONDITIONS:
        yield "{{- end }}"


def with_namespaces(lines: Iterable[str]) -> Iterator[str]:
    """The lines with a selector of namespaces, if they have one for `SOME`, only where the values name namespaces, and for these."""
    indent = None
    for line in lines:
        key = line.lstrip(" -")
        if indent is None and key in ("matchResources:", "namespaceSelector:"):
            indent = len(line) - len(key)
            yield '{{- with include "grove-engine.namespaces" $ | fromJsonArray }}'
        elif indent is not None and len(line) - len(key) <= indent:
            indent = None
            yield "{{- end }}"
        yield line if key != SOME else f"{' ' * (len(line) - len(key) - 2)}{{{{- toYaml . | nindent {len(line) - len(key) - 2} }}}}"
    if indent is not None:
        yield "{{- end }}"
