"""Objects: what the controller creates for a domain: labelled with its uid, with the driver's finalizer, and without an owner."""

from typing import Any, Final

from grove_sandbox.actors.body import Body, uid_of
from grove_sandbox.actors.options import DriverOptions
from grove_sandbox.actors.script import PREFIX
from grove_sandbox.installation.kinds import ACCOUNT, CHANNEL_CONFIG, CONFIG_VERSION, DAEMON, DAEMON_CLASS
from grove_sandbox.product import kinds, nvidia

IMAGE: Final = "nvcr.io/nvidia/k8s-dra-driver-gpu:simulated"
CLAIM: Final = "compute-domain-daemon"


def daemon_name(domain: Body) -> str:
    """The name of the DaemonSet, and of its claim template."""
    return f"computedomain-daemon-{uid_of(domain)}"


def daemon_template(domain: Body, options: DriverOptions) -> dict[str, Any]:
    """The claim template of the domain's daemons, in the driver's namespace."""
    config = {"kind": nvidia.DAEMON_CONFIG, "domainID": uid_of(domain)}
    return _template(domain, options.namespace, daemon_name(domain), DAEMON, "daemon", DAEMON_CLASS, config)


def workload_template(domain: Body) -> dict[str, Any]:
    """The claim template of the domain's workload, in the domain's namespace, with the name that its spec gives."""
    channel = domain["spec"]["channel"]
    mode = channel.get("allocationMode") or "Single"
    config = {"kind": CHANNEL_CONFIG, "domainID": uid_of(domain), "allocationMode": mode}
    name = channel["resourceClaimTemplate"]["name"]
    return _template(domain, domain["metadata"]["namespace"], name, nvidia.WORKLOAD, "channel", nvidia.CHANNEL_CLASS, config)


def _template(
    domain: Body, namespace: str, name: str, target: str, request: str, device_class: str, config: dict[str, Any]
) -> dict[str, Any]:
    labels = {nvidia.DOMAIN_LABEL: uid_of(domain), nvidia.TARGET_LABEL: target}
    opaque = {"driver": nvidia.DRIVER, "parameters": {"apiVersion": CONFIG_VERSION, **config}}
    devices = {
        "requests": [{"name": request, "exactly": {"deviceClassName": device_class}}],
        "config": [{"requests": [request], "opaque": opaque}],
    }
    return {
        "apiVersion": kinds.RESOURCE_CLAIM_TEMPLATE.api_version,
        "kind": kinds.RESOURCE_CLAIM_TEMPLATE.name,
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "finalizers": [nvidia.DOMAIN_LABEL]},
        "spec": {"spec": {"devices": devices}},
    }


def daemon_set(domain: Body, options: DriverOptions) -> dict[str, Any]:
    """The DaemonSet, whose pods run on the nodes that carry the domain's label."""
    labels = {nvidia.DOMAIN_LABEL: uid_of(domain)}
    container = {"name": CLAIM, "image": IMAGE, "resources": {"claims": [{"name": CLAIM}]}}
    spec = {
        "nodeSelector": labels,
        "serviceAccountName": ACCOUNT,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "resourceClaims": [{"name": CLAIM, "resourceClaimTemplateName": daemon_name(domain)}],
    }
    # A simulated kubelet runs no probes: an annotation says how long the start takes.
    script = {f"{PREFIX}ready-after": f"{options.imex_start:g}s"} if options.imex_start else {}
    return {
        "apiVersion": kinds.DAEMON_SET.api_version,
        "kind": kinds.DAEMON_SET.name,
        "metadata": {"name": daemon_name(domain), "namespace": options.namespace, "labels": labels, "finalizers": [nvidia.DOMAIN_LABEL]},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "annotations": script}, "spec": spec},
        },
    }
