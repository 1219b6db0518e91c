"""Facts: what a live pod tells that anything here depends on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.conditions import find
from engine.observed import Live
from resources.base import labels


@dataclass(frozen=True, slots=True, eq=False)
class PodFacts:
    """A live pod, as far as it matters."""

    live: Live
    seat: int | None
    """Its index in the clique; None when neither label nor hostname tells one."""
    phase: str
    node: str
    ready: bool
    scheduled: bool
    gated: bool
    """Bears our scheduling gate."""
    held_at_gate: bool
    """The cluster says that some gate keeps it from being scheduled."""
    failing: bool
    """Not ready, and a container of it has ended badly before."""
    unready: bool
    """Not ready, although a container of it has started."""
    restarts: bool
    """Its restart policy is Always."""
    trouble: str
    """Why it is not scheduled, or why a container waits, in the cluster's words."""

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.live.id.name

    @property
    def going(self) -> bool:
        """Whether it is being deleted."""
        return self.live.deleting_since is not None

    @property
    def spent(self) -> bool:
        """Whether it has ended and will not run again: another takes its seat."""
        return self.phase == "Failed" or (self.phase == "Succeeded" and self.restarts)

    @property
    def serving(self) -> bool:
        """Whether it holds its seat."""
        return not self.going and not self.spent

    @property
    def hash(self) -> str:
        """The hash of the template it was made from."""
        return self.live.labels.get(labels.TEMPLATE_HASH, "")


def facts_of(live: Live) -> PodFacts:
    """The facts of a live pod."""
    body = live.body
    spec: Mapping[str, Any] = body.get("spec") or {}
    status: Mapping[str, Any] = body.get("status") or {}
    conditions = status.get("conditions") or ()
    scheduled = find(conditions, "PodScheduled") or {}
    ready = (find(conditions, "Ready") or {}).get("status") == "True"
    containers = list(status.get("containerStatuses") or ())
    everything = [*(status.get("initContainerStatuses") or ()), *containers]
    failing = not ready and any(_ended_badly(container) for container in everything)
    return PodFacts(
        live=live,
        seat=_seat(live, spec),
        phase=status.get("phase", "Pending"),
        node=spec.get("nodeName", ""),
        ready=ready,
        scheduled=scheduled.get("status") == "True",
        gated=any(gate.get("name") == labels.GATE for gate in spec.get("schedulingGates") or ()),
        held_at_gate=scheduled.get("status") == "False" and scheduled.get("reason") == "SchedulingGated",
        failing=failing,
        unready=not ready and not failing and any(one.get("started") and not one.get("ready") for one in containers),
        restarts=spec.get("restartPolicy", "Always") == "Always",
        trouble=_trouble(scheduled, everything),
    )


def _seat(live: Live, spec: Mapping[str, Any]) -> int | None:
    told = live.labels.get(labels.POD_INDEX) or str(spec.get("hostname", "")).rpartition("-")[2]
    return int(told) if told.isascii() and told.isdigit() else None


def _ended_badly(container: Mapping[str, Any]) -> bool:
    last = (container.get("lastState") or {}).get("terminated") or {}
    return bool(last.get("exitCode"))


def _trouble(scheduled: Mapping[str, Any], containers: Iterable[Mapping[str, Any]]) -> str:
    if scheduled.get("status") == "False":
        return ": ".join(text for text in (scheduled.get("reason", ""), scheduled.get("message", "")) if text)
    for container in containers:
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason", "")
        if reason and reason not in ("ContainerCreating", "PodInitializing"):
            return f"{container.get('name')} {reason}"
    return ""
