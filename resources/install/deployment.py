"""The Deployment of `engine run`, and what goes with its pods: a disruption budget, and the objects that the engine fills in."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from resources.base import kinds
from resources.install.engine_pod import CONFIGURATION_FILE, pod_spec
from resources.install.installation import NAME, SELECTOR, EngineInstallation, metadata
from resources.install.operator_configuration import RESTART_ANNOTATION, restart_digest
from resources.install.publication import LeasePlace

COMPONENT: Final = "controller"
ENDPOINTS: Final[Mapping[str, str]] = {"webhooks": "webhooks", "healthProbes": "probes", "metrics": "metrics"}
"""Endpoint in the configuration -> the name of its port."""
GRACE_SECONDS: Final = 30
"""How long a process may take to end: it lets reviews in progress end, and gives its Lease back."""
LINGER_SECONDS: Final = 5
"""How long a pod that is to end still answers: API servers learn only after a moment that its address is gone."""


def deployment(installation: EngineInstallation) -> dict[str, Any]:
    """The Deployment. Every replica answers webhooks and probes; one for each shard writes."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(NAME, installation.namespace, COMPONENT),
        "spec": {
            "replicas": installation.replicas,
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": SELECTOR},
            "strategy": _strategy(installation),
            "template": {
                "metadata": {
                    "labels": SELECTOR,
                    "annotations": {RESTART_ANNOTATION: restart_digest(installation.configuration)},
                },
                "spec": {
                    **pod_spec(installation, container(installation), _certificate_volumes(installation)),
                    "terminationGracePeriodSeconds": GRACE_SECONDS,
                    "topologySpreadConstraints": [
                        {
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": {"matchLabels": SELECTOR},
                        }
                    ],
                },
            },
        },
    }


def _strategy(installation: EngineInstallation) -> dict[str, Any]:
    """A new pod is ready before an old one ends. Without a Lease both would write, so the old one ends first."""
    if not installation.elects:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def container(installation: EngineInstallation) -> dict[str, Any]:
    """The parts of the container that only the Deployment has: arguments, ports and probes."""
    page = ["--ui"] if installation.page else []
    return {
        "command": ["engine"],
        "args": ["run", f"--config={CONFIGURATION_FILE}", *page],
        "ports": [{"name": name, "containerPort": installation.port(key)} for key, name in ENDPOINTS.items() if installation.port(key)],
        **(_probes() if installation.port("healthProbes") else {}),
        "lifecycle": {"preStop": {"sleep": {"seconds": LINGER_SECONDS}}},
        "volumeMounts": [
            {"name": "certificate", "mountPath": _webhooks(installation)["serverCertDir"], "readOnly": True}
            for _ in _certificate_volumes(installation)
        ],
    }


def _probes() -> dict[str, Any]:
    """A process that is not ready gets no reviews; one that does not answer at all is started again."""
    return {
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "probes"},
            "initialDelaySeconds": 15,
            "periodSeconds": 20,
            "timeoutSeconds": 5,
        },
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "probes"}, "periodSeconds": 5, "timeoutSeconds": 5},
    }


def _certificate_volumes(installation: EngineInstallation) -> list[dict[str, Any]]:
    """The Secret of a certificate that others provide. It may come after the pod, which is not ready until then."""
    if not installation.serves_webhooks or installation.makes_certificate:
        return []
    return [{"name": "certificate", "secret": {"secretName": _webhooks(installation)["secretName"], "optional": True}}]


def disruption_budget(installation: EngineInstallation) -> dict[str, Any]:
    """One pod at a time may be evicted. Not `minAvailable`: a single replica must not keep a node from being drained."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(NAME, installation.namespace, COMPONENT),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": SELECTOR}},
    }


def filled_objects(installation: EngineInstallation) -> Iterator[dict[str, Any]]:
    """The objects that the engine fills in: the Secret of its certificate, and its Leases.

    They are part of the installation so that they are removed with it. They have no contents here: nobody who applies
    them again overwrites what the engine has written.
    """
    if installation.makes_certificate:
        name = _webhooks(installation)["secretName"]
        yield {
            "apiVersion": "v1",
            "kind": kinds.SECRET.name,
            "metadata": metadata(name, installation.namespace, "webhooks"),
            # Not `kubernetes.io/tls`, which requires contents.
            "type": "Opaque",
        }
    election = installation.section("leaderElection")
    if installation.elects:
        place = LeasePlace(str(election.get("resourceNamespace")), str(election.get("resourceName")), installation.shards)
        for name in place.names:
            yield {
                "apiVersion": kinds.LEASE.api_version,
                "kind": kinds.LEASE.name,
                "metadata": metadata(name, place.namespace, COMPONENT),
            }


def _webhooks(installation: EngineInstallation) -> Mapping[str, Any]:
    return installation.section("server", "webhooks")
