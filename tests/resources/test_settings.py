"""The operator configuration file."""

from typing import Any

import pytest

from resources.schema.issues import Rejected, spelled
from resources.schema.unknown_fields import unknown_fields
from resources.settings import API_VERSION, KIND, Settings, read, seconds


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
    ("config", "enabled"),
    [
        ({}, True),
        ({"leaderElection": None}, True),
        ({"leaderElection": {"leaseDuration": "20s", "enabled": None}}, True),
        ({"leaderElection": {"enabled": True}}, True),
        ({"leaderElection": {"enabled": False}}, False),
    ],
)
def test_leader_election_is_disabled_only_explicitly(config: dict[str, Any], enabled: bool) -> None:
    settings, _ = read(config)

    assert settings.leader_election.enabled is enabled


def test_a_disabled_leader_election_is_not_checked() -> None:
    fields = {"leaseDuration": "1s", "renewDeadline": "0s", "retryPeriod": "-1s", "resourceLock": "endpoints", "resourceName": ""}

    settings, _ = read({"leaderElection": {"enabled": False, **fields}})

    assert settings.leader_election.resource_lock == "endpoints"


def test_unknown_fields_are_reported_with_their_paths() -> None:
    _, unknown = read(
        {"authorizer": {"reconcilerServiceAccountUserName": "x"}, "novel": 1, "scheduler": {"profiles": [{"name": "volcano", "x": 1}]}}
    )

    assert sorted(map(str, unknown)) == [
        "authorizer.reconcilerServiceAccountUserName is unknown and ignored",
        "novel is unknown and ignored",
        "scheduler.profiles[0].x is unknown and ignored",
    ]


@pytest.mark.parametrize(
    ("config", "nearest"),
    [
        ({"network": {"autoMnnvlEnabled": True}}, ("network", "autoMNNVLEnabled")),
        ({"loglevel": "debug"}, ("logLevel",)),
        ({"server": {"webhook": {}}}, ("server", "webhooks")),
        ({"controllers": {"podGang": {"concurrentSync": 1}}}, ("controllers", "podGang", "concurrentSyncs")),
        ({"scheduler": {"profiles": [{"name": "volcano"}, {"nmae": 1, "name": "kai-scheduler"}]}}, ("scheduler", "profiles", 1, "name")),
        ({"server": {"healthProbes": {"enable": True}}}, None),
        ({"scheduler": {"profiles": [{"name": "volcano", "confg": {}}]}}, ("scheduler", "profiles", 0, "config")),
        ({"autoMNNVLEnabled": True}, None),
        ({"authorizer": {"reconcilerServiceAccountUserName": "x"}}, None),
        ({"logLevel" * 1000: 1}, None),
    ],
)
def test_the_nearest_field_at_the_same_place_is_suggested(config: Any, nearest: tuple[str | int, ...] | None) -> None:
    ((field,), text) = read(config)[1], str(read(config)[1][0])

    assert field.nearest == nearest
    assert text.endswith(f"; did you mean {spelled(nearest)}?" if nearest else " is unknown and ignored")


def test_unknown_fields_of_values_with_a_wrong_type_are_not_searched() -> None:
    config = {"network": "on", "server": [1], "scheduler": {"profiles": {"x": 1}}, "x": {"y": 1}}

    assert [field.path for field in unknown_fields(config, Settings)] == [("scheduler", "profiles", "x"), ("x",)]


