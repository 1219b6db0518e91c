"""The operator configuration file."""

from typing import Any

import pytest

from resources.schema.issues import Rejected
from resources.settings import API_VERSION, KIND, read, seconds


def test_an_empty_file_has_all_defaults() -> None:
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
        "initContainer": {"image": "mirror.example/waiter"},
        "logLevel": "debug",
    }

    settings, unknown = read(config)

    assert unknown == ()
    assert seconds(settings.leader_election.lease_duration) == 90
    assert settings.network.auto_mnnvl_enabled
    assert settings.init_container.image == "mirror.example/waiter"
    assert settings.scheduler.names == ("kai-scheduler", "default-scheduler")


@pytest.mark.parametrize(
    ("config", "disabled"),
    [
        ({}, False),
        ({"leaderElection": {"leaseDuration": "20s"}}, False),
        ({"leaderElection": {"enabled": True}}, False),
        ({"leaderElection": {"enabled": False}}, True),
    ],
)
def test_leader_election_is_disabled_only_explicitly(config: dict[str, Any], disabled: bool) -> None:
    settings, _ = read(config)

    assert settings.leader_election.is_disabled is disabled


def test_unknown_keys_are_reported_with_their_paths() -> None:
    _, unknown = read(
        {"authorizer": {"reconcilerServiceAccountUserName": "x"}, "novel": 1, "scheduler": {"profiles": [{"name": "volcano", "x": 1}]}}
    )

    assert sorted(unknown) == ["authorizer.reconcilerServiceAccountUserName", "novel", "scheduler.profiles[0].x"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"logLevel": "loud"}, 'logLevel: Unsupported value: "loud": supported values: "debug", "info", "error"'),
        ({"kind": "Pod"}, 'kind: Unsupported value: "Pod": supported values: "OperatorConfiguration"'),
        ({"runtimeClientConnection": {"burst": -1}}, "runtimeClientConnection.burst: Invalid value: -1: must be non-negative"),
        (
            {"controllers": {"podGang": {"concurrentSyncs": 0}}},
            "controllers.podGang.concurrentSyncs: Invalid value: 0: must be greater than 0",
        ),
        (
            {"leaderElection": {"leaseDuration": "5s"}},
            'leaderElection.leaseDuration: Invalid value: "5s": LeaseDuration must be greater than RenewDeadline',
        ),
        (
            {"leaderElection": {"renewDeadline": "2s"}},
            'leaderElection.renewDeadline: Invalid value: "2s": RenewDeadline must be greater than RetryPeriod',
        ),
        ({"leaderElection": {"retryPeriod": "0s"}}, 'leaderElection.retryPeriod: Invalid value: "0s": must be greater than zero'),
        (
            {"leaderElection": {"leaseDuration": "soon"}},
            'leaderElection.leaseDuration: must be a duration such as 30s, 4h or 1h30m, got "soon"',
        ),
        (
            {"scheduler": {"defaultProfileName": "volcano"}},
            'scheduler.defaultProfileName: Invalid value: "volcano": default profile must be one of the configured profiles',
        ),
        (
            {"scheduler": {"profiles": [{"name": "volcano"}, {"name": "volcano"}]}},
            'scheduler.profiles[1].name: Duplicate value: "volcano"',
        ),
        (
            {"scheduler": {"profiles": [{"name": "mine"}]}},
            'scheduler.profiles[0].name: Unsupported value: "mine": supported values: '
            '"default-scheduler", "kai-scheduler", "volcano", "lpx-scheduler"',
        ),
        ({"server": {"metrics": {"port": "http"}}}, 'server.metrics.port: must be an integer, got "http"'),
        ({"server": {"metrics": {"port": 70_000}}}, "server.metrics.port: Invalid value: 70000: must be at most 65535"),
        ("text", 'must be an object, got "text"'),
    ],
)
def test_an_invalid_value_is_reported_with_its_path(config: Any, message: str) -> None:
    with pytest.raises(Rejected) as refusal:
        read(config)

    assert str(refusal.value) == message


def test_all_invalid_values_are_reported_together() -> None:
    with pytest.raises(Rejected) as refusal:
        read({"logLevel": "loud", "network": {"autoMNNVLEnabled": "yes"}})

    assert {issue.field for issue in refusal.value.issues} == {"logLevel", "network.autoMNNVLEnabled"}


def test_a_section_keeps_the_defaults_of_other_keys() -> None:
    settings, _ = read({"server": {"webhooks": {"bindAddress": "::"}, "metrics": {}}, "controllers": {"podGang": {}, "podClique": {}}})

    assert (settings.server.webhooks.port, settings.server.health_probes.port, settings.server.metrics.port) == (2750, 2751, 2752)
    assert (settings.controllers.pod_gang.concurrent_syncs, settings.controllers.pod_clique.concurrent_syncs) == (5, 10)


def test_zero_and_null_mean_the_default() -> None:
    settings, unknown = read({"runtimeClientConnection": {"qps": 0, "burst": 0}, "scheduler": None, "authorizer": {"enabled": None}})

    assert (settings.runtime_client_connection.qps, settings.runtime_client_connection.burst) == (100, 120)
    assert (settings.scheduler.names, settings.authorizer.enabled, unknown) == (("default-scheduler",), False, ())


def test_the_configuration_of_a_back_end_is_passed_unchanged() -> None:
    config = {"gangScheduling": True, "deep": {"x": [1]}}

    settings, unknown = read({"scheduler": {"profiles": [{"name": "default-scheduler", "config": config}]}})

    assert settings.scheduler.profiles[0].config is config
    assert unknown == ()
