"""The operator configuration of an installation: its defaults, the ConfigMap, and what a change of it restarts."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from resources.base.fields import mapping
from resources.install.installation import NAME, EngineInstallation, metadata
from resources.install.modes import AdmissionMode, Mode
from resources.install.publication import NAME as PUBLIC_NAME
from resources.install.publication import NAMESPACE as PUBLIC_NAMESPACE
from resources.install.publication import InstallationRecord, contents

FILE: Final = "config.yaml"
"""The key of the ConfigMap."""
HEADER: Final = {"apiVersion": "operator.config.grove.io/v1alpha1", "kind": "OperatorConfiguration"}
RESTART_SECTIONS: Final = ("leaderElection", "server")
"""The sections that a running engine does not take over. The pods are replaced when one of them changes, or what is managed (`extent`); all
others it reads again."""
RESTART_ANNOTATION: Final = "engine.grove.io/restart-configuration"
"""The annotation of the pods with a digest of those sections."""

DEFAULTS: Final[Mapping[str, Any]] = {
    "authorizer": {
        "enabled": False,
        "exemptServiceAccountUserNames": [
            "system:serviceaccount:kube-system:generic-garbage-collector",
            "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
            "system:kube-controller-manager",
            "system:serviceaccount:kai-scheduler:pod-grouper",
            "system:serviceaccount:kai-scheduler:binder",
        ],
    },
    "leaderElection": {
        "enabled": True,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
        "resourceName": "grove-operator-leader-election",
    },
    "logFormat": "json",
    "logLevel": "info",
    "network": {"autoMNNVLEnabled": False},
    "scheduler": {"profiles": [{"name": "default-scheduler"}, {"name": "kai-scheduler"}]},
    "server": {
        "healthProbes": {"port": 9444},
        "metrics": {"port": 9445},
        "webhooks": {
            "certProvisionMode": "auto",
            "port": 9443,
            "secretName": "grove-webhook-server-cert",
            "serverCertDir": "/etc/grove-operator/webhook-certs",
        },
    },
    "topologyAwareScheduling": {"enabled": False},
}
"""The configuration of an installation, as far as the administrator chooses nothing else; the chart has the same values under `config`."""


def installed(chosen: Mapping[str, Any], namespace: str, mode: Mode, admission: AdmissionMode, shards: int = 1) -> dict[str, Any]:
    """The configuration of an installation: what was chosen, over the defaults, as Helm merges values.

    The Lease is in the installation's namespace unless another one is named, and no port is opened for webhooks that are not installed.
    Several shards are written where every command finds them.
    """
    configuration: dict[str, Any] = {**merged(DEFAULTS, chosen), **HEADER}
    election = mapping(configuration.get("leaderElection"))
    place = {"resourceNamespace": election.get("resourceNamespace") or namespace}
    configuration["leaderElection"] = {**election, **place, **({"shards": shards} if shards > 1 else {})}
    if mode is not Mode.DEPLOYMENT or admission is not AdmissionMode.WEBHOOKS:
        configuration = merged(configuration, {"server": {"webhooks": {"port": 0}}})
    return configuration


def extent(graphs: bool, namespaces: Sequence[str]) -> dict[str, Any]:
    """The part of a configuration that says what is managed, as far as that is not everything.

    `graphs`: whether DynamoGraphDeployments are. `namespaces`: the only ones whose workloads are; none: all.
    """
    return {**({} if graphs else {"dynamo": {"enabled": False}}), **({"namespaces": list(namespaces)} if namespaces else {})}


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two documents in one: maps are merged, everything else is replaced, and a null removes its field."""
    result = dict(below)
    for key, value in above.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            result[key] = merged(mapping(result.get(key)), value)
        else:
            result[key] = value
    return result


def config_map(installation: EngineInstallation, text: str) -> dict[str, Any]:
    """The ConfigMap with the configuration, `text`, as its only file."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(NAME, installation.namespace, "configuration"),
        "data": {FILE: text},
    }


def publication_object(publication: InstallationRecord, text: str) -> dict[str, Any]:
    """The ConfigMap that publishes an installation. `text`: its configuration as YAML."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(PUBLIC_NAME, PUBLIC_NAMESPACE, "configuration"),
        "data": contents(publication, text),
    }


def restart_digest(configuration: Mapping[str, Any]) -> str:
    """A digest of the sections that need a restart: the JSON and the digest that Helm's `toJson` and `sha256sum` make of them."""
    sections = {section: configuration.get(section) for section in RESTART_SECTIONS}
    sections |= extent(mapping(configuration.get("dynamo")).get("enabled", True) is not False, configuration.get("namespaces") or ())
    text = json.dumps(sections, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashlib.sha256(text.encode()).hexdigest()
