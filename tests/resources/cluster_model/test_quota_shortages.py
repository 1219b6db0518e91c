"""Quotas: what a forecast needs of them, beside what they allow."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from engine.forecast.forecast import Forecast, ForecastPass
from engine.ids import ResourceId
from engine.observed import Live, Observed, Slice, World, live
from engine.operation import Cause, Create, Delete, Operation, Patch
from resources.base import kinds
from resources.cluster_model import quotas
from resources.cluster_model.quotas import Amounts, Shortage, shortages, text_of

GRAPH = kinds.DYNAMO_GRAPH.id("ml", "llm")
DECODE = kinds.DEPLOYMENT.id("ml", "decode")
TEAM = kinds.RESOURCE_QUOTA.id("ml", "team")
RECREATE = {"type": "Recreate"}
NEW = {"containers": [{"name": "main", "image": "x:2"}]}


def deployment(replicas: int, *, existing: int | None = None, **pod: Any) -> Live:
    """A Deployment, with so many pods that exist, of an update that is under way."""
    spec = {"replicas": replicas, "template": {"spec": {"containers": [{"name": "main", "image": "x:1"}], **pod}}}
    metadata = {"name": DECODE.name, "namespace": DECODE.namespace, "uid": "u"}
    status = {} if existing is None else {"status": {"replicas": existing}}
    return live({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec, **status})


def pod(name: str, **spec: Any) -> Live:
    return live({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml", "uid": name}, "spec": spec})


def quota(used: int, hard: int, what: str = "pods", **spec: Any) -> Live:
    status = {"hard": {what: str(hard)}, "used": {what: str(used)}}
    metadata = {"name": "team", "namespace": "ml", "uid": "q"}
    return live(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": status["hard"], **spec}, "status": status}
    )


def patched(**spec: Any) -> Patch:
    return Patch(DECODE, "", Cause.INTENT, patch={"spec": spec})


def created(name: str, **spec: Any) -> Create:
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml"}, "spec": spec}
    return Create(kinds.POD.id("ml", name), "", Cause.INTENT, manifest=manifest)


def deleted(name: str) -> Delete:
    return Delete(kinds.POD.id("ml", name), "", Cause.INTENT)


def found(limits: Live | tuple[Live, ...], lives: tuple[Live, ...], *passes: tuple[Operation, ...]) -> list[Shortage]:
    """What quotas do not allow in a forecast of these passes, which begins with these objects."""
    root = live({"apiVersion": "nvidia.com/v1alpha1", "kind": GRAPH.kind, "metadata": {"name": "llm", "namespace": "ml", "uid": "g"}})
    world = World((Observed(root, {"all": Slice({each.id: each for each in lives})}),))
    listed = tuple(ForecastPass(timedelta(seconds=number), {GRAPH: operations}) for number, operations in enumerate(passes))
    forecast = Forecast(datetime(2026, 1, 1, tzinfo=UTC), listed, True, {}, {}, frozenset())
    return list(shortages(limits if isinstance(limits, tuple) else (limits,), forecast, world))


@pytest.mark.parametrize(
    "operation, used, expected",
    [
        (patched(replicas=3, template={"spec": NEW}), 4, False),
        (patched(replicas=3, template={"spec": NEW}), 5, True),
        (patched(replicas=4, template={"spec": NEW}), 4, False),
        (patched(replicas=5, template={"spec": NEW}), 4, True),
        (patched(replicas=4), 4, True),
    ],
    ids=["same", "others have one more", "grows by the pod that goes", "grows by more", "goes on, and grows"],
)
def test_the_pod_that_an_update_under_way_has_too_many_makes_room_for_the_next_update(operation: Patch, used: int, expected: bool) -> None:
    listed = found(quota(used, 4), (deployment(3, existing=4),), (operation,))

    assert any(each.lasting for each in listed) is expected


def test_with_a_deployment_all_its_pods_go() -> None:
    delete = Delete(DECODE, "", Cause.INTENT)
    four = tuple(created(f"p-{number}") for number in range(4))

    assert not found(quota(4, 4), (deployment(3, existing=4),), (delete,), four)
    assert found(quota(4, 4), (deployment(3, existing=3),), (delete,), four)


def test_pods_that_an_update_under_way_has_too_many_go_once() -> None:
    passes = tuple((patched(replicas=3, template={"spec": {"containers": [{"image": f"x:{version}"}]}}),) for version in (2, 3))

    assert not found(quota(4, 4), (deployment(3, existing=4),), *passes)
    assert found(quota(4, 4), (deployment(3, existing=4),), *passes, (created("p"),))


@pytest.mark.parametrize(
    "operation",
    [patched(), Patch(DECODE, "", Cause.INTENT, patch={"metadata": {"labels": {"a": "b"}}}), patched(replicas=1), patched(replicas=0)],
    ids=["nothing", "labels", "smaller", "none"],
)
def test_in_a_namespace_beyond_its_quota_nothing_is_short_where_no_pod_is_created(operation: Operation) -> None:
    assert not found(quota(7, 4), (deployment(3),), (operation,))


@pytest.mark.parametrize(
    "passes",
    [
        ((deleted("p"),), (created("p"),)),
        ((deleted("p"), deleted("q")), (created("p"), created("q"))),
        ((patched(strategy=RECREATE, template={"spec": NEW}),),),
    ],
    ids=["a pod", "two pods", "all pods of a Deployment"],
)
def test_in_a_namespace_beyond_its_quota_not_every_pod_that_is_replaced_comes_back(passes: tuple[tuple[Operation, ...], ...]) -> None:
    (shortage,) = found(quota(5, 4), (deployment(2), pod("p"), pod("q")), *passes)

    assert shortage == Shortage(TEAM, "pods", Decimal(1), Decimal(), True, frozenset({GRAPH}))


def test_a_deployment_that_replaces_its_pods_is_itself_not_created() -> None:
    update = patched(strategy=RECREATE, template={"spec": NEW})

    assert not found(quota(2, 1, "count/deployments.apps"), (deployment(3),), (update,))


@pytest.mark.parametrize("operator", ["In", "NotIn", "DoesNotExist", "Exists"])
def test_where_the_class_of_a_new_pod_is_the_default_of_the_cluster_a_quota_of_classes_is_not_judged(operator: str) -> None:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": ["low"]}]}
    of_classes = quota(4, 4, scopeSelector=selector)

    assert not found(of_classes, (), (created("p"),))
    assert not found(of_classes, (deployment(2),), (patched(replicas=3),))
    assert found(of_classes, (), (created("p", priorityClassName="low" if operator == "In" else "high"),)) or operator == "DoesNotExist"
    assert found(quota(4, 4), (), (created("p"),)), "Others are."


def test_of_pods_that_exist_the_class_is_known() -> None:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}
    passes = (deleted("p"),), (created("q", priorityClassName="high"),)

    assert found(quota(4, 4, scopeSelector=selector), (pod("p"),), *passes)
    assert not found(quota(4, 4, scopeSelector=selector), (pod("p", priorityClassName="high"),), *passes)


def test_a_pod_that_another_scope_leaves_out_needs_no_class() -> None:
    of_both = quota(4, 4, scopes=["Terminating", "PriorityClass"])
    ending = {"activeDeadlineSeconds": 60, "priorityClassName": "high"}

    assert found(of_both, (), (created("p"), created("q", **ending)))
    assert not found(of_both, (), (created("p", activeDeadlineSeconds=60), created("q", **ending)))


def test_only_what_changes_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[ResourceId] = []

    def amounts_of(id: ResourceId, *_: object) -> Amounts:
        measured.append(id)
        return {}

    monkeypatch.setattr(quotas, "amounts_of", amounts_of)
    limits = (quota(1, 4), quota(1, 4, scopes=["BestEffort"]))

    found(limits, tuple(pod(f"p-{number}") for number in range(9)), (deleted("p-3"),))

    assert measured == [kinds.POD.id("ml", "p-3")] * 2


def test_a_shortage_says_what_helps() -> None:
    update = patched(template={"spec": NEW})
    (beside,), (more,) = (
        found(quota(2, 2), (deployment(2),), (update,)),
        found(quota(2, 2), (deployment(2),), (patched(replicas=4, template={"spec": NEW}),)),
    )
    (one,) = found(quota(2, 2), (), (created("p"),))

    refused = "the API server will refuse the rest; raise the quota or ask for less"
    assert text_of(one, GRAPH) == f"it allows 0 more pods, and 1 is needed: {refused}"
    assert text_of(beside, GRAPH) == (
        f"it allows 0 more pods, and 1 is needed: {refused}; "
        "earlier pods stay until new ones are ready: a strategy that deletes them first needs no more"
    )
    assert text_of(more, GRAPH) == f"it allows 0 more pods, and 2 are needed: {refused}"


@pytest.mark.parametrize("needed, expected", [("1", "1 is"), ("2", "2 are"), ("0.5", "0.5 are"), ("100", "100 are")])
def test_one_is_and_several_are_needed(needed: str, expected: str) -> None:
    shortage = Shortage(TEAM, "requests.cpu", Decimal(needed), Decimal(), False, frozenset())

    assert text_of(shortage, GRAPH).startswith(f"it allows 0 more requests.cpu, and {expected} needed for a time")


SETS = [kinds.PODCLIQUESET.id("ml", name) for name in "abc"]


@pytest.mark.parametrize(
    ("passes", "blocked", "doubtful"),
    [
        (({0: 1, 1: 1},), "", "ab"),
        (({0: 1}, {1: 1}), "b", ""),
        (({0: 1, 1: 2},), "b", "a"),
        (({0: 1}, {1: 1, 2: 1}), "", "bc"),
    ],
    ids=["at once", "one after the other", "one is too large", "the first fits"],
)
def test_of_several_that_share_a_quota_those_are_told_that_may_find_no_room(
    passes: tuple[dict[int, int], ...], blocked: str, doubtful: str
) -> None:
    listed = tuple(
        ForecastPass(
            timedelta(seconds=number),
            {SETS[index]: tuple(created(f"{index}-{pod}") for pod in range(count)) for index, count in each.items()},
        )
        for number, each in enumerate(passes)
    )
    forecast = Forecast(datetime(2026, 1, 1, tzinfo=UTC), listed, True, {}, {}, frozenset())

    (shortage,) = shortages((quota(0, 1),), forecast, World(()))

    assert "".join(sorted(root.name for root in shortage.competing)) == doubtful
    assert "".join(sorted(root.name for root in shortage.roots - shortage.competing)) == blocked
    assert all(text_of(shortage, root).startswith("may not fit beside PodCliqueSet ") for root in shortage.competing)


SURGE = patched(template={"spec": NEW}, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        (({GRAPH: (SURGE,), SETS[0]: (created("p"),)},), {GRAPH, SETS[0]}),
        (({SETS[0]: (created("p"),), GRAPH: (SURGE,)},), {GRAPH, SETS[0]}),
        (({GRAPH: (SURGE,)}, {SETS[0]: (created("p"),)}), {SETS[0]}),
        (({SETS[0]: (created("p"),)}, {GRAPH: (SURGE,)}), {GRAPH}),
    ],
    ids=["at once", "at once, in the other order", "the surge first", "the pod first"],
)
def test_what_others_create_beside_the_surge_of_a_deployment_is_told(
    passes: tuple[dict[ResourceId, tuple[Operation, ...]], ...], expected: set[ResourceId]
) -> None:
    root = live({"apiVersion": "nvidia.com/v1alpha1", "kind": GRAPH.kind, "metadata": {"name": "llm", "namespace": "ml", "uid": "g"}})
    world = World((Observed(root, {"all": Slice({DECODE: deployment(2)})}),))
    listed = tuple(ForecastPass(timedelta(seconds=number), operations) for number, operations in enumerate(passes))
    forecast = Forecast(datetime(2026, 1, 1, tzinfo=UTC), listed, True, {}, {}, frozenset())

    (shortage,) = shortages((quota(2, 3),), forecast, world)

    assert (shortage.needed, shortage.lasting, shortage.roots) == (Decimal(2), True, frozenset(expected))


@pytest.mark.parametrize(
    ("count", "index", "expected"),
    [
        (2, 0, "PodCliqueSet s1"),
        (4, 1, "PodCliqueSet s0, PodCliqueSet s2, PodCliqueSet s3"),
        (5, 4, "PodCliqueSet s0, PodCliqueSet s1, PodCliqueSet s2 and 1 other"),
        (9, 1, "PodCliqueSet s0, PodCliqueSet s2, PodCliqueSet s3 and 5 others"),
    ],
)
def test_of_many_that_share_a_quota_three_are_named(count: int, index: int, expected: str) -> None:
    roots = [kinds.PODCLIQUESET.id("ml", f"s{number}") for number in range(count)]
    shortage = Shortage(TEAM, "pods", Decimal(count), Decimal(1), True, frozenset(roots), frozenset(roots))

    assert text_of(shortage, roots[index]).startswith(f"may not fit beside {expected}: it allows 1 more pods")


def test_what_a_pod_as_a_whole_requests_counts_against_a_quota() -> None:
    (shortage,) = found(quota(0, 1, "requests.cpu"), (), (created("p", **NEW, resources={"requests": {"cpu": "4"}}),))

    assert (shortage.what, shortage.needed) == ("requests.cpu", Decimal(4))
