"""Forks: what a second API has of the first one, and that neither changes the other."""

import pytest

from grove_sandbox.api.request import Selection
from grove_sandbox.api.verbs import Api
from grove_sandbox.clock import VirtualClock
from grove_sandbox.types.status import StatusError
from sandbox.tests.in_memory import CONFIG, CRD, TOY, about, config, fresh, toy, toys


def names(api: Api) -> list[str]:
    """The names of all config maps."""
    return [item.body["metadata"]["name"] for item in api.list(about(api, CONFIG)).items]


def test_a_fork_has_the_objects_and_kinds_and_neither_api_changes_the_other() -> None:
    first = fresh()
    first.create(about(first, CRD), toys())
    first.create(about(first, CONFIG), config("a"))
    fork = first.fork(VirtualClock())

    first.create(about(first, CONFIG), config("b"))
    fork.delete(about(fork, CONFIG, "a"))
    fork.delete(about(fork, CRD, "toys.example.com"))
    first.create(about(first, TOY), toy("x"))

    assert (names(first), names(fork)) == (["a", "b"], [])
    with pytest.raises(StatusError):
        about(fork, TOY)


def test_a_fork_makes_the_same_uids_and_revisions_as_the_first_one() -> None:
    first = fresh()
    fork = first.fork(VirtualClock())

    made = [api.create(about(api, CONFIG), config("a")).body["metadata"] for api in (first, fork)]

    assert made[0] == made[1]


def test_a_watch_of_a_fork_begins_at_a_revision_of_the_first_one() -> None:
    first = fresh()
    revision = first.revision
    first.create(about(first, CONFIG), config("a"))
    fork = first.fork(VirtualClock())
    fork.create(about(fork, CONFIG), config("b"))

    watch = fork.watch(about(fork, CONFIG), Selection(revision=revision))

    assert [event.body["metadata"]["name"] for event in watch.pending()] == ["a", "b"]
