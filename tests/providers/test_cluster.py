"""Cluster: what could not be listed is reported, and the rest is observed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from engine.errors import ClusterError, Forbidden, NotFound, ServerFault, Unauthorized, Unreachable
from engine.ids import Kind
from engine.observed import Live, Unlisted, live
from engine.operation import Cause, Expect, Patch
from engine.runtime.clock import SystemClock
from engine.runtime.provider import Listing, Observation, Scope
from providers import cluster
from providers.cluster import Cluster
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from providers.listing import Keep
from resources.base.kinds import (
    DYNAMO_GRAPH,
    DYNAMO_GRAPH_V1BETA1,
    POD,
    PODCLIQUE,
    PODCLIQUESET,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    SERVICE,
    TOPOLOGY_BINDING,
    newer,
    unread,
)

pytestmark = pytest.mark.anyio

SCOPE = Scope((PODCLIQUESET,), (PODCLIQUE, POD, SERVICE), "a=b")


POD_BODY = {"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "n" * 1000}}


@dataclass
class Lists:
    """A client that has one object of each kind, and refuses to list some."""

    refused: Mapping[Kind, ClusterError]
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        self.asked.append((kind.name, namespace, labels))
        if kind in self.refused:
            raise self.refused[kind]
        labels_of_item = {"a": "b"} if labels or not namespace else {}
        return Listing(
            [{"metadata": {"name": kind.plural, "namespace": namespace or "lab", "uid": kind.name, "labels": labels_of_item}}], "1"
        )

    async def kinds(self) -> Sequence[Kind]:
        return (PODCLIQUESET, PODCLIQUE, POD)


class RawLists(Lists):
    """A client that leaves objects unparsed: four that are alike in each list."""

    async def lives(self, kind: Kind, namespace: str, labels: str, keep: Keep) -> tuple[Sequence[Live], str]:
        bodies = [{**POD_BODY, "metadata": {"name": f"p-{number}", "namespace": namespace, "uid": str(number)}} for number in range(4)]
        return [live(body, source=keep({}, orjson.dumps(body))) for body in bodies], "1"


async def look(refused: Mapping[Kind, ClusterError], scope: Scope = SCOPE) -> tuple[Observation, Lists]:
    client: Any = Lists(refused)
    return await Cluster(client, SystemClock()).observe(scope), client


async def test_roots_are_listed_as_they_are_and_children_by_their_label() -> None:
    seen, client = await look({})

    assert sorted(client.asked) == [
        ("Pod", "", "a=b"),
        ("PodClique", "", "a=b"),
        ("PodCliqueSet", "", ""),
        ("Service", "", "a=b"),
    ]
    assert [live.id.kind for live in seen.roots] == ["PodCliqueSet"]
    assert sorted(live.id.kind for live in seen.children) == ["Pod", "PodClique", "Service"]


async def test_only_the_namespaces_of_the_scope_are_listed() -> None:
    _, client = await look({}, Scope((PODCLIQUESET,), (), "a=b", ("one", "two")))

    assert sorted(client.asked) == [("PodCliqueSet", "one", ""), ("PodCliqueSet", "two", "")]


@pytest.mark.parametrize("trouble", [Forbidden("pods is forbidden"), ServerFault("etcd is away"), Unreachable("cut")])
async def test_a_kind_that_cannot_be_listed_is_incomplete_and_the_others_are_not(trouble: ClusterError) -> None:
    seen, _ = await look({POD: trouble})

    assert seen.incomplete == {"Pod": Unlisted(str(trouble), is_forbidden=isinstance(trouble, Forbidden))}
    assert sorted(live.id.kind for live in seen.children) == ["PodClique", "Service"]


async def test_a_kind_that_is_not_served_is_not_incomplete() -> None:
    seen, _ = await look({POD: NotFound("no such kind")})

    assert seen.incomplete == {}
    assert seen.unserved == frozenset({"Pod"})


async def test_a_kind_that_is_forbidden_and_not_served_is_not_incomplete() -> None:
    seen, _ = await look({SERVICE: Forbidden("services is forbidden")})

    assert seen.incomplete == {}
    assert seen.unserved == frozenset({"Service"})


async def test_so_many_bytes_stay_uncompressed_of_all_lists_of_an_observation_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PLAIN_BYTES", 2500)  # Two objects.
    client: Any = RawLists({})

    seen = await Cluster(client, SystemClock()).observe(Scope((), (POD,), "a=b", ("one", "two", "three")))

    sources = [live.source for live in seen.children]
    assert (len(sources), sum(isinstance(source, bytes) for source in sources)) == (12, 2 + 3)  # Each list has a dictionary.


async def test_a_kind_that_is_a_child_and_a_reference_is_listed_once() -> None:
    seen, client = await look({}, Scope((), (POD, SERVICE), "a=b", ("one",), (SERVICE,)))

    assert sorted(client.asked) == [("Pod", "one", "a=b"), ("Service", "one", "")]
    assert [live.id.kind for live in seen.children] == ["Pod"]
    assert [live.id.kind for live in seen.references] == ["Service"]

    everywhere, _ = await look({}, Scope((), (SERVICE,), "a=b", (), (SERVICE,)))
    assert everywhere.children == everywhere.references


async def test_a_kind_served_in_an_older_version_only_is_observed_and_cannot_be_created() -> None:
    absent: dict[Kind, ClusterError] = dict.fromkeys((RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE), NotFound("no such kind"))
    seen, client = await look(absent, Scope((), (RESOURCE_CLAIM,), "a=b", ("one",), (RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE)))

    assert [live.body["apiVersion"] for live in seen.references] == ["resource.k8s.io/v1beta2"] * 2
    assert seen.unserved == frozenset({"ResourceClaim"})
    assert len(client.asked) == 4

    none = {replace(kind, version=version): error for kind, error in absent.items() for version in ("v1", "v1beta2", "v1beta1")}
    seen, _ = await look(none, Scope((), (), "a=b", ("one",), (RESOURCE_CLAIM_TEMPLATE,)))
    assert (seen.references, seen.unserved) == ([], frozenset({"ResourceClaimTemplate"}))


async def test_without_valid_credentials_nothing_is_observed() -> None:
    with pytest.raises(Unauthorized):
        await look({POD: Unauthorized("log in again")})


async def test_a_server_that_answers_no_list_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        await look(dict.fromkeys((PODCLIQUESET, PODCLIQUE, POD, SERVICE), Unreachable("gone")))


async def test_references_are_listed_without_a_label_and_cluster_scoped_ones_once() -> None:
    seen, client = await look({}, Scope((), (), "a=b", ("one", "two"), (RESOURCE_CLAIM_TEMPLATE, TOPOLOGY_BINDING)))

    assert sorted(client.asked) == [
        ("ClusterTopologyBinding", "", ""),
        ("ResourceClaimTemplate", "one", ""),
        ("ResourceClaimTemplate", "two", ""),
    ]
    assert len(seen.references) == 3
    assert (seen.roots, seen.children) == ([], [])


async def test_cluster_scoped_roots_are_listed_once_for_any_namespaces_and_also_as_references() -> None:
    asked = [("ClusterTopologyBinding", "", ""), ("PodCliqueSet", "one", ""), ("PodCliqueSet", "two", "")]

    for references in ((), (TOPOLOGY_BINDING,)):
        seen, client = await look({}, Scope((PODCLIQUESET, TOPOLOGY_BINDING), (), "a=b", ("one", "two"), references))
        assert sorted(client.asked) == asked
        assert sorted(live.id.kind for live in seen.roots) == ["ClusterTopologyBinding", "PodCliqueSet", "PodCliqueSet"]
        assert [live.id.kind for live in seen.references] == [kind.name for kind in references]


# Graphs, which are written in two versions


async def test_a_kind_whose_list_fails_is_not_taken_for_unserved_because_its_newer_version_is() -> None:
    fault = ServerFault("etcd is slow")
    seen, _ = await look(
        {COMPUTE_DOMAIN: fault, newer(COMPUTE_DOMAIN)[0]: NotFound("no such kind")}, Scope((), (COMPUTE_DOMAIN,), "a=b", ("one",))
    )

    assert set(seen.incomplete) == {"ComputeDomain"} and not seen.unserved


async def test_a_kind_of_children_in_its_newer_version_only_is_listed_and_written_in_it() -> None:
    seen, _ = await look({COMPUTE_DOMAIN: NotFound("no such kind")}, Scope((), (COMPUTE_DOMAIN,), "a=b", ("one",)))

    assert [live.body["apiVersion"] for live in seen.children] == ["resource.nvidia.com/v1beta2"]
    assert seen.unserved == {unread(COMPUTE_DOMAIN)} and not seen.incomplete


@pytest.mark.parametrize("trouble", [NotFound("no such kind"), ServerFault("conversion webhook for nvidia.com/v1beta1 failed")])
async def test_graphs_that_the_server_has_in_the_newer_version_only_are_listed_and_written_in_it(trouble: ClusterError) -> None:
    patched: list[Kind] = []

    class Writing(Lists):
        async def patch(self, kind: Kind, namespace: str, name: str, patch: Any, **options: Any) -> dict[str, Any]:
            patched.append(kind)
            return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name, "uid": "u"}}

    client: Any = Writing({DYNAMO_GRAPH: trouble})
    cluster = Cluster(client, SystemClock())

    seen = await cluster.observe(Scope((DYNAMO_GRAPH,), (), "a=b"))
    (root,) = seen.roots
    await cluster.execute(Patch(root.id, "", Cause.DRIFT, patch={}, expect=Expect(root.uid, root.revision)), {})

    assert (root.body["apiVersion"], seen.unserved) == ("nvidia.com/v1beta1", frozenset({unread(DYNAMO_GRAPH)}))
    assert not seen.incomplete
    assert patched == [DYNAMO_GRAPH_V1BETA1]


async def test_graphs_are_listed_in_the_first_version_if_the_server_has_it() -> None:
    seen, _ = await look({}, Scope((DYNAMO_GRAPH,), (), "a=b"))

    assert ([root.body["apiVersion"] for root in seen.roots], seen.unserved) == (["nvidia.com/v1alpha1"], frozenset())
