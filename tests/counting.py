"""Counting: how often functions of the product are called, in this thread and in those that are started meanwhile."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from resources.admission import computable_rules, graph_rules
from resources.model import template
from resources.schema import pod_spec_form, pod_spec_rules

READING: Mapping[str, Callable[..., Any]] = {
    "parsed": pod_spec_form._shaped,
    "walked": pod_spec_rules.findings,
    "judged": computable_rules.issues,
}
"""What reading a set costs: its pod specs are parsed and walked, and the set is judged."""
HASHING: Mapping[str, Callable[..., Any]] = {"hashed": template.hashed_content}
READING_GRAPHS: Mapping[str, Callable[..., Any]] = {
    "services parsed": pod_spec_form._shaped_extra,
    "services judged": graph_rules._service,
    **READING,
    **HASHING,
}
"""What reading a graph costs: its services are parsed and judged, and its set is read; its pods are hashed."""


@contextmanager
def counted(functions: Mapping[str, Callable[..., Any]] = READING) -> Iterator[Counter[str]]:
    """How often each function is called within the block, by its name. Of a generator each start and each resumption counts."""
    names: dict[CodeType, str] = {function.__code__: name for name, function in functions.items()}
    counts: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and (name := names.get(frame.f_code)):
            counts[name] += 1

    sys.setprofile(note)
    threading.setprofile(note)
    try:
        yield counts
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@contextmanager
def traced(functions: Mapping[str, Callable[..., Any]]) -> Iterator[list[str]]:
    """The names of these functions in the order in which they are called, or resumed, for the first time within the block."""
    names: dict[CodeType, str] = {function.__code__: name for name, function in functions.items()}
    called: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and (name := names.pop(frame.f_code, None)):
            called.append(name)

    sys.setprofile(note)
    threading.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def read(revisions: int, pods: int, *, stored: int = 0) -> dict[str, int]:
    """What is counted if this many revisions of a set with so many pod specs are read once each.

    `stored`: revisions that others are compared with: they are parsed, and not judged.
    """
    return {"parsed": (revisions + stored) * pods, "walked": revisions * pods, "judged": revisions}


def read_graph(services: int, pods: int, *, stored: int = 0) -> dict[str, int]:
    """What is counted if one revision of a graph is read once, and its set with so many pod specs too.

    `stored`: revisions that it is compared with: they and their sets are parsed, and not judged.
    """
    of_set = {"parsed": (1 + stored) * pods, "walked": pods, "judged": 1, "hashed": pods}
    return {"services parsed": (1 + stored) * services, "services judged": services, **of_set}
