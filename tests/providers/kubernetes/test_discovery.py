"""Discovery: two requests if the server supports it, else one for each group; groups that do not answer are reported."""

from typing import Any

import orjson
import pytest

from engine.errors import ClusterError, Forbidden, ServerFault, Unreachable
from engine.ids import Kind
from providers.kubernetes.discovery import Discovery, discover
from providers.kubernetes.wire import HttpRequest, Response

pytestmark = pytest.mark.anyio

POD = Kind("", "v1", "Pod", "pods", status=True)
GANG = Kind("scheduler.grove.io", "v1alpha1", "PodGang", "podgangs", status=True)
ALL = ["create", "delete", "get", "list", "patch", "update", "watch"]


class Paths:
    """A server with a response, or an error, for each path."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.requests: list[HttpRequest] = []

    async def __call__(self, request: HttpRequest) -> Response:
        self.requests.append(request)
        answer = self.answers[request.path]
        if isinstance(answer, ClusterError):
            raise answer
        return Response(200, orjson.dumps(answer))


def resource(plural: str, kind: str, *, verbs: list[str] = ALL, status: bool = False, **fields: Any) -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": "Namespaced",
        "verbs": verbs,
        "subresources": [{"subresource": "status", "responseKind": {"kind": kind}, "verbs": ["get"]}] if status else [],
        **fields,
    }


def aggregated(*groups: tuple[str, list[dict[str, Any]]]) -> dict[str, Any]:
    items = [{"metadata": {"name": name} if name else {}, "versions": versions} for name, versions in groups]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def version(name: str, *resources: dict[str, Any], freshness: str = "Current") -> dict[str, Any]:
    return {"version": name, "resources": list(resources), "freshness": freshness}


async def test_all_kinds_are_read_with_two_requests() -> None:
    gangs = resource("podgangs", "PodGang", status=True, singularResource="podgang", shortNames=["pg"])
    server = Paths(
        {
            "/api": aggregated(("", [version("v1", resource("pods", "Pod", status=True), resource("nodes", "Node", scope="Cluster"))])),
            "/apis": aggregated(("scheduler.grove.io", [version("v1alpha1", gangs)])),
        }
    )

    discovery = await discover(server)

    assert discovery.kinds() == (POD, Kind("", "v1", "Node", "nodes", namespaced=False), GANG)
    assert (discovery.served[2].singular, discovery.served[2].short_names) == ("podgang", ("pg",))
    assert (len(server.requests), discovery.incomplete) == (2, {})
    assert "g=apidiscovery.k8s.io" in server.requests[0].accept


async def test_a_kind_is_listed_once_in_its_preferred_version() -> None:
    two = [version("v2", resource("horizontalpodautoscalers", "HorizontalPodAutoscaler"))]
    two.append(version("v1", resource("horizontalpodautoscalers", "HorizontalPodAutoscaler"), resource("olds", "Old")))

    discovery = await discover(Paths({"/api": aggregated(), "/apis": aggregated(("autoscaling", two))}))

    assert [(kind.name, kind.version) for kind in discovery.kinds()] == [("HorizontalPodAutoscaler", "v2"), ("Old", "v1")]


async def test_a_kind_is_served_only_in_its_exact_group_and_version() -> None:
    groups = [(f"{prefix}scheduling.example.com", [version("v1", resource("podgroups", "PodGroup"))]) for prefix in ("", "custom.")]
    discovery = await discover(Paths({"/api": aggregated(), "/apis": aggregated(*groups[1:])}))

    assert discovery.serves(Kind("custom.scheduling.example.com", "v1", "PodGroup", "podgroups"))
    assert not discovery.serves(Kind("scheduling.example.com", "v1", "PodGroup", "podgroups"))
    assert not discovery.serves(Kind("custom.scheduling.example.com", "v2", "PodGroup", "podgroups"))


async def test_a_kind_that_cannot_be_listed_and_watched_is_left_out() -> None:
    reviews = resource("tokenreviews", "TokenReview", verbs=["create"])
    discovery = await discover(Paths({"/api": aggregated(), "/apis": aggregated(("authentication.k8s.io", [version("v1", reviews)]))}))

    assert (discovery.kinds(), len(discovery.served)) == ((), 1)


async def test_an_api_service_that_does_not_answer_is_reported_as_incomplete() -> None:
    groups = aggregated(("metrics.k8s.io", [version("v1beta1", freshness="Stale")]), ("grove.io", [version("v1", resource("x", "X"))]))

    discovery = await discover(Paths({"/api": aggregated(), "/apis": groups}))

    assert [kind.name for kind in discovery.kinds()] == ["X"]
    assert discovery.incomplete == {"metrics.k8s.io/v1beta1": "the API service behind it does not answer"}


def legacy(**answers: Any) -> Paths:
    """A server without aggregated discovery."""
    group = {
        "name": "scheduler.grove.io",
        "versions": [{"groupVersion": f"scheduler.grove.io/{one}", "version": one} for one in ("v1", "v1alpha1")],
        "preferredVersion": {"groupVersion": "scheduler.grove.io/v1alpha1", "version": "v1alpha1"},
    }
    pods = [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ALL}, {"name": "pods/status", "kind": "Pod", "namespaced": True}]
    gangs = [{"name": name, "kind": "PodGang", "namespaced": True, "verbs": ALL} for name in ("podgangs", "podgangs/status")]
    return Paths(
        {
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {"kind": "APIGroupList", "groups": [group]},
            "/api/v1": {"kind": "APIResourceList", "resources": pods},
            "/apis/scheduler.grove.io/v1": {"kind": "APIResourceList", "resources": gangs},
            "/apis/scheduler.grove.io/v1alpha1": {"kind": "APIResourceList", "resources": gangs},
            **answers,
        }
    )


async def test_without_aggregated_discovery_each_group_is_read() -> None:
    discovery = await discover(legacy())

    assert discovery.kinds() == (POD, GANG)


async def test_one_group_that_fails_does_not_hide_the_others() -> None:
    discovery = await discover(legacy(**{"/apis/scheduler.grove.io/v1": ServerFault("the service is down\x1b[2J")}))

    assert discovery.kinds() == (POD, GANG)
    assert discovery.incomplete == {"scheduler.grove.io/v1": "the service is down\\x1b[2J"}


async def test_a_server_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(Unreachable):
        await discover(legacy(**{"/apis/scheduler.grove.io/v1": Unreachable("gone")}))
    with pytest.raises(Forbidden):
        await discover(legacy(**{"/api": Forbidden("no")}))


async def test_a_server_that_is_no_api_server_is_reported() -> None:
    with pytest.raises(ServerFault, match="is it a Kubernetes API server"):
        await discover(Paths({"/api": ["hello"]}))


def test_an_empty_discovery_serves_no_kind() -> None:
    assert not Discovery((), {}).serves(POD)
