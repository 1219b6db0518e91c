"""The network of an installation: its Service, and who may connect to its pods."""

from typing import Any, Final

from resources.install.installation import NAME, SELECTOR, EngineInstallation, metadata
from resources.install.workloads import ENDPOINTS

COMPONENT: Final = "controller"
SERVED: Final = ("webhooks", "metrics")
"""The endpoints that the Service has. The kubelet asks the pods themselves for the probes."""


def service(installation: EngineInstallation) -> dict[str, Any]:
    """The Service, with the ports that the pods have."""
    ports = [
        {"name": ENDPOINTS[key], "port": installation.port(key), "targetPort": ENDPOINTS[key], "protocol": "TCP"}
        for key in SERVED
        if installation.port(key)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(NAME, installation.namespace, COMPONENT),
        "spec": {"type": "ClusterIP", "selector": SELECTOR, "ports": ports},
    }


def network_policy(installation: EngineInstallation) -> dict[str, Any]:
    """Webhooks may be called from everywhere, because the address of the API server is not known; metrics from namespaces for monitoring.

    The node of a pod may always connect to it, so that probes need no rule.
    """
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    rules: list[dict[str, Any]] = []
    if installation.port("webhooks"):
        rules.append({"ports": [{"port": "webhooks", "protocol": "TCP"}]})
    if installation.port("metrics"):
        rules.append({"from": [monitoring], "ports": [{"port": "metrics", "protocol": "TCP"}]})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(NAME, installation.namespace, COMPONENT),
        "spec": {"podSelector": {"matchLabels": SELECTOR}, "policyTypes": ["Ingress"], "ingress": rules},
    }


def service_monitor(installation: EngineInstallation) -> dict[str, Any]:
    """The ServiceMonitor of the Prometheus operator."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata(NAME, installation.namespace, "metrics"),
        "spec": {
            "namespaceSelector": {"matchNames": [installation.namespace]},
            "selector": {"matchLabels": SELECTOR},
            "endpoints": [{"port": "metrics", "path": "/metrics", "interval": "30s"}],
        },
    }
