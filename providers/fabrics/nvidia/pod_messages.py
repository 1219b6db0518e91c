"""Pod messages: what the scheduler and the kubelet say of a pod in words alone, as values. Only this file reads their words."""

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Final


class SchedulingFailure(Enum):
    """Why the scheduler finds no node for a pod."""

    AFFINITY = auto()
    """A required affinity to other pods excludes nodes."""
    CLAIMS = auto()
    """Some node cannot satisfy all claims."""


class PrepareFailure(Enum):
    """Why the kubelet cannot prepare a claim of a pod."""

    OTHER_DOMAIN = auto()
    """The claim refers to a domain that does not exist, or that is in another namespace."""
    NO_RESULT = auto()
    """The driver has answered without a result for the claim."""
    UNKNOWN = auto()


SCHEDULING: Final[Mapping[str, SchedulingFailure]] = {
    "didn't match pod affinity rules": SchedulingFailure.AFFINITY,
    "cannot allocate all claims": SchedulingFailure.CLAIMS,
}
PREPARING: Final[Mapping[str, PrepareFailure]] = {
    "namespace is different": PrepareFailure.OTHER_DOMAIN,
    "not found": PrepareFailure.OTHER_DOMAIN,
    "skipped": PrepareFailure.NO_RESULT,
    "left out": PrepareFailure.NO_RESULT,
}


def scheduling_failures(messages: Iterable[str]) -> frozenset[SchedulingFailure]:
    """The failures that messages of the scheduler name, as far as they are known."""
    return frozenset(failure for message in messages for words, failure in SCHEDULING.items() if words in message)


def prepare_failures(messages: Iterable[str]) -> frozenset[PrepareFailure]:
    """The failures that messages of the kubelet name; `UNKNOWN` for a message that names none of them."""
    return frozenset(failure for message in messages for failure in _failures_in(message))


def _failures_in(message: str) -> frozenset[PrepareFailure]:
    return frozenset(failure for words, failure in PREPARING.items() if words in message) or frozenset({PrepareFailure.UNKNOWN})
