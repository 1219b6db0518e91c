"""Values that have no effect beside others: what is installed does not change, and NOTES.txt names them."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tests.chart.rendering import rendered_with_notes
from tests.chart.test_every_value import LEAVES, context, merged, nested, other

CHOICES = ("mode", "admission")
"""What the others depend on."""
UNREAD = "config.server"
"""What is installed with the rest of the configuration, and not read by a CronJob."""


@lru_cache
def installed(values: str, folder: Path) -> tuple[dict[Any, Any], str]:
    """The objects, and NOTES.txt."""
    return rendered_with_notes(json.loads(values), folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where helm works."""
    return tmp_path_factory.mktemp("chart")


def is_named(path: str, notes: str) -> bool:
    """Whether the notes have a line for a value, or for a section that it is in."""
    lines = notes.partition("no effect here:\n")[2].splitlines()
    return any(f"{path}.".startswith(f"{line.strip().partition(':')[0]}.") for line in lines if ": " in line)


@pytest.mark.e2e
@pytest.mark.parametrize("path", [path for path in LEAVES if path not in CHOICES])
def test_a_cron_job_names_exactly_the_values_without_effect(path: str, folder: Path) -> None:
    meanwhile = merged(context(path), {"mode": "cronjob"})

    before, _ = installed(json.dumps(meanwhile), folder)
    after, notes = installed(json.dumps(merged(meanwhile, nested(path, other(path)))), folder)

    assert is_named(path, notes) == (after == before or path.startswith(UNREAD))


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"cronJob": {"schedule": "0 * * * *"}}, "cronJob"),
        ({"admission": "none", "webhooks": {"caBundle": "Q0E="}}, "webhooks"),
        ({"admission": "policies", "webhookServerSecret": {"labels": {"a": "b"}}}, "webhookServerSecret"),
        ({"admission": "none", "config": {"server": {"webhooks": {"port": 1}}}}, "config.server.webhooks"),
        ({"mutatingPolicies": True}, "mutatingPolicies"),
        ({"mode": "cronjob", "serviceMonitor": {"enable": True}}, "serviceMonitor"),
    ],
)
def test_so_does_a_deployment_for_what_its_choices_switch_off(values: dict[str, Any], named: str, folder: Path) -> None:
    assert is_named(named, installed(json.dumps(values), folder)[1])


@pytest.mark.e2e
@pytest.mark.parametrize("choices", [{}, {"mode": "cronjob"}, {"admission": "policies"}, {"admission": "none"}])
def test_defaults_are_not_named(choices: dict[str, Any], folder: Path) -> None:
    assert "no effect" not in installed(json.dumps(choices), folder)[1]
