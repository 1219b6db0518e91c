"""Requests: what one operator has asked of the API server, by verb and resource, counted from the audit log."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tests.controlplane.audit import is_audited

WRITING: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
UNCOUNTED: Final = frozenset({"events", "leases"})
"""Resources whose writes are listed, but are not in the total: they are not part of a workload."""


class Request(NamedTuple):
    """A kind of request: `resource` includes the subresource, e.g. `pods/status`."""

    verb: str
    resource: str
    is_refused: bool

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{', refused' if self.is_refused else ''}"


@dataclass(frozen=True, slots=True)
class Requests:
    """How often each kind of request was made."""

    counts: Counter[Request] = field(default_factory=Counter)

    @property
    def writes(self) -> int:
        """How many writes there were, without Events and Leases; those that were refused are counted."""
        return sum(count for request, count in self._writes() if request.resource not in UNCOUNTED)

    @property
    def reads(self) -> int:
        """How many gets, lists and watches there were."""
        return sum(count for request, count in self.counts.items() if request.verb not in WRITING)

    @property
    def by_kind(self) -> dict[str, int]:
        """`VERB RESOURCE` -> how many such writes there were, the most frequent first."""
        return {str(request): count for request, count in sorted(self._writes(), key=lambda item: (-item[1], item[0]))}

    def _writes(self) -> list[tuple[Request, int]]:
        return [(request, count) for request, count in self.counts.items() if request.verb in WRITING]


def counted(lines: Iterable[bytes]) -> Requests:
    """The requests of the audited accounts in these lines: kubelets delete pods, too. Counted when answered, a watch when it begins."""
    counts: Counter[Request] = Counter()
    for line in lines:
        entry = json.loads(line)
        if entry["stage"] != ("ResponseStarted" if entry["verb"] == "watch" else "ResponseComplete") or not is_audited(entry):
            continue
        reference = entry.get("objectRef") or {}
        resource = "/".join(filter(None, (reference.get("resource", "-"), reference.get("subresource"))))
        counts[Request(entry["verb"], resource, entry.get("responseStatus", {}).get("code", 0) >= 400)] += 1
    return Requests(counts)


class AuditLog:
    """An audit log that is read as it grows."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0

    def take(self) -> Requests:
        """The requests since the last call; a line that is not complete is left for the next one."""
        if not self._path.exists():
            return Requests()
        with self._path.open("rb") as log:
            log.seek(self._read)
            content = log.read()
        complete = content[: content.rfind(b"\n") + 1]
        self._read += len(complete)
        return counted(complete.splitlines())
