"""Counting: how often functions of the product are called, in this thread and in those that are started meanwhile."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from inspect import signature
from types import CodeType, FrameType, FunctionType
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
    """How often each function is called within the block, by its name. Only these functions take longer for it."""
    counts: Counter[str] = Counter()
    others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}

    def note(name: str) -> None:
        if threading.get_ident() not in others:
            counts[name] += 1

    with ExitStack() as changes:
        for name, function in functions.items():
            changes.enter_context(_noted(function, partial(note, name)))
        yield counts


@contextmanager
def _noted(function: Any, note: Callable[[], None]) -> Iterator[None]:
    """Call `note` before each call of the function, whoever has a reference to it: its code is another one meanwhile."""
    code, defaults, known = function.__code__, function.__kwdefaults__, signature(function)
    same = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    same.__kwdefaults__ = defaults

    def first_noted(*arguments: Any, **options: Any) -> Any:
        note()
        return same(*arguments, **options)

    function.__code__ = _calling.__code__.replace(co_freevars=code.co_freevars)
    function.__kwdefaults__, function.__signature__ = {"instead": first_noted}, known
    try:
        yield
    finally:
        function.__code__, function.__kwdefaults__ = code, defaults
        del function.__signature__


def _calling(*arguments: Any, instead: Callable[..., Any], **options: Any) -> Any:
    return instead(*arguments, **options)


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
