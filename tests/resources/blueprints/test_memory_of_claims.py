"""The memory budget counts the claims that pods share."""

from datetime import timedelta

from msgspec.structs import replace

from engine.resource import Body
from resources.base import kinds
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.laws.toy import Toy
from tests.resources.blueprints.test_memory_budget import SET_OF_TEN, Limited, scale, seen, waits


def sharing(name: str, workers: int, replicas: int = 1) -> Body:
    """A set with a group of two replicas, which shares claims on every level."""
    own, all = share("devices", "PerReplica"), share("devices", "AllReplicas")
    cliques = (clique("worker", workers, resourceSharing=[own]), clique("leader", 2, resourceSharing=[all]))
    groups = (group("g", "leader", replicas=2, resourceSharing=[share("parts", "PerReplica")]),)
    templates = [claim_template(each) for each in ("devices", "parts", "each", "wide")]
    shares = [share("each", "PerReplica"), share("wide")]
    return podcliqueset(name, *cliques, groups=groups, replicas=replicas, resourceClaimTemplates=templates, resourceSharing=shares)


def claims(cluster: Limited) -> int:
    return sum(id.kind == kinds.RESOURCE_CLAIM.name for id in cluster.objects)


def test_claims_that_pods_share_are_counted_on_every_level() -> None:
    (blueprint,) = [each for each in Toy.blueprints if each.kind == kinds.PODCLIQUESET]
    cluster, body = Limited(1000 * SET_OF_TEN), sharing("web", 3, replicas=2)
    unshared = [{key: value for key, value in each.items() if key != "resourceSharing"} for each in body["spec"]["template"]["cliques"]]
    bare = podcliqueset("web", *unshared, groups=(group("g", "leader", replicas=2),), replicas=2)
    cluster.put(body)
    cluster.settled()

    asked = [blueprint.asked(seen(each), Toy.configuration) for each in (body, bare)]

    assert asked[0].objects - asked[1].objects == claims(cluster) == 2 * (3 + 2 * 1 + 2 + 1) + 1
    assert blueprint.asked(replace(seen(body), unserved=frozenset({kinds.RESOURCE_CLAIM.key})), Toy.configuration) == asked[1]


def test_a_set_whose_claims_have_no_room_waits_and_one_that_is_scaled_gets_pods_with_their_claims() -> None:
    cluster = Limited(6 * SET_OF_TEN)
    cluster.put(sharing("web", 3))
    cluster.add("other")
    cluster.now += timedelta(minutes=1)
    cluster.put(sharing("new", 40))
    cluster.settled()
    assert cluster.pods_of_sets().keys() == {"web", "other"}

    scale(cluster, kinds.PODCLIQUE, "web-0-worker", 1000)
    plans = cluster.settled()

    assert waits(plans["web"]) and cluster.taken() <= cluster.most
    assert claims(cluster) == cluster.pods_of_sets()["web"] - 4 + 6 > 9
