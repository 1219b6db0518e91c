"""The back end of kube-scheduler: where it schedules gangs, and what preflight says about it."""

from collections.abc import Iterable

import pytest

from engine.ids import Kind
from enginectl.wiring.configuration import configuration_of
from providers.schedulers.kube import KUBE, kube_scheduler
from resources.base import kinds
from resources.install.preflight import checks
from resources.ports.checks import CheckResult, Installation, QueryResults, ServedApis, Severity
from resources.ports.configuration import GangMode
from resources.settings import valid_settings

TREES = (kinds.POD_GROUP, kinds.WORKLOAD, kinds.COMPOSITE_POD_GROUP)


def installation(served: Iterable[Kind], *others: tuple[str, str, str]) -> Installation:
    """A cluster that serves these kinds, and others by group, version and plural."""
    return Installation(ServedApis(frozenset([*((kind.group, kind.version, kind.plural) for kind in served), *others])), QueryResults(), ())


@pytest.mark.parametrize(
    ("option", "mode"),
    [
        ({}, GangMode.AUTO),
        ({"gangScheduling": None}, GangMode.AUTO),
        ({"gangScheduling": True}, GangMode.AUTO),
        ({"gangScheduling": False}, GangMode.OFF),
        *(({"gangScheduling": mode.value}, mode) for mode in GangMode),
    ],
)
def test_groves_booleans_are_read_and_auto_is_the_default(option: dict[str, object], mode: GangMode) -> None:
    settings = valid_settings({"scheduler": {"profiles": [{"name": KUBE, "config": option}]}})

    assert settings.scheduler.gang_mode is mode


@pytest.mark.parametrize("profiles", [[], [{"name": "kai-scheduler"}], [{"name": KUBE}]])
def test_whether_gangs_are_scheduled_can_be_said_without_listing_a_profile(profiles: list[dict[str, object]]) -> None:
    assert valid_settings({"scheduler": {"profiles": profiles}}).scheduler.gang_mode is GangMode.AUTO
    for value, mode in ((False, GangMode.OFF), ("Require", GangMode.REQUIRE)):
        settings = valid_settings({"scheduler": {"profiles": profiles, "gangScheduling": value}})
        assert (settings.scheduler.gang_mode, configuration_of(settings).schedulers[KUBE]) == (mode, kube_scheduler(mode))
        assert bool(configuration_of(settings).graph_scheduler_where_served) is not bool(profiles)


def test_the_profile_says_more_than_what_is_said_beside_it() -> None:
    profiles = [{"name": KUBE, "config": {"gangScheduling": "Require"}}]

    assert valid_settings({"scheduler": {"profiles": profiles, "gangScheduling": "Off"}}).scheduler.gang_mode is GangMode.REQUIRE


def test_the_back_end_is_the_same_object_wherever_the_same_is_served() -> None:
    for mode in GangMode:
        for unserved in (frozenset[str](), frozenset({kinds.WORKLOAD.key}), kinds.ON_REQUEST):
            assert kube_scheduler(mode).where(unserved) is kube_scheduler(mode).where(set(unserved))


def test_only_auto_gives_up_gangs_where_pod_groups_are_not_served() -> None:
    found = {mode: kube_scheduler(mode).where(kinds.ON_REQUEST).gangs is not None for mode in GangMode}

    assert found == {GangMode.AUTO: False, GangMode.REQUIRE: True, GangMode.OFF: False}


@pytest.mark.parametrize(
    ("mode", "served", "others", "level", "outcome", "finding"),
    [
        (GangMode.AUTO, TREES, (), Severity.INFO, CheckResult.GOOD, "PodGroups are served, CompositePodGroups too"),
        (
            GangMode.AUTO,
            TREES[:1],
            (),
            Severity.INFO,
            CheckResult.GOOD,
            "PodGroups are served, no CompositePodGroups: a gang has one level of topology at most",
        ),
        (
            GangMode.REQUIRE,
            (),
            (("scheduling.k8s.io", "v1alpha2", "podgroups"), ("scheduling.k8s.io", "v1alpha1", "workloads")),
            Severity.HARD,
            CheckResult.BAD,
            "the cluster does not serve PodGroup of scheduling.k8s.io/v1beta1; v1alpha1, v1alpha2 is served, which is not spoken: "
            "v1beta1 of Kubernetes 1.37 is needed",
        ),
        (
            GangMode.AUTO,
            (),
            (),
            Severity.INFO,
            CheckResult.GOOD,
            "the cluster does not serve PodGroup of scheduling.k8s.io/v1beta1",
        ),
    ],
)
def test_preflight_says_what_is_served(
    mode: GangMode,
    served: tuple[Kind, ...],
    others: tuple[tuple[str, str, str], ...],
    level: Severity,
    outcome: CheckResult,
    finding: str,
) -> None:
    results = checks(installation(served, *others), {}, (), (kube_scheduler(mode),), ())
    by_subject = {check.subject: check for check in results}

    check = by_subject["PodGroups of default-scheduler"]
    assert (check.level, check.outcome, check.finding) == (level, outcome, finding)
    is_scheduled = bool(served)
    assert (by_subject["gangs"].outcome is CheckResult.GOOD) is is_scheduled if "gangs" in by_subject else mode is GangMode.REQUIRE


def test_what_is_off_is_not_checked() -> None:
    subjects = {check.subject for check in checks(installation(TREES), {}, (), (kube_scheduler(GangMode.OFF),), ())}

    assert "PodGroups of default-scheduler" not in subjects
