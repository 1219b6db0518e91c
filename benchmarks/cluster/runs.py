"""Runs: the phases of each workload, one after the other, for one subject on one fresh control plane."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from benchmarks.cluster.census import AVAILABLE, GATED, READY, UPDATED, Census, Condition, image
from benchmarks.cluster.figures import Figures
from benchmarks.cluster.profile import Profile
from benchmarks.cluster.requests import AuditLog
from benchmarks.cluster.subjects import Operator, Subject
from benchmarks.cluster.usage import until_idle, usage
from benchmarks.cluster.workloads import NEW_IMAGE, Workload

LARGE, SMALL = 500, 25
"""Replicas that b2 is scaled to, and around which it churns."""
FLUSH: Final = 1.5
"""Seconds after which the audit log has everything."""
REST: Final = 30.0
"""Seconds for which an idle phase lasts."""


@dataclass(slots=True)
class Run:
    """One workload under one subject."""

    workload: Workload
    subject: Subject
    census: Census
    audit: AuditLog
    profile: Profile | None = None
    _cpu: float = field(default=0.0, init=False)

    def begin(self) -> None:
        """Forget what has been used and requested so far."""
        time.sleep(FLUSH)
        self.audit.take()
        self._cpu = usage(self.subject.pid).cpu

    def phases(self) -> Iterator[Figures]:
        """All phases of the workload; each is measured when the next one is asked for."""
        self.begin()
        yield self._up()
        yield from PHASES.get(self.workload.name, no_phases)(self)
        yield self._delete()

    def wait(self, since: float, condition: Condition, limit: float = 600.0) -> float | None:
        """Like `Census.wait`. Raises `RuntimeError` if the subject ends meanwhile."""
        deadline = time.monotonic() + limit
        while (seconds := self.census.wait(since, condition, min(2.0, max(0.0, deadline - time.monotonic())))) is None:
            if self.subject.has_ended:
                raise RuntimeError(f"{self.subject.name} has ended; see its log")
            if time.monotonic() >= deadline:
                break
        return seconds

    def measured(self, phase: str, since: float, seconds: Mapping[str, float | None], counts: Mapping[str, int] | None = None) -> Figures:
        """What has been used and requested since the last phase; `since`: the monotonic time at which this one began."""
        until = since + (list(seconds.values())[-1] or 0.0) if seconds else time.monotonic()
        time.sleep(FLUSH)
        requests, used = self.audit.take(), usage(self.subject.pid)
        cpu, self._cpu = used.cpu - self._cpu, used.cpu
        return Figures(
            self.workload.name,
            self.subject.name,
            phase,
            seconds,
            requests.writes,
            requests.by_kind,
            requests.reads,
            round(cpu, 2),
            round(used.peak_mib, 1),
            counts or {},
            self.profile.shares(since, until) if self.profile is not None else {},
        )

    def _up(self) -> Figures:
        workload, wait = self.workload, self.wait
        pods, since = workload.pod_count, time.monotonic()
        self.subject.up()
        seconds = {
            "created": wait(since, lambda counts: counts["pods"] >= pods),
            "ungated": wait(since, lambda counts: counts["pods"] == pods and not counts[GATED]),
            "ready": wait(since, all_ready(pods)),
        }
        counts = {}
        if self.subject.is_operator:
            available = wait(since, lambda counts: counts[AVAILABLE] == workload.sets, 120)
            time.sleep(3)
            counts = {resource: self.census.counts[resource] for resource in workload.expected()}
            return self.measured("up", since, {"available": available, **seconds}, counts)
        return self.measured("up", since, seconds)

    def scaled(self, phase: str, old: int, new: int, pause: float = 0.0) -> Figures:
        """Scale every set, and wait until nothing is left to do; then pause for so many seconds, whose requests count."""
        expected, since = self.workload.expected(new), time.monotonic()
        self.subject.scale(old, new)
        is_ready = all_ready(expected["pods"])
        end = self.wait(
            since, lambda counts: is_ready(counts) and all(counts[name] == expected[name] for name in ("podcliques", "podgangs"))
        )
        time.sleep(pause)
        return self.measured(phase, since, {"done": end})

    def updated(self) -> Figures:
        """Change the image of every set."""
        pods, since = self.workload.pod_count, time.monotonic()
        is_ready = all_ready(pods)
        with self.census.fewest(READY) as fewest:
            self.subject.update()
            replaced = self.wait(since, lambda counts: counts[image(NEW_IMAGE)] == pods and is_ready(counts), 900)
            ended = self.wait(since, lambda counts: counts[UPDATED] == self.workload.sets, 120) if self.subject.is_operator else None
        seconds = {"reported": ended, "replaced": replaced} if self.subject.is_operator else {"replaced": replaced}
        return self.measured("update", since, seconds, {"fewest ready": fewest[0]})

    def rested(self, phase: str, seconds: float) -> Figures:
        """Do nothing for so many seconds."""
        since = time.monotonic()
        time.sleep(seconds)
        return self.measured(phase, since, {})

    def restarted(self, operator: Operator) -> Figures:
        """Kill the operator and start it again."""
        operator.restart()
        self._cpu, since = 0.0, time.monotonic()
        idle = until_idle(operator.pid, 300)
        return self.measured("restart", since, {"idle": idle})

    def _delete(self) -> Figures:
        since = time.monotonic()
        self.subject.delete()
        roots = self.wait(since, lambda counts: not counts["podcliquesets"])
        gone = self.wait(since, lambda counts: not any(counts[name] for name in self.workload.expected()), 300)
        seconds = {"sets": roots, "all": gone} if self.subject.is_operator else {"all": gone}
        return self.measured("delete", since, seconds, {"services left": self.census.counts["services"] - 1})


def all_ready(pods: int) -> Condition:
    """That there are exactly so many pods, that all of them are ready, and none is gated."""
    return lambda counts: counts[READY] == pods == counts["pods"] and not counts[GATED]


def no_phases(run: Run) -> Iterator[Figures]:
    """Nothing between creation and deletion."""
    yield from ()


def touched_once(run: Run) -> Iterator[Figures]:
    """b1: an annotation changes, which means nothing."""
    if isinstance(run.subject, Operator):
        run.subject.touch(str(time.time()))
        yield run.rested("idle after an annotation", REST)


def scaled(run: Run) -> Iterator[Figures]:
    """b2: up and down, to nothing and back, and some churn."""
    replicas = run.workload.replicas
    large, small = LARGE * replicas // 250, max(1, SMALL * replicas // 250)
    for old, new in ((replicas, large), (large, replicas), (replicas, 0), (0, large)):
        yield run.scaled(f"{old} → {new}", old, new)
    yield run.scaled(f"{large} → {small}", large, small)
    if run.subject.is_operator:
        for number in range(3):
            yield run.scaled(f"churn {number + 1}, {small} → {2 * small}", small, 2 * small, pause=2)
            yield run.scaled(f"churn {number + 1}, {2 * small} → {small}", 2 * small, small, pause=2)


def updated(run: Run) -> Iterator[Figures]:
    """b4: another image."""
    yield run.updated()


def left_alone(run: Run) -> Iterator[Figures]:
    """b5: nothing happens, then an annotation of every set changes, then the operator is killed and started again."""
    if isinstance(run.subject, Operator):
        yield run.rested("idle", REST)
        run.subject.touch(str(time.time()))
        yield run.rested("idle after an annotation of each set", 20)
        yield run.restarted(run.subject)


PHASES: Final[Mapping[str, Callable[[Run], Iterator[Figures]]]] = {"b1": touched_once, "b2": scaled, "b4": updated, "b5": left_alone}
"""Workload -> its phases between creation and deletion."""


def most_replicas(workload: Workload) -> int:
    """The largest number of replicas that a set of the workload ever has."""
    return max(workload.replicas, LARGE * workload.replicas // 250) if workload.name == "b2" else workload.replicas
