"""The fields of the configuration file are those of its page, and the fields without effect are found."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from resources.settings import valid_settings
from resources.settings_fields import (
    NEEDS_RESTART,
    REQUIRED,
    VALUES_WITHOUT_EFFECT,
    WITHOUT_EFFECT,
    changed_fields,
    is_in,
    known_fields,
    without_effect,
)

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
ROW = re.compile(r"^\| `(?P<field>[\w.\[\]]+)` \| (?P<default>[^|]+) \| (?P<meaning>[^|]+) \| (?P<effect>[^|]+) \|$", re.MULTILINE)
ROWS = [match.groupdict() for match in ROW.finditer(PAGE.read_text("utf-8"))]


def written(default: Any) -> str:
    """A default as the page writes it."""
    if default is REQUIRED:
        return "required"
    return f"`{default}`" if isinstance(default, str) and default else f"`{json.dumps(default)}`"


def has_effect(field: str) -> bool:
    """Whether no section without effect contains the field."""
    return not any(f"{field}.".startswith(f"{section}.") for section in WITHOUT_EFFECT)


def test_the_page_lists_every_field_once_with_its_default() -> None:
    assert [row["field"] for row in ROWS] == list(dict.fromkeys(row["field"] for row in ROWS))
    assert {row["field"]: row["default"] for row in ROWS} == {field: written(default) for field, default in known_fields()}


def test_the_page_says_which_fields_have_an_effect_and_when_a_change_takes_effect() -> None:
    def expected(field: str) -> str:
        if field in ("apiVersion", "kind"):
            return "yes"
        if not has_effect(field):
            return "no"
        return "restart" if is_in(field, NEEDS_RESTART) else "live"

    effects = {row["field"]: re.split(r"\W", row["effect"])[0] for row in ROWS}
    assert effects == {field: expected(field) for field, _ in known_fields()}


def test_fields_that_differ_are_named_once_and_those_without_effect_are_not() -> None:
    old = valid_settings({"network": {"autoMNNVLEnabled": False}, "runtimeClientConnection": {"qps": 5}})
    new = valid_settings(
        {
            "network": {"autoMNNVLEnabled": True},
            "scheduler": {"profiles": [{"name": "kai-scheduler"}, {"name": "volcano"}]},
            "dynamo": {"ingress": {"hostSuffix": "example.com"}},
        }
    )

    assert changed_fields(old, old) == ()
    assert changed_fields(old, new) == ("dynamo.ingress.hostSuffix", "network.autoMNNVLEnabled", "scheduler.profiles[].name")


def test_every_field_that_is_said_to_have_no_effect_exists() -> None:
    fields = {field for field, _ in known_fields()}

    assert [section for section in WITHOUT_EFFECT if not any(f"{field}.".startswith(f"{section}.") for field in fields)] == []
    assert {field for field, _ in VALUES_WITHOUT_EFFECT} <= fields


@pytest.mark.parametrize(
    ("config", "paths"),
    [
        ({}, []),
        ({"network": {"autoMNNVLEnabled": True}, "logLevel": "debug", "leaderElection": {"enabled": False}}, []),
        ({"debugging": {"pprofBindPort": 1}, "server": {"webhooks": {}}}, [("debugging", "pprofBindPort")]),
        ({"leaderElection": {"resourceLock": "leases"}}, [("leaderElection", "resourceLock")]),
        ({"debugging": {"enableProfiling": None}, "server": None}, []),
        ({"logLevel": "error"}, [("logLevel",)]),
        ({"scheduler": {"profiles": [{"name": "x"}, {"name": "y", "config": {"a": 1}}]}}, [("scheduler", "profiles", 1, "config")]),
        ({"logLevel": ["error"], "server": [], "debugging": "all", "controllers": 7}, []),
        ({"unknown": {"port": 1}}, []),
        ("text", []),
    ],
)
def test_fields_without_effect_are_found_where_they_are_set(config: Any, paths: list[tuple[str | int, ...]]) -> None:
    assert [path for path, _ in without_effect(config)] == paths
