"""Workloads that run the engine: a Deployment of `run`, or a CronJob of `sync`, so that nothing of the engine runs all the time."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from resources.base import kinds
from resources.install.installation import NAME, SELECTOR, EngineInstallation, metadata
from resources.install.operator_configuration import RESTART_ANNOTATION, restart_digest
from resources.install.publication import LeasePlace
from resources.install.roles import LABELS

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

    They are part of the installation so that they are removed with it. They have no contents here: applying them
    again overwrites nothing that the engine has written.
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


SYNC: Final = "sync"
UNFINISHED: Final = "6|8"
"""Exit codes after which the next job continues, so that this one has not failed: another process was writing; pods are not ready yet."""
DEADLINE_SECONDS: Final = 900
"""After how long a job that hangs is ended. `engine sync` ends by itself long before."""


def cronjob(installation: EngineInstallation) -> dict[str, Any]:
    """The CronJob: one `sync` of all namespaces at a time. It fails only if an administrator has to look at it."""
    sync = f"engine sync --all-namespaces --quiet --timeout={installation.timeout} --config={CONFIGURATION_FILE}"
    shell = f"{sync}; code=$?; case $code in {UNFINISHED}) exit 0 ;; esac; exit $code"
    template = {
        "metadata": {"labels": LABELS | {"app.kubernetes.io/component": SYNC}},
        "spec": {**pod_spec(installation, {"command": ["sh", "-c", shell]}), "restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(NAME, installation.namespace, SYNC),
        "spec": {
            "schedule": installation.schedule,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 60,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {"spec": {"backoffLimit": 0, "activeDeadlineSeconds": DEADLINE_SECONDS, "template": template}},
        },
    }


CONTAINER: Final = "engine"
ACCOUNT_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
CONFIGURATION_FOLDER: Final = "/etc/grove-operator/config"
CONFIGURATION_FILE: Final = f"{CONFIGURATION_FOLDER}/config.yaml"
TOKEN_SECONDS: Final = 43200
"""How long a token of the ServiceAccount is valid; the kubelet replaces it before."""
USER: Final = 65532
"""The user and group of the process; the files of the image belong to root."""

RESOURCES: Final = {"limits": {"memory": "2Gi"}, "requests": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "64Mi"}}
POD_SECURITY: Final = {
    "fsGroup": USER,
    "runAsGroup": USER,
    "runAsNonRoot": True,
    "runAsUser": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}

ACCOUNT_VARIABLE: Final = "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME"
WAITER_VARIABLE: Final = "GROVE_INIT_CONTAINER_IMAGE"


def pod_spec(installation: EngineInstallation, container: dict[str, Any], volumes: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """The spec of a pod with one container: `container`, and what every process of the engine needs.

    `volumes` are further volumes; the container mounts them itself (`volumeMounts`).
    """
    shared = {
        "name": CONTAINER,
        "image": installation.image,
        "imagePullPolicy": "IfNotPresent",
        "env": environment(installation),
        "resources": RESOURCES,
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": [
            {"name": "configuration", "mountPath": CONFIGURATION_FOLDER, "readOnly": True},
            {"name": "account", "mountPath": ACCOUNT_FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
            *container.get("volumeMounts", ()),
        ],
    }
    secrets = {"imagePullSecrets": [{"name": name} for name in installation.pull_secrets]} if installation.pull_secrets else {}
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": False,
        "securityContext": POD_SECURITY,
        **secrets,
        "containers": [{**container, **shared}],
        "volumes": [
            {"name": "configuration", "configMap": {"name": NAME}},
            {"name": "account", "projected": {"sources": list(_account_sources())}},
            # In memory: what is written there may be a private key.
            {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
            *volumes,
        ],
    }


def environment(installation: EngineInstallation) -> list[dict[str, str]]:
    """The variables of the process. An init image in the configuration has precedence here, for the variable would replace it."""
    configured = installation.section("initContainer").get("image")
    waiter = [] if configured else [{"name": WAITER_VARIABLE, "value": installation.waiter_image}]
    return [{"name": ACCOUNT_VARIABLE, "value": NAME}, *waiter]


def _account_sources() -> Iterable[dict[str, Any]]:
    """What a mounted ServiceAccount consists of: a token that expires, the CA of the API server, and the namespace."""
    yield {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}}
    yield {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    yield {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}
