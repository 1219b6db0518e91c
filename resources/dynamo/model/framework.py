"""Framework: the inference framework of a service, detected from its command."""

import re
from collections.abc import Sequence
from enum import StrEnum

WORKERS = frozenset({"worker", "prefill", "decode"})
"""The component types that run a framework. In the first form of pods, others are never rewritten."""
SUB_TYPES = ("prefill", "decode")
"""The types of v1beta1 that are workers with a sub-component type in v1alpha1."""
OTHERS = frozenset({"frontend", "planner", "epp"})
"""The component types that run something else, although their images may be those of a framework."""
_SEGMENT = re.compile(r"[^|&;]+")
"""A part of a shell line between two operators."""
_INTERPRETER = re.compile(r"python[0-9.]*\s")
_IN_IMAGE = {"vllm": "vllm", "sglang": "sglang", "trtllm": "trtllm", "tensorrtllm": "trtllm", "tensorrt-llm": "trtllm"}
"""How names of images spell a framework -> the framework."""
_IMAGE_WORD = re.compile(r"(?<![a-z0-9])(?:vllm|sglang|trtllm|tensorrt-?llm)(?![a-z0-9])")
_MODULE_OPTION = re.compile(r"-m\s")


class Framework(StrEnum):
    """The frameworks whose containers are rewritten for several nodes, and none."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"
    NONE = "noop"


_MODULES = {framework: f"dynamo.{framework}" for framework in (Framework.VLLM, Framework.SGLANG, Framework.TRTLLM)}


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
    modules = [rest for segment in _SEGMENT.findall(text) if (rest := _behind_module_option(segment))]
    detected = [framework for framework, module in _MODULES.items() if any(module in rest for rest in modules)]
    if len(detected) == 1 and explicit and explicit != detected[0]:
        raise FrameworkError(f'backend framework mismatch: detected "{detected[0]}" from command but explicitly configured as "{explicit}"')
    if len(detected) == 1:
        return detected[0]
    if explicit:
        return Framework(explicit)
    if detected:
        raise FrameworkError(
            f'could not determine backend framework: multiple backend frameworks detected from command: [{" ".join(detected)}] in "{text}"'
        )
    return Framework.NONE


def distributed_framework_of(component_type: str, command: Sequence[str], args: Sequence[str], explicit: str, image: str) -> Framework:
    """The framework of a service on several nodes, whatever its type: the one that its command starts, else the one that the graph names,
    else the one that its image is named after. A frontend or a planner has only the one that its command starts.

    Raises `FrameworkError` as `framework_of` does.
    """
    is_other = component_type.lower() in OTHERS
    framework = framework_of("worker", command, args, "" if is_other else explicit)
    return framework if is_other or framework is not Framework.NONE else framework_of_image(image)


def framework_of_image(image: str) -> Framework:
    """The framework that the name of an image contains as a word, e.g. `vllm-runtime`; none if it contains several."""
    named = {_IN_IMAGE[word] for word in _IMAGE_WORD.findall(image.partition("@")[0].rpartition("/")[2].partition(":")[0].lower())}
    return Framework(named.pop()) if len(named) == 1 else Framework.NONE


def _behind_module_option(segment: str) -> str:
    """What follows the first `-m` of the first Python interpreter in a part of a shell line; empty if there is none.

    Each of them is searched once, so that the time is proportional to the length of the text.
    """
    interpreter = _INTERPRETER.search(segment)
    option = _MODULE_OPTION.search(segment, interpreter.end()) if interpreter else None
    return segment[option.end() :] if option else ""
