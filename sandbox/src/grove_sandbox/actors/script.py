"""Script: the annotations on a pod that tell its simulated kubelet how to run it.

| annotation                           | value                | meaning                                                                   |
|--------------------------------------|----------------------|---------------------------------------------------------------------------|
| `sandbox.grove.io/init-after`        | a duration           | each init container takes that long                                       |
| `sandbox.grove.io/start-after`       | a duration           | the containers are created that long after the last init container        |
| `sandbox.grove.io/ready-after`       | a duration           | each container becomes ready that long after its start                    |
| `sandbox.grove.io/terminate-after`   | a duration           | a deleted pod ends after that long, or when its grace period ends         |
| `sandbox.grove.io/fail`              | `crash[@D]`          | the containers exit with code 1 each time, D after their start            |
|                                      | `exit:N[@D]`         | the containers exit with code N; `restartPolicy` applies                  |
|                                      | `evict[@D]`          | the pod is evicted D after its start: phase Failed, reason Evicted        |
|                                      | `unready[@D]`        | the containers become unready D after their start                         |
|                                      | `never-ready`        | the same as `unready`                                                     |
|                                      | `image-pull`         | the images cannot be pulled                                               |

Durations are Go's (`5s`, `1m30s`); times in statuses are whole seconds. Annotations can be added to and removed from a running pod.
One that cannot be parsed keeps the containers from being created, and the error is their waiting message.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from grove_sandbox.actors.body import Body, annotations_of
from grove_sandbox.product import duration

PREFIX: Final = "sandbox.grove.io/"
FAIL: Final = PREFIX + "fail"

ZERO: Final = timedelta()
EXIT, EVICT, UNREADY, IMAGE_PULL = "exit", "evict", "unready", "image-pull"

_FAIL: Final = re.compile(r"(crash|exit:(?P<code>\d{1,3})|evict|unready|never-ready|image-pull)(?:@(?P<after>.{1,32}))?")
_ALIASES: Final = {"crash": EXIT, "never-ready": UNREADY}
_UNTIMED: Final = frozenset({"never-ready", "image-pull"})


class Script(Struct, frozen=True):
    """The parsed annotations."""

    init_after: timedelta = ZERO
    start_after: timedelta = ZERO
    ready_after: timedelta = ZERO
    terminate_after: timedelta | None = None
    failure: str = ""
    """One of the four failures above; empty: none."""
    after: timedelta = ZERO
    exit_code: int = 1
    error: str = ""
    """Which annotation cannot be parsed, and why."""


def script_of(pod: Body) -> Script:
    """The script in the pod's annotations."""
    annotations = {key: value for key, value in annotations_of(pod).items() if key.startswith(PREFIX)}
    if not annotations:
        return NO_SCRIPT
    try:
        return Script(
            init_after=_duration(annotations, "init-after") or ZERO,
            start_after=_duration(annotations, "start-after") or ZERO,
            ready_after=_duration(annotations, "ready-after") or ZERO,
            terminate_after=_duration(annotations, "terminate-after"),
            **_failure(annotations.get(FAIL)),
        )
    except ValueError as error:
        return Script(error=str(error))


NO_SCRIPT: Final = Script()


def _duration(annotations: Mapping[str, str], name: str) -> timedelta | None:
    text = annotations.get(PREFIX + name)
    if text is None:
        return None
    try:
        return max(duration.parse(text), ZERO)
    except ValueError as error:
        raise ValueError(f"{PREFIX}{name}: {error}") from None


def _failure(text: str | None) -> dict[str, Any]:
    if not text:
        return {}
    match = _FAIL.fullmatch(text)
    if match is None or (match["after"] and match[1] in _UNTIMED):
        raise ValueError(f"{FAIL}: not one of crash[@D], exit:N[@D], evict[@D], unready[@D], never-ready, image-pull")
    word = match[1].partition(":")[0]
    after = _duration({FAIL: match["after"]}, "fail") if match["after"] else ZERO
    return {"failure": _ALIASES.get(word, word), "after": after, "exit_code": min(int(match["code"] or 1), 255)}
