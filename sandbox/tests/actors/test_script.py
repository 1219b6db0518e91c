"""Script: the parsed annotations, and the errors of those that cannot be parsed."""

from datetime import timedelta

import pytest

from grove_sandbox.actors.script import Script, script_of
from sandbox.tests.actors.manifests import pod


def script(**annotations: str) -> Script:
    return script_of(pod("p", annotations={f"sandbox.grove.io/{name.replace('_', '-')}": text for name, text in annotations.items()}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("crash", Script(failure="exit", exit_code=1)),
        ("crash@5s", Script(failure="exit", exit_code=1, after=timedelta(seconds=5))),
        ("exit:0", Script(failure="exit", exit_code=0)),
        ("exit:137@1m", Script(failure="exit", exit_code=137, after=timedelta(minutes=1))),
        ("evict@10s", Script(failure="evict", after=timedelta(seconds=10))),
        ("unready@10s", Script(failure="unready", after=timedelta(seconds=10))),
        ("never-ready", Script(failure="unready")),
        ("image-pull", Script(failure="image-pull")),
    ],
)
def test_a_failure_is_parsed_from_its_annotation(text: str, expected: Script) -> None:
    assert script(fail=text) == expected


def test_delays_are_durations_in_gos_notation() -> None:
    expected = Script(
        init_after=timedelta(seconds=1),
        start_after=timedelta(seconds=90),
        ready_after=timedelta(milliseconds=500),
        terminate_after=timedelta(),
    )

    assert script(init_after="1s", start_after="1m30s", ready_after="500ms", terminate_after="0") == expected


@pytest.mark.parametrize("text", ["explode", "crash@soon", "exit:x", "never-ready@5s", "crash@", "exit:1@5"])
def test_a_failure_that_cannot_be_parsed_is_an_error_that_names_the_annotation(text: str) -> None:
    assert "sandbox.grove.io/fail" in script(fail=text).error


def test_annotations_of_others_are_ignored() -> None:
    assert script_of(pod("p", annotations={"example.com/fail": "crash"})) == Script()
