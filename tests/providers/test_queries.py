"""Queries to an API server: a refusal is a result, and the version is one that is served."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from msgspec.structs import replace

from engine.errors import ClusterError, Forbidden, NotFound, ServerFault, Unauthorized, Unreachable
from engine.ids import Kind
from engine.runtime.provider import Client, Listing
from providers.kubernetes.discovery import Discovery, ServedKind
from providers.queries import ACCESS_REVIEW, best_version, missing_verbs, run_queries, served_apis
from resources.base import kinds
from resources.install.permissions import Permission
from resources.ports.checks import Query, ServedApis

pytestmark = pytest.mark.anyio
TEMPLATES = Query(kinds.RESOURCE_CLAIM_TEMPLATE, versions=("v1beta2", "v1beta1"))
OLDEST = replace(kinds.RESOURCE_CLAIM_TEMPLATE, version="v1beta1")
NODES = Query(kinds.NODE)
NO_OBJECT = NotFound("no such thing", status={"reason": "NotFound", "details": {"name": "x"}})


@dataclass(slots=True)
class Server:
    """A server that returns these names, or this error, for each kind and version."""

    objects: Mapping[Kind, Sequence[str] | ClusterError] = field(default_factory=dict)
    served: tuple[Kind, ...] = ()
    incomplete: Mapping[str, str] = field(default_factory=dict)
    discovery_error: ClusterError | None = None
    version_info: Mapping[str, Any] | ClusterError = field(default_factory=dict)
    lists: list[tuple[Kind, str, str]] = field(default_factory=list)

    async def discover(self) -> Discovery:
        """The served kinds."""
        if self.discovery_error is not None:
            raise self.discovery_error
        return Discovery(tuple(ServedKind(kind, frozenset()) for kind in self.served), self.incomplete)

    async def version(self) -> Mapping[str, Any]:
        """The version."""
        if isinstance(self.version_info, ClusterError):
            raise self.version_info
        return self.version_info

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        """All objects of a kind."""
        self.lists.append((kind, labels, fields))
        names = self.objects.get(kind, ())
        if isinstance(names, ClusterError):
            raise names
        return Listing([{"metadata": {"name": name}} for name in names], "1")

    async def get(self, kind: Kind, namespace: str, name: str, *, subresource: str = "") -> dict[str, Any]:
        """One object."""
        (body,) = (await self.list(kind)).items
        return body

    def client(self) -> Client:
        """The server as a client."""
        return cast(Client, self)


def apis(*served: Kind, **rest: Any) -> ServedApis:
    """The served APIs of these kinds."""
    return ServedApis(frozenset((kind.group, kind.version, kind.plural) for kind in served), **rest)


async def test_a_query_uses_the_best_version_that_is_served() -> None:
    server = Server({OLDEST: ["t"]})
    results = await run_queries(server.client(), [TEMPLATES], apis(OLDEST))

    assert [live.id.name for live in results.of(TEMPLATES).objects] == ["t"]
    assert best_version(TEMPLATES, apis(OLDEST, kinds.RESOURCE_CLAIM_TEMPLATE)) == kinds.RESOURCE_CLAIM_TEMPLATE
    assert best_version(TEMPLATES, apis(kinds.NODE)) == kinds.RESOURCE_CLAIM_TEMPLATE


async def test_of_a_kind_that_is_not_served_there_are_no_objects_and_it_is_not_listed() -> None:
    server = Server()
    result = (await run_queries(server.client(), [TEMPLATES], apis(kinds.NODE))).of(TEMPLATES)

    assert (result.objects, result.known, result.served, server.lists) == ((), True, False, [])


async def test_whether_a_group_that_could_not_be_discovered_has_a_kind_is_not_known() -> None:
    known = apis(kinds.NODE, incomplete={"resource.k8s.io/v1": "silent"})
    result = (await run_queries(Server().client(), [TEMPLATES], known)).of(TEMPLATES)

    assert not result.known and "silent" in result.error


@pytest.mark.parametrize("error", [Forbidden("nodes is forbidden"), ServerFault("oops"), Unreachable("cut")])
async def test_an_error_is_a_result_and_the_other_queries_are_made(error: ClusterError) -> None:
    results = await run_queries(Server({kinds.NODE: error}).client(), [NODES, TEMPLATES], ServedApis())

    assert (results.of(NODES).error, results.of(NODES).known) == (str(error), False)
    assert results.of(TEMPLATES).known


async def test_a_missing_object_is_distinguished_from_a_kind_that_is_not_served() -> None:
    one, no_kind = Query(kinds.NODE, name="x"), NotFound("404 page not found")

    assert (await run_queries(Server({kinds.NODE: NO_OBJECT}).client(), [one], ServedApis())).of(one).served
    assert not (await run_queries(Server({kinds.NODE: no_kind}).client(), [one], ServedApis())).of(one).served
    assert not (await run_queries(Server({kinds.NODE: no_kind}).client(), [NODES], ServedApis())).of(NODES).served


async def test_refused_credentials_are_raised() -> None:
    with pytest.raises(Unauthorized):
        await run_queries(Server({kinds.NODE: Unauthorized("no")}).client(), [NODES, TEMPLATES], ServedApis())


async def test_a_query_that_was_not_made_has_no_known_result() -> None:
    assert not (await run_queries(Server().client(), [], ServedApis())).of(NODES).known


async def test_the_served_apis_have_every_version_and_the_server_s_own() -> None:
    server = Server(served=(OLDEST, kinds.NODE), incomplete={"x/v1": "silent"}, version_info={"gitVersion": "v1.33.0"})
    served = await served_apis(server.client())

    assert served.versions("resource.k8s.io", "resourceclaimtemplates") == ("v1beta1",)
    assert served.version == {"gitVersion": "v1.33.0"}
    assert (served.why_unknown(Kind("x", "v1", "X", "xs")), served.why_unknown(kinds.NODE)) == ("silent", "")


async def test_if_discovery_is_refused_nothing_is_known_and_an_unreachable_server_is_raised() -> None:
    refused = await served_apis(Server(discovery_error=Forbidden("no")).client())
    versionless = await served_apis(Server(served=(kinds.NODE,), version_info=ServerFault("no")).client())

    assert refused.why_unknown(kinds.NODE) == "failed to discover API resources: no"
    assert (versionless.serves(kinds.NODE), versionless.version) == (True, {})
    with pytest.raises(Unreachable):
        await served_apis(Server(discovery_error=Unreachable("nobody")).client())


@dataclass(slots=True)
class Authorizer:
    """A server that allows some verbs, or refuses every review."""

    verbs: tuple[str, ...] = ()
    error: ClusterError | None = None
    reviews: list[Mapping[str, Any]] = field(default_factory=list)

    async def create(self, kind: Kind, namespace: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a review."""
        assert kind == ACCESS_REVIEW
        if self.error is not None:
            raise self.error
        attributes = body["spec"]["resourceAttributes"]
        self.reviews.append(attributes)
        return {"status": {"allowed": attributes["verb"] in self.verbs}}


PODS = Permission(kinds.POD, ("list", "create"))
STATUS = Permission(kinds.PODCLIQUE, ("patch",), "status")
LEASE = Permission(kinds.LEASE, ("get",), namespace="there")


async def test_every_verb_is_reviewed_in_the_namespace_where_it_is_needed() -> None:
    authorizer = Authorizer(("list", "patch", "get"))
    missing = await missing_verbs(cast(Client, authorizer), [PODS, STATUS, LEASE, Permission(kinds.NODE, ("list",))], "here")

    assert missing == {PODS: ("create",), STATUS: (), LEASE: (), Permission(kinds.NODE, ("list",)): ()}
    places = {(review["resource"], review.get("subresource"), review.get("namespace")) for review in authorizer.reviews}
    assert places == {("pods", None, "here"), ("podcliques", "status", "here"), ("leases", None, "there"), ("nodes", None, None)}


async def test_a_refused_review_is_reported_as_the_reason() -> None:
    assert await missing_verbs(cast(Client, Authorizer(error=Forbidden("not you"))), [PODS], "") == {PODS: "not you"}
