"""Script: what annotations ask for, and what is said of those that ask for nothing sensible."""

from datetime import timedelta

import pytest

from providers.sandbox.actors.script import Script, script_of
from tests.providers.sandbox.actors.manifests import pod


def script(**annotations: str) -> Script:
    return script_of(pod("p", annotations={f"sandbox.grove.io/{name.replace('_', '-')}": text for name, text in annotations.items()}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("crash", Script(act="exit", exit_code=1)),
        ("crash@5s", Script(act="exit", exit_code=1, after=timedelta(seconds=5))),
        ("exit:0", Script(act="exit", exit_code=0)),
        ("exit:137@1m", Script(act="exit", exit_code=137, after=timedelta(minutes=1))),
        ("evict@10s", Script(act="evict", after=timedelta(seconds=10))),
        ("unready@10s", Script(act="unready", after=timedelta(seconds=10))),
        ("never-ready", Script(act="unready")),
        ("image-pull", Script(act="image-pull")),
    ],
)
def test_a_failure_is_read_from_its_annotation(text: str, expected: Script) -> None:
    assert script(fail=text) == expected


def test_delays_are_read_as_go_writes_them() -> None:
    expected = Script(
        init_after=timedelta(seconds=1),
        start_after=timedelta(seconds=90),
        ready_after=timedelta(milliseconds=500),
        terminate_after=timedelta(),
    )

    assert script(init_after="1s", start_after="1m30s", ready_after="500ms", terminate_after="0") == expected


@pytest.mark.parametrize("text", ["explode", "crash@soon", "exit:x", "never-ready@5s", "crash@", "exit:1@5"])
def test_a_failure_that_cannot_be_read_is_a_mistake_that_names_the_annotation(text: str) -> None:
    assert "sandbox.grove.io/fail" in script(fail=text).mistake


def test_annotations_of_others_ask_for_nothing() -> None:
    assert script_of(pod("p", annotations={"example.com/fail": "crash"})) == Script()