def test_an_unknown_field_cannot_control_a_terminal() -> None:
    _, (field,) = read({"network": {"\x1b[2J\u202e" + "x" * 1000: 1}})

    text = str(field)
    assert text.startswith("network[\\x1b[2J\\u202exxx") and text.endswith("… is unknown and ignored")
    assert text.isprintable() and len(text) < 500


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
        (
            {"leaderElection": {"renewDeadline": "20s"}},
            'leaderElection.leaseDuration: Invalid value: "15s": LeaseDuration must be greater than RenewDeadline',
        ),
        (
            {"leaderElection": {"renewDeadline": "20s", "leaseDuration": None}},
            'leaderElection.leaseDuration: Invalid value: "15s": LeaseDuration must be greater than RenewDeadline',
        ),
        (
            {"leaderElection": {"retryPeriod": "10s"}},
            'leaderElection.renewDeadline: Invalid value: "10s": RenewDeadline must be greater than RetryPeriod',
        ),
        ({"leaderElection": {"leaseDuration": "0s"}}, 'leaderElection.leaseDuration: Invalid value: "0s": must be greater than zero'),
        ({"leaderElection": {"resourceName": ""}}, "leaderElection.resourceName: Required value"),
        ({"leaderElection": {"resourceLock": ""}}, "leaderElection.resourceLock: Required value"),
        (
            {"leaderElection": {"resourceLock": "endpoints"}},
            'leaderElection.resourceLock: Unsupported value: "endpoints": supported values: "leases"',
        ),
        ({"leaderElection": {"enabled": "no"}}, 'leaderElection.enabled: must be true or false, got "no"'),
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
        (
            {"server": {"webhooks": {"certProvisionMode": "none"}}},
            'server.webhooks.certProvisionMode: Unsupported value: "none": supported values: "auto", "manual"',
        ),
        ({"debugging": {"enableProfiling": "yes"}}, 'debugging.enableProfiling: must be true or false, got "yes"'),
        ({"runtimeClientConnection": {"qps": True}}, "runtimeClientConnection.qps: must be a number, got true"),
        (
            {"authorizer": {"exemptServiceAccountUserNames": "a"}},
            'authorizer.exemptServiceAccountUserNames: must be a list, got "a"',
        ),
        (
            {"network": {"domainDrainTimeout": "-1s"}},
            'network.domainDrainTimeout: Invalid value: "-1s": must be non-negative',
        ),
        ({"scheduler": {"profiles": [{}]}}, "scheduler.profiles[0].name: Required value"),
        (
            {"scheduler": {"profiles": [{"name": "volcano", "config": 1}]}},
            "scheduler.profiles[0].config: must be an object, got 1",
        ),
        (
            {"scheduler": {"profiles": [{"name": "default-scheduler", "config": {"gangScheduling": "yes"}}]}},
            'scheduler.profiles[0].config.gangScheduling: Invalid value: "yes": must be Auto, Require or Off (or true: Auto, false: Off)',
        ),
        ([], "must be an object, got a list"),
        (None, "must be an object, got null"),
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
    profiles = [{"name": name} for name in ("volcano", "mine", "volcano", "volcano")]
    with pytest.raises(Rejected) as refusal:
        read(
            {
                "logLevel": "loud",
                "network": {"autoMNNVLEnabled": "yes"},
                "leaderElection": {"leaseDuration": "5s", "retryPeriod": "0s", "resourceLock": "x", "resourceName": "", "enabled": 1},
                "scheduler": {"profiles": profiles},
            }
        )

    assert {issue.field for issue in refusal.value.issues} == {
        "logLevel",
        "network.autoMNNVLEnabled",
        "leaderElection.enabled",
        "leaderElection.leaseDuration",
        "leaderElection.retryPeriod",
        "leaderElection.resourceLock",
        "leaderElection.resourceName",
        "scheduler.profiles[1].name",
        "scheduler.profiles[2].name",
        "scheduler.profiles[3].name",
    }


def test_the_default_scheduler_is_appended_if_it_is_missing() -> None:
    for profiles, names in (([], ["default-scheduler"]), (["volcano"], ["volcano", "default-scheduler"]), (["default-scheduler"],) * 2):
        settings, _ = read({"scheduler": {"profiles": [{"name": name} for name in profiles]}})

        assert list(settings.scheduler.names) == names


def test_what_is_dumped_with_all_defaults_is_read_as_the_same() -> None:
    settings, _ = read({"scheduler": {"profiles": [{"name": "volcano", "config": {"a": [1]}}]}, "leaderElection": {"enabled": False}})

    assert read(settings.model_dump(mode="json", by_alias=True)) == (settings, ())


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
