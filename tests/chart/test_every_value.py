"""Every value of the chart, set to something else: what is installed differs, or it is said why it does not."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.chart.generated import CHART
from tests.chart.rendering import rendered
from tests.chart.values_table import leaves

VALUES: Final = yaml.load((CHART / "values.yaml").read_text(), yaml.CSafeLoader)
LEAVES: Final = dict(leaves(VALUES))
OTHERS: Final[Mapping[str, Any]] = {
    "mode": "cronjob",
    "admission": "policies",
    "scheduler.gangs": "Off",
    "namespaces": ["team-a"],
    "cronJob.timeout": "90s",
    "image.pullPolicy": "Always",
    "imagePullSecrets": [{"name": "registry"}],
    "resources": {"limits": {"memory": "3Gi"}},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
    "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "config.leaderElection.leaseDuration": "30s",
    "config.leaderElection.renewDeadline": "11s",
    "config.leaderElection.retryPeriod": "3s",
    "config.leaderElection.enabled": False,
    "config.server.webhooks.certProvisionMode": "manual",
    "config.scheduler.profiles": [{"name": "volcano"}],
    "config.logLevel": "debug",
    "config.logFormat": "text",
    "config.authorizer.exemptServiceAccountUserNames": ["system:serviceaccount:argo:argo"],
    "deployment.env": [{"name": "TZ", "value": "UTC"}],
    "service.type": "NodePort",
    "webhooks.caBundle": "Q0E=",
    "networkPolicy.metricsFrom": [{"podSelector": {}}],
    "metrics.serviceMonitor.interval": "60s",
}
"""What a value is set to, where its type does not say it."""
MEANWHILE: Final[Mapping[str, Mapping[str, Any]]] = {
    "mutatingPolicies": {"admission": "policies", "config": {"network": {"autoMNNVLEnabled": True}}},
    "cronJob": {"mode": "cronjob"},
    "config.leaderElection.enabled": {"replicaCount": 1},
    "config.authorizer.exemptServiceAccountUserNames": {"config": {"authorizer": {"enabled": True}}},
    "webhooks.caBundle": {"config": {"server": {"webhooks": {"certProvisionMode": "manual"}}}},
    "webhooks.authorizerWebhook": {"config": {"authorizer": {"enabled": True}}},
    "webhooks.clusterTopologyValidationWebhook": {"config": {"topologyAwareScheduling": {"enabled": True}}},
    "priorityClass": {"priorityClass": {"enabled": True}},
    "networkPolicy": {"networkPolicy": {"enabled": True}},
    "metrics.serviceMonitor": {"metrics": {"serviceMonitor": {"enabled": True}}},
    "metrics.prometheusRule": {"metrics": {"prometheusRule": {"enabled": True}}},
    "dashboards": {"dashboards": {"enabled": True}},
}
"""A value, or a section -> other values that switch on what it is about."""


def other(path: str) -> Any:
    """A valid value that is not the default."""
    default = LEAVES[path]
    if path in OTHERS:
        return OTHERS[path]
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return default + 1
    return {"own/key": "on: \"é' #"} if isinstance(default, dict) else f"{default}x"


def nested(path: str, value: Any) -> dict[str, Any]:
    """Values with this one alone."""
    for section in reversed(path.split(".")):
        value = {section: value}
    return dict(value)


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The values of both; those of the second win."""
    result = deepcopy(dict(first))
    for key, value in second.items():
        result[key] = merged(result[key], value) if isinstance(result.get(key), dict) and isinstance(value, dict) else value
    return result


def context(path: str) -> Mapping[str, Any]:
    """The other values with which this one means something; its own default wins."""
    sections = [section for section in MEANWHILE if f"{path}.".startswith(f"{section}.")]
    found = MEANWHILE[max(sections, key=len)] if sections else {}
    return merged(found, nested(path, LEAVES[path])) if found else found


def texts(value: Any) -> Iterator[Any]:
    """Every scalar and key within a value."""
    if isinstance(value, dict):
        yield from value
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    else:
        yield value


@pytest.mark.e2e
@pytest.mark.parametrize("path", LEAVES)
def test_a_value_that_is_set_changes_what_is_installed(path: str, tmp_path: Path) -> None:
    meanwhile, value = context(path), other(path)
    assert value != LEAVES[path]

    before, after = (rendered(each, tmp_path) for each in (meanwhile, merged(meanwhile, nested(path, value))))

    assert after != before
    if isinstance(LEAVES[path], dict | list | str) and path not in ("mode", "admission", "scheduler.gangs"):
        shown = set(map(str, texts(list(after.values()))))
        assert all(any(str(each) in text for text in shown) for each in texts(value) if each != ""), value


def test_every_other_value_belongs_to_a_value_of_the_chart() -> None:
    assert OTHERS.keys() <= LEAVES.keys()
    assert all(any(f"{path}.".startswith(f"{section}.") for path in LEAVES) for section in MEANWHILE)
