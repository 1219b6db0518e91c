"""Audit: what accounts have requested of a control plane, and whether it was allowed."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from resources.install.permissions import Permission
from tests.controlplane.cluster import AUDITED, ControlPlane


class Right(NamedTuple):
    """One verb on one resource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


def rights(needed: Iterable[Permission]) -> set[Right]:
    """Every verb of these permissions."""
    return {Right(each.kind.group, each.resource, verb) for each in needed for verb in each.verbs}


@dataclass(slots=True)
class AuditLog:
    """The entries of the audit log about objects, each of which is returned once. A line that is still being written comes later.

    They are those of the audited accounts, or with `whoever` also deletions of pods by others.
    """

    plane: ControlPlane
    end: int = 0
    """How many bytes of it have been read."""
    whoever: bool = False

    def entries(self) -> list[dict[str, Any]]:
        """What the log has more."""
        if not self.plane.audit_log.exists():
            return []
        with self.plane.audit_log.open("rb") as log:
            log.seek(self.end)
            content = log.read()
        complete = content[: content.rfind(b"\n") + 1]
        self.end += len(complete)
        entries = [entry for entry in map(json.loads, complete.splitlines()) if "objectRef" in entry]
        return [entry for entry in entries if self.whoever or is_audited(entry)]


def is_audited(entry: Mapping[str, Any]) -> bool:
    """Whether an audited account has requested it."""
    return AUDITED in entry["user"].get("groups", ())


@dataclass(slots=True)
class Requests:
    """What accounts have requested, from the audit log."""

    plane: ControlPlane
    used: dict[str, set[Right]] = field(default_factory=lambda: defaultdict(set))
    """User -> what it was allowed."""
    denied: dict[str, set[Right]] = field(default_factory=lambda: defaultdict(set))
    """User -> what it was not allowed."""
    log: AuditLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = AuditLog(self.plane)

    def read(self) -> "Requests":
        """Read what the log has more."""
        for entry in self.log.entries():
            self._note(entry)
        return self

    def _note(self, entry: dict[str, Any]) -> None:
        reference = entry["objectRef"]
        resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
        requests = self.denied if _lacks_right(entry) else self.used
        requests[entry["user"]["username"]].add(Right(reference.get("apiGroup", ""), resource, entry["verb"]))


def _lacks_right(entry: dict[str, Any]) -> bool:
    """Whether this request was refused because of a right that the account lacks.

    Pod Security, quotas and webhooks answer 403 too, whatever rights the account has; of admission only the plug-in that
    asks for the right to set an owner's finalizers judges rights.
    """
    status = entry.get("responseStatus", {})
    if status.get("code") != 403:
        return False
    is_forbidden = entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    return is_forbidden or "you can't set finalizers on" in status.get("message", "") or "not currently held" in status.get("message", "")
