"""Workloads: Deployments and their like; stored and defaulted, but no controller of ours runs them."""

from collections.abc import Mapping
from typing import Any

from providers.sandbox.kinds import containers
from providers.sandbox.kinds.rules import Rules, Scene
from providers.sandbox.types import causes
from providers.sandbox.types.status import Cause

Body = Mapping[str, Any]
Draft = dict[str, Any]
_QUARTER = "25%"


def _default_deployment(deployment: Draft) -> None:
    spec = deployment["spec"]
    _default_common(spec)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec["strategy"]
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", _QUARTER)
        rolling.setdefault("maxSurge", _QUARTER)


def _default_common(spec: Draft) -> None:
    spec.setdefault("replicas", 1)
    containers.default_template(spec["template"])


def _default_replica_set(replica_set: Draft) -> None:
    _default_common(replica_set["spec"])


def _default_stateful_set(stateful_set: Draft) -> None:
    spec = stateful_set["spec"]
    _default_common(spec)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention["whenDeleted"] = retention.get("whenDeleted") or "Retain"
    retention["whenScaled"] = retention.get("whenScaled") or "Retain"


def _default_daemon_set(daemon_set: Draft) -> None:
    spec = daemon_set["spec"]
    containers.default_template(spec["template"])
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec["updateStrategy"]
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)


def _keep_status(body: Draft, old: Body, _: Scene) -> None:
    body["status"] = old["status"]


def _keep_spec(body: Draft, old: Body, _: Scene) -> None:
    body["spec"] = old["spec"]


def _keep_spec_and_labels(body: Draft, old: Body, _: Scene) -> None:
    body["spec"] = old["spec"]
    body["metadata"].pop("labels", None)
    if labels := old["metadata"].get("labels"):
        body["metadata"]["labels"] = labels


def _validate(body: Body) -> list[Cause]:
    spec = body["spec"]
    found: list[Cause] = []
    if spec.get("replicas", 0) < 0:
        found.append(causes.invalid("spec.replicas", spec["replicas"], "must be greater than or equal to 0"))
    selector = spec.get("selector")
    if selector is None:
        found.append(causes.required("spec.selector"))
    elif not selector:
        found.append(causes.invalid("spec.selector", selector, f"empty selector is invalid for {_PLAIN.get(body['kind'], body['kind'])}"))
    labels = spec["template"]["metadata"].get("labels") or {}
    if selector is None or not (selector.get("matchLabels") or {}).items() <= labels.items():
        found.append(causes.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
    return found + containers.spec_faults(spec["template"]["spec"], "spec.template.spec")


_PLAIN = {"Deployment": "deployment", "StatefulSet": "statefulset", "DaemonSet": "daemonset", "ReplicaSet": "deployment"}


def _selector_faults(new: Body, old: Body) -> list[Cause]:
    if new["spec"].get("selector") == old["spec"].get("selector"):
        return []
    return [causes.invalid("spec.selector", new["spec"].get("selector"), causes.IMMUTABLE)]


_SCALED: dict[str, Any] = {
    "update": _keep_status,
    "status": _keep_spec,
    "validate": _validate,
    "validate_change": _selector_faults,
    "generation": ("spec",),
}
DEPLOYMENT = Rules(default=_default_deployment, **{**_SCALED, "status": _keep_spec_and_labels})
REPLICA_SET = Rules(default=_default_replica_set, **_SCALED)
STATEFUL_SET = Rules(default=_default_stateful_set, **_SCALED)
DAEMON_SET = Rules(default=_default_daemon_set, **_SCALED)


def _default_job(job: Draft) -> None:
    spec = job["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    containers.default_template(spec["template"])
    _default_job_labels(job)


def _default_job_labels(job: Draft) -> None:
    """A job without labels takes those of its pods."""
    labels = job["spec"]["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def _default_pod_template(body: Draft) -> None:
    containers.default_template(body["template"])


def _pod_template_faults(body: Body) -> list[Cause]:
    return containers.spec_faults(body["template"]["spec"], "template.spec")


def _default_cron_job(cron_job: Draft) -> None:
    spec = cron_job["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    containers.default_template(spec["jobTemplate"]["spec"]["template"])


def _select_by_uid(job: Draft, _: Scene) -> None:
    """A job selects its pods by its own uid, unless told otherwise."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for key in ("controller-uid", "batch.kubernetes.io/controller-uid"):
        labels[key] = metadata["uid"]
    for key in ("job-name", "batch.kubernetes.io/job-name"):
        labels[key] = metadata["name"]
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": metadata["uid"]}}
    _default_job_labels(job)


JOB = Rules(
    default=_default_job,
    create=_select_by_uid,
    update=_keep_status,
    status=_keep_spec,
    generation=("spec",),
    default_propagation="Orphan",
)
POD_TEMPLATE = Rules(default=_default_pod_template, validate=_pod_template_faults, generation=("template",))
CRON_JOB = Rules(default=_default_cron_job, update=_keep_status, status=_keep_spec, generation=("spec",))
