"""Framework: the inference framework of a service, detected from its command."""

import re
from collections.abc import Sequence
from enum import StrEnum


class Framework(StrEnum):
    """The frameworks whose containers are rewritten for several nodes, and none."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"
    NONE = "noop"


WORKERS = frozenset({"worker", "prefill", "decode"})
"""The component types that run a framework; others are never rewritten."""

_PATTERNS = {
    framework: re.compile(rf"python[0-9.]*\s+[^|&;]*-m\s+[^|&;]*dynamo\.{framework}[^|&;]*")
    for framework in (Framework.VLLM, Framework.SGLANG, Framework.TRTLLM)
}


class FrameworkError(ValueError):
    """The framework of a service cannot be determined; the message says why."""


def framework_of(component_type: str, command: Sequence[str], args: Sequence[str], explicit: str) -> Framework:
    """The framework of a service: the one that its command starts, else the one that the graph names, else none.

    Raises `FrameworkError` if the command starts several, or another one than the graph names. With a name in the graph, several in the
    command are not an error.
    """
    if component_type.lower() not in WORKERS:
        return Framework.NONE
    text = " ".join((*command, *args))
    detected = [framework for framework, pattern in _PATTERNS.items() if pattern.search(text)]
    if len(detected) == 1 and explicit and explicit != detected[0]:
        raise FrameworkError(
            f'backend framework mismatch: detected "{detected[0]}" from command but explicitly configured as "{explicit}"'
        )
    if len(detected) == 1:
        return detected[0]
    if explicit:
        return Framework(explicit)
    if detected:
        raise FrameworkError(
            "could not determine backend framework: multiple backend frameworks detected from command: "
            f'[{" ".join(detected)}] in "{text}"'
        )
    return Framework.NONE
