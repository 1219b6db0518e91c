"""Workloads: Deployments, StatefulSets, Jobs and the like. They are stored and defaulted; only Deployments have a controller here."""

from typing import Any

from grove_sandbox.kinds import containers
from grove_sandbox.kinds.rules import Draft, Environment, Rules, fill, keep_spec, keep_status
from grove_sandbox.product import Body
from grove_sandbox.types import causes
from grove_sandbox.types.status import Cause


def _default_rolling_update(strategy: Draft, rolling: Body) -> None:
    fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        fill(strategy, {"rollingUpdate": rolling})


def _default_deployment(deployment: Draft) -> None:
    spec = deployment["spec"]
    fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
    _default_rolling_update(spec["strategy"], {"maxUnavailable": "25%", "maxSurge": "25%"})
    containers.default_spec(spec["template"]["spec"])


def _default_replica_set(replica_set: Draft) -> None:
    fill(replica_set["spec"], {"replicas": 1})
    containers.default_spec(replica_set["spec"]["template"]["spec"])


def _default_stateful_set(stateful_set: Draft) -> None:
    spec = stateful_set["spec"]
    retention = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady"})
    fill(spec, {"persistentVolumeClaimRetentionPolicy": retention})
    _default_rolling_update(spec["updateStrategy"], {"partition": 0, "maxUnavailable": 1})
    containers.default_spec(spec["template"]["spec"])


def _default_daemon_set(daemon_set: Draft) -> None:
    spec = daemon_set["spec"]
    fill(spec, {"revisionHistoryLimit": 10})
    _default_rolling_update(spec["updateStrategy"], {"maxUnavailable": 1, "maxSurge": 0})
    containers.default_spec(spec["template"]["spec"])


def _keep_spec_and_labels(body: Draft, old: Body, environment: Environment) -> None:
    keep_spec(body, old, environment)
    body["metadata"].pop("labels", None)
    if labels := old["metadata"].get("labels"):
        body["metadata"]["labels"] = labels


def _validate(body: Body) -> list[Cause]:
    spec = body["spec"]
    faults: list[Cause] = []
    if spec.get("replicas", 0) < 0:
        faults.append(causes.invalid("spec.replicas", spec["replicas"], "must be greater than or equal to 0"))
    selector = spec.get("selector")
    if selector is None:
        faults.append(causes.required("spec.selector"))
    elif not selector:
        # The server validates both with the same code.
        kind = "deployment" if body["kind"] == "ReplicaSet" else body["kind"].lower()
        faults.append(causes.invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
    labels = spec["template"]["metadata"].get("labels") or {}
    if selector is None or not (selector.get("matchLabels") or {}).items() <= labels.items():
        faults.append(causes.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
    return faults + containers.spec_faults(spec["template"]["spec"], "spec.template.spec")


def _selector_faults(new: Body, old: Body) -> list[Cause]:
    return causes.changed("spec.selector", new["spec"].get("selector"), old["spec"].get("selector"))


_SCALED: dict[str, Any] = {
    "update": keep_status,
    "validate": _validate,
    "validate_change": _selector_faults,
    "generation": ("spec",),
}
DEPLOYMENT = Rules(default=_default_deployment, status=_keep_spec_and_labels, **_SCALED)
REPLICA_SET = Rules(default=_default_replica_set, status=keep_spec, **_SCALED)
STATEFUL_SET = Rules(default=_default_stateful_set, status=keep_spec, **_SCALED)
DAEMON_SET = Rules(default=_default_daemon_set, status=keep_spec, **_SCALED)

_JOB = {
    "parallelism": 1,
    "backoffLimit": 6,
    "completionMode": "NonIndexed",
    "suspend": False,
    "podReplacementPolicy": "TerminatingOrFailed",
    "manualSelector": False,
}
_CRON_JOB = {"concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}


def _default_job(job: Draft) -> None:
    spec = job["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(spec, _JOB)
    containers.default_spec(spec["template"]["spec"])
    _default_job_labels(job)


def _default_job_labels(job: Draft) -> None:
    """A job without labels gets those of its pods."""
    labels = job["spec"]["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def _default_pod_template(body: Draft) -> None:
    containers.default_spec(body["template"]["spec"])


def _pod_template_faults(body: Body) -> list[Cause]:
    return containers.spec_faults(body["template"]["spec"], "template.spec")


def _default_cron_job(cron_job: Draft) -> None:
    fill(cron_job["spec"], _CRON_JOB)
    containers.default_spec(cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"])


def _select_by_uid(job: Draft, _: Environment) -> None:
    """A job selects its pods by its own uid, unless `manualSelector` is set."""
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
    update=keep_status,
    status=keep_spec,
    generation=("spec",),
    default_propagation="Orphan",
)
POD_TEMPLATE = Rules(default=_default_pod_template, validate=_pod_template_faults, generation=("template",))
CRON_JOB = Rules(default=_default_cron_job, update=keep_status, status=keep_spec, generation=("spec",))
