"""SavedPlan: an approval with what it was computed from, and for how long and where it is valid."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec import Struct, field

from engine.approval.approval import Approval, Deviation
from engine.focus import EVERYTHING, Focus
from engine.ids import ResourceId
from engine.report.model import Report


class Circumstances(Struct, frozen=True):
    """What must be the same when a plan is applied."""

    engine: str
    """The release of the engine."""
    cluster: str
    """The uid of the namespace kube-system, which stands for the cluster; empty if it could not be read."""
    settings: Mapping[str, str]
    """Section of the configuration -> its digest."""


class PlanScope(Struct, frozen=True):
    """What a plan is about."""

    namespaces: tuple[str, ...]
    """Empty: all of them."""
    kinds: tuple[str, ...]
    """The names of the kinds of roots."""
    focus: Focus = EVERYTHING
    """Which of the roots in them."""
    allow_replace: bool = False
    """Whether the set of a graph may be deleted and created anew."""
    applyset: ResourceId | None = None
    """The parent of the ApplySet that the manifests are applied as; None: they are not."""
    allow_empty: bool = False
    """Whether all members of the ApplySet may be removed."""
    take_over: bool = False
    """Whether sets that another release of Grove manages may be taken over."""


class SavedPlan(Struct, frozen=True, eq=False):
    """A plan that can be approved, and that is applied as it is or not at all."""

    circumstances: Circumstances
    created_at: datetime
    expires_at: datetime
    scope: PlanScope
    approval: Approval
    report: Report
    """What people see of it, with the forecast."""
    policies: Mapping[str, str] = field(default_factory=dict)
    """Name of each policy that has judged the plan -> the digest of the policy."""
    waivers: Mapping[str, str] = field(default_factory=dict)
    """Rule of a policy that the plan violates -> the reason for which that was waived."""
    digest: str = ""
    """The digest of everything else, as it was written."""


def changed_circumstances(plan: SavedPlan, current: Circumstances, now: datetime) -> Iterator[Deviation]:
    """Everything, apart from objects, because of which the plan is not valid now."""
    if now >= plan.expires_at:
        yield Deviation("the time", f"valid until {plan.expires_at:%Y-%m-%d %H:%M:%S} UTC", f"{now:%Y-%m-%d %H:%M:%S} UTC")
    then = plan.circumstances
    if minor(then.engine) != minor(current.engine):
        yield Deviation("the engine", then.engine, current.engine)
    if then.cluster and then.cluster != current.cluster:
        yield Deviation("the cluster", then.cluster, current.cluster or "none")
    for section in sorted(then.settings.keys() | current.settings.keys()):
        if then.settings.get(section) != current.settings.get(section):
            yield Deviation(f"the setting {section}", _short(then.settings.get(section)), _short(current.settings.get(section)))


def minor(release: str) -> str:
    """`1.2` of the release `1.2.3`: releases that agree in it plan alike."""
    return ".".join(release.split(".")[:2])


def _short(digest: str | None) -> str:
    return f"digest {digest[:12]}" if digest else "none"
