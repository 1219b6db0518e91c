"""Whoever has a token may do everything, except what a denial takes away; and what a fault strikes goes wrong as often as asked."""

import datetime

import pytest

from grove_sandbox.http.access import Access, Action, Denial
from grove_sandbox.http.faults import FaultInjector, InjectedFault
from grove_sandbox.types.status import StatusError

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
LIST_PODS = Action("list", resource="pods", namespace="default")


def granted() -> Access:
    access = Access()
    access.grant("secret", "ann", ("devs",))
    return access


def test_a_token_says_who_one_is() -> None:
    identity = granted().identify("Bearer secret", NOW)

    assert ("ann", ("devs", "system:authenticated")) == (identity.name, identity.groups)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer other", "Basic secret", "secret"])
def test_without_a_known_token_nobody_is_anybody(header: str) -> None:
    with pytest.raises(StatusError) as error:
        granted().identify(header, NOW)

    assert (401, "Unauthorized", "Unauthorized") == (error.value.code, error.value.reason, error.value.message)


def test_a_token_ends_with_its_time() -> None:
    access = Access()
    access.grant("brief", "ann", until=NOW + datetime.timedelta(seconds=1))

    assert "ann" == access.identify("Bearer brief", NOW).name
    with pytest.raises(StatusError):
        access.identify("Bearer brief", NOW + datetime.timedelta(seconds=1))


def test_a_revoked_token_is_not_known_any_more() -> None:
    access = granted()
    access.revoke("secret")

    with pytest.raises(StatusError):
        access.identify("Bearer secret", NOW)


@pytest.mark.parametrize(
    ("denial", "act", "allowed"),
    [
        (Denial("ann", "list", "pods"), LIST_PODS, False),
        (Denial("bob", "list", "pods"), LIST_PODS, True),
        (Denial(verb="watch"), LIST_PODS, True),
        (Denial(namespace="other"), LIST_PODS, True),
        (Denial(group="apps"), LIST_PODS, True),
        (Denial(), LIST_PODS, False),
        (Denial(resource="pods"), Action("patch", resource="pods", subresource="status"), True),
        (Denial(resource="pods/status"), Action("patch", resource="pods", subresource="status"), False),
        (Denial(), Action("get", path="/version"), True),
    ],
)
def test_a_denial_takes_away_what_it_names_and_no_more(denial: Denial, act: Action, allowed: bool) -> None:
    access = granted()
    access.denials.append(denial)

    assert allowed is access.allows("ann", act)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (LIST_PODS, 'pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "default"'),
        (Action("list", resource="pods"), 'pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope'),
        (
            Action("patch", "apps", "deployments", "status", "default", "d"),
            'deployments.apps "d" is forbidden: User "ann" cannot patch resource "deployments/status" in API group "apps" '
            'in the namespace "default"',
        ),
    ],
)
def test_a_refusal_reads_as_that_of_a_real_server(act: Action, message: str) -> None:
    access = granted()
    access.denials.append(Denial())

    with pytest.raises(StatusError) as error:
        access.check(access.identify("Bearer secret", NOW), act)

    assert (403, "Forbidden", message) == (error.value.code, error.value.reason, error.value.message)


CREATE_POD = Action("create", resource="pods", namespace="default")


def strikes(injector: FaultInjector, act: Action, name: str = "a") -> bool:
    return injector.take(act, name, ("answer", "cut", "slow")) is not None


def test_a_fault_strikes_as_often_as_asked_and_is_then_spent() -> None:
    injector = FaultInjector()
    injector.inject(InjectedFault("answer", verb="create", resource="pods", times=2))

    assert [True, True, False] == [strikes(injector, CREATE_POD) for _ in range(3)]
    assert () == injector.pending


def test_a_fault_lets_pass_as_many_as_asked() -> None:
    injector = FaultInjector()
    injector.inject(InjectedFault("cut", verb="create", skip=2))

    assert [False, False, True, False] == [strikes(injector, CREATE_POD) for _ in range(4)]


@pytest.mark.parametrize(
    "fault",
    [
        InjectedFault("answer", verb="delete"),
        InjectedFault("answer", resource="services"),
        InjectedFault("answer", name="b"),
        InjectedFault("drop", verb="create"),
    ],
)
def test_a_fault_that_is_about_something_else_stays_in_wait(fault: InjectedFault) -> None:
    injector = FaultInjector()
    injector.inject(fault)

    assert not strikes(injector, CREATE_POD)
    assert (fault,) == injector.pending


def test_two_equal_faults_are_two() -> None:
    injector = FaultInjector()
    injector.inject(InjectedFault("answer"), InjectedFault("answer"))

    assert [True, True, False] == [strikes(injector, CREATE_POD) for _ in range(3)]


def test_cleared_faults_are_gone() -> None:
    injector = FaultInjector()
    injector.inject(InjectedFault("answer"))
    injector.clear()

    assert not strikes(injector, CREATE_POD)


def test_a_fault_answers_with_the_reason_of_its_code() -> None:
    status = InjectedFault("answer", code=429, retry_after=3).status()

    assert (429, "TooManyRequests", 3) == (status.code, status.reason, status.retry_after)
