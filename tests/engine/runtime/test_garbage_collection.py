"""The garbage collector: off while modules are imported, and on while a command works."""

import gc
from collections.abc import Iterator

import pytest

from engine.runtime.garbage_collection import pause_gc, resume_gc, without_collections


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Whatever a test does to the collector, later ones find it as it was."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.enable()


def test_what_existed_before_it_resumes_is_never_looked_at() -> None:
    pause_gc()
    assert not gc.isenabled()
    before = gc.get_freeze_count()

    resume_gc()

    assert gc.isenabled()
    assert gc.get_freeze_count() > before


def test_a_collector_that_was_not_paused_stays_as_it_is() -> None:
    gc.enable()
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()

    resume_gc()

    assert (thresholds, frozen) == (gc.get_threshold(), gc.get_freeze_count())


def test_what_is_made_without_collections_is_never_looked_at() -> None:
    gc.enable()
    before = gc.get_freeze_count()

    with without_collections():
        assert not gc.isenabled()
        made: list[list[int]] = [[] for _ in range(1000)]

    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(made)


def test_a_collector_that_is_paused_stays_paused() -> None:
    pause_gc()
    frozen = gc.get_freeze_count()

    with without_collections():
        pass

    assert (gc.isenabled(), gc.get_freeze_count()) == (False, frozen)
