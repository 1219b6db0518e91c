"""Script: what annotations on a pod ask its simulated kubelet to play.

| annotation                           | value                | meaning                                                                   |
|--------------------------------------|----------------------|---------------------------------------------------------------------------|
| `sandbox.grove.io/init-after`        | a duration           | each init container takes that long                                       |
| `sandbox.grove.io/start-after`       | a duration           | the containers are created that long after the last init container        |
| `sandbox.grove.io/ready-after`       | a duration           | each container becomes ready that long after its start                    |
| `sandbox.grove.io/terminate-after`   | a duration           | a deletion is obeyed after that long, or when the grace period ends       |
| `sandbox.grove.io/fail`              | `crash[@D]`          | the containers exit with code 1 each time, D after their start            |
|                                      | `exit:N[@D]`         | the containers exit with code N; `restartPolicy` says what follows        |
|                                      | `evict[@D]`          | the pod is evicted D after its start: phase Failed, reason Evicted        |
|                                      | `unready[@D]`        | the containers are not ready any more, D after their start                |
|                                      | `never-ready`        | the same as `unready`                                                     |
|                                      | `image-pull`         | the images cannot be pulled                                               |

Durations are Go's (`5s`, `1m30s`); pods' times are kept in whole seconds. Annotations are read anew at every look, so adding
one to a running pod plays it from now on, and removing one ends it. One that cannot be read keeps a pod from starting, and says so.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from engine import duration
from providers.sandbox.actors.body import Body, annotations_of

PREFIX: Final = "sandbox.grove.io/"
FAIL: Final = PREFIX + "fail"

ZERO: Final = timedelta()
EXIT, EVICT, UNREADY, IMAGE_PULL = "exit", "evict", "unready", "image-pull"

_FAIL: Final = re.compile(r"(crash|exit:(?P<code>\d{1,3})|evict|unready|never-ready|image-pull)(?:@(?P<after>.{1,32}))?")
_ACTS: Final = {"crash": EXIT, "never-ready": UNREADY}
_UNTIMED: Final = frozenset({"never-ready", "image-pull"})


@dataclass(frozen=True, slots=True)
class Script:
    """The annotations, read."""

    init_after: timedelta = ZERO
    start_after: timedelta = ZERO
    ready_after: timedelta = ZERO
    terminate_after: timedelta | None = None
    act: str = ""
    """What fails: one of the four words above, or nothing."""
    after: timedelta = ZERO
    exit_code: int = 1
    mistake: str = ""
    """Which annotation cannot be read, and why."""


def script_of(pod: Body) -> Script:
    """What the pod's annotations ask for."""
    asked = {key: value for key, value in annotations_of(pod).items() if key.startswith(PREFIX)}
    if not asked:
        return PLAIN
    try:
        return Script(
            init_after=_span(asked, "init-after") or ZERO,
            start_after=_span(asked, "start-after") or ZERO,
            ready_after=_span(asked, "ready-after") or ZERO,
            terminate_after=_span(asked, "terminate-after"),
            **_failure(asked.get(FAIL)),
        )
    except ValueError as error:
        return Script(mistake=str(error))


PLAIN: Final = Script()


def _span(asked: Mapping[str, str], name: str) -> timedelta | None:
    text = asked.get(PREFIX + name)
    if text is None:
        return None
    try:
        return max(duration.parse(text), ZERO)
    except ValueError as error:
        raise ValueError(f"{PREFIX}{name}: {error}") from None


def _failure(text: str | None) -> dict[str, Any]:
    if not text:
        return {}
    found = _FAIL.fullmatch(text)
    if found is None or (found["after"] and found[1] in _UNTIMED):
        raise ValueError(f"{FAIL}: not one of crash[@D], exit:N[@D], evict[@D], unready[@D], never-ready, image-pull")
    word = found[1].partition(":")[0]
    after = _span({FAIL: found["after"]}, "fail") if found["after"] else ZERO
    return {"act": _ACTS.get(word, word), "after": after, "exit_code": min(int(found["code"] or 1), 255)}
