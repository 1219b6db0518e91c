"""Unanswered groups: what shows that kube-scheduler has its feature gate for gangs off, and what does not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.observed import Live, live, timestamp
from providers.schedulers.kube import KUBE, kube_scheduler
from providers.schedulers.unanswered_groups import GROUPS, MEMBERS, unanswered_groups, unreleased_groups
from resources.base import kinds
from resources.install.preflight import checks
from resources.ports.checks import CheckResult, Installation, QueryResult, QueryResults, ServedApis, Severity
from resources.ports.configuration import GangMode

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SERVED = ServedApis(frozenset((kind.group, kind.version, kind.plural) for kind in kinds.KINDS))


def ago(seconds: int) -> str:
    return timestamp(NOW - timedelta(seconds=seconds))


def group(name: str = "g", minimum: int = 2, answered: int | None = None, **spec: Any) -> Live:
    """A PodGroup; `answered`: how many seconds ago the scheduler said something of it."""
    condition = {"type": "PodGroupInitiallyScheduled", "status": "True", "lastTransitionTime": ago(answered or 0)}
    return live(
        {
            "apiVersion": kinds.POD_GROUP.api_version,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "ml", "uid": name},
            "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}, **spec},
            "status": {"conditions": [condition]} if answered is not None else {},
        }
    )


def pod(number: int, node: str = "", since: int = 90, name: str = "g", scheduler: str = KUBE, reason: str = "Unschedulable") -> Live:
    """A member of a group, which the scheduler placed or refused that many seconds ago."""
    judged = {"status": "True"} if node else {"status": "False", "reason": reason}
    return live(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": "ml", "uid": f"p{number}"},
            "spec": {"schedulerName": scheduler, "nodeName": node, "schedulingGroup": {"podGroupName": name}},
            "status": {"conditions": [{"type": "PodScheduled", "lastTransitionTime": ago(since), **judged}] if reason else []},
        }
    )


def results(groups: tuple[Live, ...], pods: tuple[Live, ...]) -> QueryResults:
    return QueryResults({GROUPS: QueryResult(groups), MEMBERS: QueryResult(pods)})


def silent(groups: tuple[Live, ...], *pods: Live) -> list[str]:
    return [group.id.name for group in unanswered_groups(results(groups, pods), KUBE, NOW)]


@pytest.mark.parametrize(
    "pods",
    [
        (pod(0, "n0"), pod(1)),
        (pod(0, "n0"), pod(1, reason="")),
        (pod(0), pod(1)),
    ],
)
def test_a_group_without_a_condition_whose_pods_were_placed_or_refused_shows_it(pods: tuple[Live, ...]) -> None:
    assert silent((group(),), *pods) == ["g"]
    assert silent((group(answered=200),), *pods) == []


@pytest.mark.parametrize(
    "pods",
    [
        (pod(0, "n0", since=30), pod(1)),
        (pod(0),),
        (pod(0), pod(1, reason="SchedulingGated")),
        (pod(0), pod(1, reason="")),
        (pod(0, "n0", scheduler="kai-scheduler"), pod(1, scheduler="kai-scheduler")),
        (pod(0, "n0", name="other"), pod(1, name="")),
    ],
)
def test_what_may_have_another_cause_shows_nothing(pods: tuple[Live, ...]) -> None:
    assert silent((group(),), *pods) == []


def test_refused_pods_of_a_hierarchy_may_wait_for_another_group() -> None:
    member = group(parentCompositePodGroupName="above")

    assert silent((member,), pod(0), pod(1)) == []
    assert silent((member,), pod(0, "n0")) == ["g"]


def test_pods_that_were_placed_before_another_group_was_answered_are_of_a_time_without_the_gate() -> None:
    other = group("other", answered=60)

    assert silent((group(), other), pod(0, "n0", since=90)) == []
    assert silent((group(), group("other", answered=3600)), pod(0, "n0", since=90)) == ["g"]


def test_what_could_not_be_read_or_has_another_shape_shows_nothing() -> None:
    assert unanswered_groups(QueryResults(), KUBE, NOW) == []
    odd = live({**pod(0, "n0").body, "status": {"conditions": [{"type": "PodScheduled", "lastTransitionTime": "yesterday"}, "x"]}})
    assert silent((group(),), odd) == []


@pytest.mark.parametrize(("mode", "level"), [(GangMode.AUTO, Severity.WARNING), (GangMode.REQUIRE, Severity.HARD)])
def test_preflight_says_it_once_with_what_to_do(mode: GangMode, level: Severity) -> None:
    schedulers = (kube_scheduler(mode),)
    groups = tuple(group(f"g{number}") for number in range(3))
    found = results(groups, tuple(pod(number, "n", name=f"g{number}") for number in range(3)))

    (check,) = (each for each in checks(Installation(SERVED, found, (), NOW), {}, (), schedulers) if each.subject == "gangs")

    assert (check.level, check.outcome) == (level, CheckResult.BAD)
    assert check.finding.startswith("kube-scheduler has placed or refused the pods of PodGroup ml/g0, PodGroup ml/g1 and 1 more and said")
    assert check.remedy.startswith("start kube-scheduler with --feature-gates=GenericWorkload=true, install KAI, install Volcano")
    unknown = Installation(SERVED, found, ())
    assert "scheduled by default-scheduler" in [each.finding for each in checks(unknown, {}, (), schedulers) if each.subject == "gangs"]


def test_without_gangs_nothing_is_read() -> None:
    assert list(kube_scheduler(GangMode.OFF).installation_queries()) == []
    assert list(kube_scheduler(GangMode.AUTO).installation_queries()) == [GROUPS, MEMBERS]


def deleted(seconds: int = 90, owner: str = "PodGang", finalizer: str = "scheduling.k8s.io/podgroup-protection") -> Live:
    """A PodGroup that was deleted so long ago."""
    body = group().body
    controller = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": owner, "name": "g", "uid": "1", "controller": True}
    more = {"deletionTimestamp": ago(seconds), "finalizers": [finalizer], "ownerReferences": [controller]}
    return live({**body, "metadata": {**body["metadata"], **more}})


@pytest.mark.parametrize(
    ("kept", "pods", "is_shown"),
    [
        (deleted(), (), True),
        (deleted(), (pod(0, "n0", name="other"),), True),
        (deleted(), (pod(0, "n0"),), False),
        (deleted(30), (), False),
        (deleted(owner="Job"), (), False),
        (deleted(finalizer="example.com/kept"), (), False),
        (group(), (), False),
    ],
)
def test_a_deleted_group_without_pods_that_stays_shows_that_the_controller_manager_lacks_the_gate(
    kept: Live, pods: tuple[Live, ...], is_shown: bool
) -> None:
    found = checks(Installation(SERVED, results((kept,), pods), (), NOW), {}, (), (kube_scheduler(GangMode.AUTO),))

    shown = [check for check in found if check.subject == "deleted PodGroups of default-scheduler"]
    assert [(check.outcome, check.remedy) for check in shown] == is_shown * [
        (CheckResult.BAD, "start kube-controller-manager with --feature-gates=GenericWorkload=true")
    ]
    unread = QueryResults({GROUPS: QueryResult((kept,)), MEMBERS: QueryResult(error="forbidden")})
    assert unreleased_groups(unread, NOW) == []
