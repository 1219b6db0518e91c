"""The CronJob of `engine sync`, for clusters in which nothing of the engine runs all the time."""

from typing import Any, Final

from resources.install.engine_pod import CONFIGURATION_FILE, pod_spec
from resources.install.installation import NAME, EngineInstallation, metadata
from resources.install.roles import LABELS

COMPONENT: Final = "sync"
UNFINISHED: Final = "6|8"
"""Exit codes after which the next job continues, so that this one has not failed: another process was writing; pods are not ready yet."""
DEADLINE_SECONDS: Final = 900
"""After how long a job that hangs is ended. `engine sync` ends by itself long before."""


def cronjob(installation: EngineInstallation) -> dict[str, Any]:
    """The CronJob: one `sync` of all namespaces at a time. It fails only if somebody has to look at it."""
    sync = f"engine sync --all-namespaces --quiet --timeout={installation.timeout} --config={CONFIGURATION_FILE}"
    shell = f"{sync}; code=$?; case $code in {UNFINISHED}) exit 0 ;; esac; exit $code"
    template = {
        "metadata": {"labels": LABELS | {"app.kubernetes.io/component": COMPONENT}},
        "spec": {**pod_spec(installation, {"command": ["sh", "-c", shell]}), "restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(NAME, installation.namespace, COMPONENT),
        "spec": {
            "schedule": installation.schedule,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 60,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {"spec": {"backoffLimit": 0, "activeDeadlineSeconds": DEADLINE_SECONDS, "template": template}},
        },
    }
