"""What our processes have done to the objects of one namespace, as the audit log of the API server tells it.

A request that only tries something (`dryRun=All`), as a new template is tried before pods are replaced, has done nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.controlplane.audit import AuditLog, is_audited
from tests.controlplane.cluster import ControlPlane

ASIDE = ("events", "leases")
"""Resources whose writes do not count: Events, and the Lease."""


class Deeds:
    """The requests of the audited operator in a namespace, or those after another `Deeds`: `since` bytes of the log are left out."""

    def __init__(self, plane: ControlPlane, namespace: str, since: int = 0) -> None:
        log = AuditLog(plane, since, whoever=True)
        entries = [entry for entry in log.entries() if entry["objectRef"].get("namespace") == namespace]
        self._entries = [entry for entry in entries if is_audited(entry)]
        self._deleted_by_others = Counter(_name(entry) for entry in entries if not is_audited(entry) and _has_succeeded(entry))
        self.end = log.end
        """How many bytes of the log have been read."""

    @property
    def created(self) -> Counter[str]:
        """`pods web-0-a-x7` -> how often it was created successfully."""
        return Counter(_name(entry) for entry in self._done("create"))

    @property
    def deleted(self) -> Counter[str]:
        """The same for deletions that succeeded."""
        return Counter(_name(entry) for entry in self._done("delete"))

    @property
    def writes(self) -> Counter[str]:
        """`create pods` -> how often it was done, without Events and the Lease."""
        verbs = ("create", "update", "patch", "delete")
        done = (entry for verb in verbs for entry in self._done(verb))
        return Counter(f"{entry['verb']} {entry['objectRef']['resource']}" for entry in done)

    @property
    def total(self) -> int:
        """How many requests there were, whatever the answer, without those for the Lease."""
        return sum(entry["objectRef"]["resource"] != "leases" for entry in self._entries)

    @property
    def lists(self) -> int:
        """How many of them were lists, without those of kinds that the server does not serve: they are tried about once a minute."""
        return sum(entry["verb"] == "list" and entry["responseStatus"]["code"] != 404 for entry in self._entries)

    @property
    def refused(self) -> Counter[int]:
        """Status code -> how often the server answered a request with it, from 400 on."""
        return Counter(code for entry in self._entries if (code := int(entry["responseStatus"]["code"])) >= 400)

    @property
    def made_twice(self) -> Mapping[str, int]:
        """What we have created more often than it was deleted plus once.

        A pod on a node is deleted by us and then, when it has ended, by its kubelet: that is one deletion. Here it is kwok, which does not
        say which object it means, and may delete the next one of that name as well.
        """
        deleted = self.deleted | self._deleted_by_others
        return {name: number for name, number in self.created.items() if number > 1 + deleted[name]}

    def _done(self, verb: str) -> Iterator[Mapping[str, Any]]:
        for entry in self._entries:
            reference = entry["objectRef"]
            if entry["verb"] == verb and _has_succeeded(entry) and reference["resource"] not in ASIDE:
                if not (verb == "create" and reference.get("subresource")):
                    yield entry


def _has_succeeded(entry: Mapping[str, Any]) -> bool:
    return bool(entry["responseStatus"]["code"] < 300) and "dryRun=All" not in entry["requestURI"]


def _name(entry: Mapping[str, Any]) -> str:
    reference = entry["objectRef"]
    return f"{reference['resource']} {reference.get('name', '')}"
