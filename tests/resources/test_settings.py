"""The operator configuration, as existing charts write it."""

from typing import Any

import pytest

from resources.admission.issues import Rejected
from resources.settings import API_VERSION, KIND, read, seconds


def test_an_empty_file_is_all_defaults() -> None:
    settings, unknown = read({})

    assert unknown == ()
    assert (settings.leader_election.resource_name, seconds(settings.leader_election.lease_duration)) == (
        "grove-operator-leader-election",
        15,
    )
    assert (settings.scheduler.names, settings.scheduler.default_profile_name) == (("default-scheduler",), "default-scheduler")
    assert (settings.controllers.pod_clique_set.concurrent_syncs, settings.controllers.pod_gang.concurrent_syncs) == (10, 5)


def test_the_keys_of_the_chart_are_understood() -> None:
    config = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "runtimeClientConnection": {"qps": 100, "burst": 150},
        "leaderElection": {"enabled": True, "leaseDuration": "1m30s", "resourceNamespace": "grove-system"},
        "controllers": {"podCliqueSet": {"concurrentSyncs": 3}},
        "network": {"autoMNNVLEnabled": True},
        "scheduler": {"profiles": [{"name": "kai-scheduler"}], "defaultProfileName": "kai-scheduler"},
        "logLevel": "debug",
    }

    settings, unknown = read(config)

    assert unknown == ()
    assert seconds(settings.leader_election.lease_duration) == 90
    assert settings.network.auto_mnnvl_enabled
    assert settings.scheduler.names == ("kai-scheduler", "default-scheduler")


def test_unknown_keys_are_told_with_their_path_and_nothing_more() -> None:
    _, unknown = read(
        {"authorizer": {"reconcilerServiceAccountUserName": "x"}, "novel": 1, "scheduler": {"profiles": [{"name": "volcano", "x": 1}]}}
    )

    assert sorted(unknown) == ["authorizer.reconcilerServiceAccountUserName", "novel", "scheduler.profiles[0].x"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"logLevel": "loud"}, "logLevel: Input should be 'debug', 'info' or 'error', got \"loud\""),
        (
            {"controllers": {"podGang": {"concurrentSyncs": 0}}},
            "controllers.podGang.concurrentSyncs: Input should be greater than 0, got 0",
        ),
        (
            {"leaderElection": {"leaseDuration": "5s"}},
            "leaderElection: leaseDuration must be greater than renewDeadline, and that greater than retryPeriod, got an object",
        ),
        (
            {"scheduler": {"defaultProfileName": "volcano"}},
            "scheduler: default profile must be one of the configured profiles, got an object",
        ),
        (
            {"scheduler": {"profiles": [{"name": "mine"}]}},
            "scheduler.profiles[0].name: Input should be 'default-scheduler', 'kai-scheduler', 'volcano' or 'lpx-scheduler', got \"mine\"",
        ),
        ({"server": {"metrics": {"port": "http"}}}, 'server.metrics.port: Input should be a valid integer, got "http"'),
    ],
)
def test_a_wrong_value_is_told_with_its_path(config: dict[str, Any], message: str) -> None:
    with pytest.raises(Rejected) as refusal:
        read(config)

    assert str(refusal.value) == message
