"""The garbage collector of this process."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def pause_gc() -> None:
    """Collect no garbage until `resume_gc`: imported modules are none. A command that only computes ends without any collection."""
    gc.disable()


def resume_gc() -> None:
    """Collect garbage again, if `pause_gc` has stopped it, but never look at what has been imported until now."""
    if not gc.isenabled():
        gc.freeze()
        tune_gc()
        gc.enable()


def tune_gc() -> None:
    """Let the garbage collector look at new objects in small portions, and at all objects hardly ever.

    A portion stops every thread, also the one that answers reviews: 100,000 objects take 50 ms, and 15,000 take 10. Large lists are
    acyclic: with Python's own thresholds, collecting takes two thirds of the time of parsing them.
    """
    gc.set_threshold(5_000, 2, 50_000)


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect no garbage while the block runs, and never look at what exists at its end. Unchanged if no garbage is collected anyway.

    For what makes very many objects that stay, and no circles of them: the first plans of a process take an eighth less time.
    """
    if not gc.isenabled():
        yield
        return
    gc.collect(1)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def leave_to_exit() -> None:
    """Let the process end without a search for cycles in what exists, which would take a sixth of a short command's time."""
    gc.freeze()
