"""The pod that runs the engine: under a restricted pod security standard, with a token of its own and nothing to write to but memory."""

from collections.abc import Iterable
from typing import Any, Final

from resources.install.installation import NAME, EngineInstallation

CONTAINER: Final = "engine"
ACCOUNT_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
CONFIGURATION_FOLDER: Final = "/etc/grove-operator/config"
CONFIGURATION_FILE: Final = f"{CONFIGURATION_FOLDER}/config.yaml"
TOKEN_SECONDS: Final = 43200
"""How long a token of the ServiceAccount is valid; the kubelet replaces it before."""
USER: Final = 65532
"""The user and group of the process; the files of the image belong to root."""

RESOURCES: Final = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "64Mi"}}
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
