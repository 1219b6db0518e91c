"""What an installation publishes: everything that plans depend on, and nothing secret."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import asdict

from enginectl.wiring.configuration import configuration_of
from enginectl.wiring.published_configuration import PublicationState, published_in
from providers.snapshot import as_yaml
from resources.install.operator_configuration import publication_object
from resources.install.publication import differences, published
from resources.ports.configuration import WAITER_IMAGE
from resources.settings import Settings, valid_settings
from resources.settings_fields import NOT_PUBLISHED, PUBLISHED, WITHOUT_EFFECT, is_in, is_published, known_fields

OTHER: dict[str, Any] = {
    "leaderElection.leaseDuration": "31s",
    "leaderElection.renewDeadline": "13s",
    "leaderElection.retryPeriod": "3s",
    "leaderElection.resourceLock": "leases",
    "network.domainDrainTimeout": "1m0s",
    "dynamo.terminationDelay": "7m0s",
    "logLevel": "debug",
    "logFormat": "text",
    "server.webhooks.certProvisionMode": "manual",
    "scheduler.defaultProfileName": "volcano",
    "scheduler.gangScheduling": "Off",
    "scheduler.profiles[].name": "volcano",
    "scheduler.profiles[].config": {"queue": "x"},
    "authorizer.exemptServiceAccountUserNames": ["someone"],
    "debugging.enableProfiling": True,
    "namespaces": ["team-a"],
}
"""Field -> another value than its default, where one of the same type will not do."""


def other(field: str, default: Any) -> Any:
    """A valid value of the field that is not the default."""
    if field in OTHER:
        return OTHER[field]
    if isinstance(default, bool):
        return not default
    return default + 1 if isinstance(default, int | float) else "other"


def changed(field: str, default: Any) -> dict[str, Any]:
    """A configuration in which only this field differs from the defaults; with `volcano` enabled, which some of them need."""
    document: dict[str, Any] = {"scheduler": {"profiles": [{"name": "default-scheduler"}, {"name": "volcano"}]}}
    if field == "scheduler.profiles":
        return document
    if field.startswith("scheduler.profiles[]."):
        profile = {"name": "default-scheduler", field.rpartition(".")[2]: other(field, default)}
        return {"scheduler": {"profiles": [profile, {"name": "volcano"}][: 1 if field.endswith("name") else 2]}}
    *sections, last = field.split(".")
    place = document
    for section in sections:
        place = place.setdefault(section, {})
    place[last] = other(field, default)
    return document


FIELDS = [(field, default) for field, default in known_fields() if field not in ("apiVersion", "kind")]
BASE = valid_settings(changed("scheduler.profiles", None))


def test_whether_gangs_are_scheduled_is_published() -> None:
    default, off = (
        read(valid_settings({"scheduler": {"profiles": [{"name": "default-scheduler", "config": config}]}})).publication
        for config in ({}, {"gangScheduling": "Off"})
    )

    (field,) = differences(default, off)
    assert field == "scheduler.profiles[].config"


def essence(settings: Settings) -> dict[str, Any]:
    """What plans depend on, as values that can be compared."""
    configuration = asdict(configuration_of(settings))
    plug_ins = [*configuration.pop("fabrics"), *configuration.pop("schedulers").values()]
    return configuration | {
        "plug-ins": sorted((type(each).__name__, repr(vars(each) if hasattr(each, "__dict__") else each)) for each in plug_ins)
    }


def read(settings: Settings, image: str = WAITER_IMAGE) -> Any:
    """What commands read of what an installation with these settings publishes."""
    made = published(settings, settings.init_container.image or image, "grove-system")
    found = published_in(publication_object(made, as_yaml(made.configuration)))
    assert found.state is PublicationState.FOUND, found
    return found


def test_a_configuration_without_profiles_is_read_as_one() -> None:
    settings = valid_settings({})

    assert essence(read(settings).settings) == essence(settings)
    assert essence(settings)["graph_scheduler_where_served"]


def test_every_field_is_published_or_is_not_for_a_reason() -> None:
    tables = (PUBLISHED, NOT_PUBLISHED)
    for field, _ in known_fields():
        assert sum(is_in(field, table) for table in tables) == (0 if _is_section_without_effect(field) else 1), field


def _is_section_without_effect(field: str) -> bool:
    return is_in(field, WITHOUT_EFFECT) and not is_in(field, PUBLISHED)


@pytest.mark.parametrize(("field", "default"), FIELDS, ids=[field for field, _ in FIELDS])
def test_what_plans_depend_on_is_read_as_it_was_published_and_nothing_else_is_published(field: str, default: Any) -> None:
    settings = valid_settings(changed(field, default))
    found = read(settings)

    assert essence(found.settings) == essence(settings)
    if not is_published(field):
        assert essence(settings) == essence(BASE)
        assert found.publication == read(BASE).publication
    if field.startswith("leaderElection.") and is_published(field):
        assert getattr(found.settings.leader_election, snake(field)) == getattr(settings.leader_election, snake(field))


def snake(field: str) -> str:
    """The attribute of a field."""
    return "".join(f"_{character.lower()}" if character.isupper() else character for character in field.rpartition(".")[2])


@pytest.mark.parametrize(("field", "default"), [each for each in FIELDS if is_published(each[0])])
def test_a_difference_is_named_by_its_field(field: str, default: Any) -> None:
    other_settings = valid_settings(changed(field, default))
    named = differences(read(BASE).publication, read(other_settings).publication)

    if field in ("scheduler.profiles", "scheduler.profiles[].config"):
        assert named == ()
    else:
        assert named == (field,)
    assert differences(read(other_settings).publication, read(other_settings).publication) == ()


def strings(value: Any) -> Iterator[str]:
    """All texts in a document."""
    if isinstance(value, dict):
        for entry in value.values():
            yield from strings(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from strings(entry)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("key", ["natsAddress", "etcdAddress", "modelExpressURL", "prometheusEndpoint"])
@pytest.mark.parametrize("address", ["nats://user:hunter2@nats:4222", "user:hunter2@nats", "https://host/?token=hunter2"])
def test_addresses_with_credentials_are_withheld(key: str, address: str) -> None:
    made = published(valid_settings({"dynamo": {key: address}}), WAITER_IMAGE, "x")
    body = publication_object(made, as_yaml(made.configuration))

    assert "hunter2" not in json.dumps(body)
    assert body["data"]["withheld"] == f"dynamo.{key}"
    assert published_in(body).publication == made


def test_the_exempt_users_and_the_options_of_schedulers_are_nobodys_business() -> None:
    settings = valid_settings(
        {
            "authorizer": {"exemptServiceAccountUserNames": ["secret-user"]},
            "scheduler": {"profiles": [{"name": "kai-scheduler", "config": {"password": "secret"}}]},
            "server": {"webhooks": {"secretName": "secret-name"}},
        }
    )

    assert [text for text in strings(dict(published(settings, "x", "y").configuration)) if "secret" in text] == []


def test_the_leases_of_shards_are_listed() -> None:
    settings = valid_settings({"leaderElection": {"resourceNamespace": "locks", "resourceName": "lock"}})

    assert published(settings, "x", "y", shards=3).leases == ("locks/lock", "locks/lock-shard-1", "locks/lock-shard-2")
    assert published(settings, "x", "y").leases == ("locks/lock",)
    assert published(valid_settings({"leaderElection": {"enabled": False}}), "x", "y").leases == ()
