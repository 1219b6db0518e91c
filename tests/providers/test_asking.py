"""Questions to a server: what is refused is an answer, and versions are chosen by what is served."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from engine.errors import ClusterError, Forbidden, NotFound, ServerFault, Unauthorized, Unreachable
from engine.ids import Kind
from engine.runtime.client import Client, Listing
from providers.asking import ACCESS_REVIEW, allowed, ask, best, offer
from providers.kubernetes.discovery import Discovery, Served
from resources.base import kinds
from resources.install.permissions import Permission
from resources.ports.queries import Query, ServedApis

pytestmark = pytest.mark.anyio
TEMPLATES = Query(kinds.RESOURCE_CLAIM_TEMPLATE, versions=("v1beta2", "v1beta1"))
OLDEST = replace(kinds.RESOURCE_CLAIM_TEMPLATE, version="v1beta1")
NODES = Query(kinds.NODE)
GONE = NotFound("no such thing", status={"reason": "NotFound", "details": {"name": "x"}})


@dataclass(slots=True)
class Server:
    """A server with an answer, or a refusal, for each kind and version."""

    has: Mapping[Kind, Sequence[str] | ClusterError] = field(default_factory=dict)
    served: tuple[Kind, ...] = ()
    holes: Mapping[str, str] = field(default_factory=dict)
    fault: ClusterError | None = None
    told: Mapping[str, Any] | ClusterError = field(default_factory=dict)
    asked: list[tuple[Kind, str, str]] = field(default_factory=list)

    async def discover(self) -> Discovery:
        """What it serves."""
        if self.fault is not None:
            raise self.fault
        return Discovery(tuple(Served(kind, frozenset()) for kind in self.served), self.holes)

    async def version(self) -> Mapping[str, Any]:
        """What it says of itself."""
        if isinstance(self.told, ClusterError):
            raise self.told
        return self.told

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        """All objects of a kind."""
        self.asked.append((kind, labels, fields))
        found = self.has.get(kind, ())
        if isinstance(found, ClusterError):
            raise found
        return Listing([{"metadata": {"name": name}} for name in found], "1")

    async def get(self, kind: Kind, namespace: str, name: str, *, subresource: str = "") -> dict[str, Any]:
        """One object."""
        (body,) = (await self.list(kind)).items
        return body

    def client(self) -> Client:
        """As the code sees it."""
        return cast(Client, self)


def offering(*served: Kind, **rest: Any) -> ServedApis:
    """What a server serves."""
    return ServedApis(frozenset((kind.group, kind.version, kind.plural) for kind in served), **rest)


async def test_a_question_is_asked_in_the_best_version_that_is_served() -> None:
    server = Server({OLDEST: ["t"]})
    answers = await ask(server.client(), [TEMPLATES], offering(OLDEST))

    assert [live.id.name for live in answers.to(TEMPLATES).objects] == ["t"]
    assert best(TEMPLATES, offering(OLDEST, kinds.RESOURCE_CLAIM_TEMPLATE)) == kinds.RESOURCE_CLAIM_TEMPLATE
    assert best(TEMPLATES, offering(kinds.NODE)) == kinds.RESOURCE_CLAIM_TEMPLATE


async def test_what_is_not_served_is_not_there_and_is_not_asked_for() -> None:
    server = Server()
    answer = (await ask(server.client(), [TEMPLATES], offering(kinds.NODE))).to(TEMPLATES)

    assert (answer.objects, answer.known, answer.served, server.asked) == ((), True, False, [])


async def test_what_a_silent_group_serves_is_not_known() -> None:
    offered = offering(kinds.NODE, holes={"resource.k8s.io/v1": "silent"})
    answer = (await ask(Server().client(), [TEMPLATES], offered)).to(TEMPLATES)

    assert not answer.known and "silent" in answer.fault


@pytest.mark.parametrize("fault", [Forbidden("nodes is forbidden"), ServerFault("oops"), Unreachable("cut")])
async def test_a_refusal_is_an_answer_that_says_why(fault: ClusterError) -> None:
    answers = await ask(Server({kinds.NODE: fault}).client(), [NODES, TEMPLATES], ServedApis())

    assert (answers.to(NODES).fault, answers.to(NODES).known) == (str(fault), False)
    assert answers.to(TEMPLATES).known


async def test_one_object_that_is_not_there_is_told_from_a_kind_that_nobody_knows() -> None:
    one, bare = Query(kinds.NODE, name="x"), NotFound("404 page not found")

    assert (await ask(Server({kinds.NODE: GONE}).client(), [one], ServedApis())).to(one).served
    assert not (await ask(Server({kinds.NODE: bare}).client(), [one], ServedApis())).to(one).served
    assert not (await ask(Server({kinds.NODE: bare}).client(), [NODES], ServedApis())).to(NODES).served


async def test_credentials_that_are_refused_are_no_answer() -> None:
    with pytest.raises(Unauthorized):
        await ask(Server({kinds.NODE: Unauthorized("no")}).client(), [NODES, TEMPLATES], ServedApis())


async def test_what_nobody_has_asked_is_not_known() -> None:
    assert not (await ask(Server().client(), [], ServedApis())).to(NODES).known


async def test_a_server_tells_every_version_and_what_it_is() -> None:
    found = await offer(Server(served=(OLDEST, kinds.NODE), holes={"x/v1": "silent"}, told={"gitVersion": "v1.33.0"}).client())

    assert found.versions("resource.k8s.io", "resourceclaimtemplates") == ("v1beta1",)
    assert (found.version, found.doubt(Kind("x", "v1", "X", "xs")), found.doubt(kinds.NODE)) == ({"gitVersion": "v1.33.0"}, "silent", "")


async def test_a_discovery_that_is_refused_leaves_all_in_doubt_and_nobody_there_is_raised() -> None:
    refused = await offer(Server(fault=Forbidden("no")).client())
    dumb = await offer(Server(served=(kinds.NODE,), told=ServerFault("no")).client())

    assert refused.doubt(kinds.NODE) == "failed to discover API resources: no"
    assert (dumb.serves(kinds.NODE), dumb.version) == (True, {})
    with pytest.raises(Unreachable):
        await offer(Server(fault=Unreachable("nobody")).client())


@dataclass(slots=True)
class Judge:
    """A server that allows some verbs, or refuses to say."""

    verbs: tuple[str, ...] = ()
    fault: ClusterError | None = None
    asked: list[Mapping[str, Any]] = field(default_factory=list)

    async def create(self, kind: Kind, namespace: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a review."""
        assert kind == ACCESS_REVIEW
        if self.fault is not None:
            raise self.fault
        attributes = body["spec"]["resourceAttributes"]
        self.asked.append(attributes)
        return {"status": {"allowed": attributes["verb"] in self.verbs}}


PODS = Permission(kinds.POD, ("list", "create"))
STATUS = Permission(kinds.PODCLIQUE, ("patch",), "status")
LEASE = Permission(kinds.LEASE, ("get",), namespace="there")


async def test_every_verb_is_asked_for_where_it_is_needed() -> None:
    judge = Judge(("list", "patch", "get"))
    found = await allowed(cast(Client, judge), [PODS, STATUS, LEASE, Permission(kinds.NODE, ("list",))], "here")

    assert found == {PODS: ("create",), STATUS: (), LEASE: (), Permission(kinds.NODE, ("list",)): ()}
    places = {(one["resource"], one.get("subresource"), one.get("namespace")) for one in judge.asked}
    assert places == {("pods", None, "here"), ("podcliques", "status", "here"), ("leases", None, "there"), ("nodes", None, None)}


async def test_who_may_not_even_ask_is_told_so() -> None:
    assert await allowed(cast(Client, Judge(fault=Forbidden("not you"))), [PODS], "") == {PODS: "not you"}
