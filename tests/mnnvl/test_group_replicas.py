"""N27: a name for each replica of a scaling group, by the token $(GROVE_PCSG_INDEX) (docs/behaviour)."""

from itertools import product
from typing import Any

import pytest

from engine.memo import Memo
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import NAMED
from resources.base import kinds
from resources.domains.requests import requested_by_set, scaled_groups
from resources.domains.status import domain_statuses
from resources.registry import BLUEPRINTS
from tests.builders import group, podcliqueset
from tests.laws.fabric_worlds import settle
from tests.laws.rack import Rack
from tests.mnnvl.asking import claimed, complaints, done_to_domains, plan_of, root, sharing, uids, up
from tests.mnnvl.sets import gpu, gpus, named

EACH = "rack-$(GROVE_PCS_INDEX)-$(GROVE_PCSG_INDEX)"


def pooled(domain: str = EACH, replicas: int = 1, units: int = 2, **more: Any) -> dict[str, Any]:
    """A set with a scaling group of two cliques in domains of that name."""
    cliques = gpu("leader", annotations={NAMED: domain}), gpu("worker", 2, annotations={NAMED: domain})
    return sharing(*cliques, groups=(group("pool", "leader", "worker", replicas=units),), replicas=replicas, **more)


def scale_pool(toy: Rack, units: int, index: int = 0) -> None:
    """An autoscaler has scaled the scaling group."""
    toy.write(kinds.SCALING_GROUP.id("default", f"demo-{index}-pool"), {"spec": {"replicas": units}})


def test_N27_each_replica_of_a_scaling_group_has_its_own_domain() -> None:
    toy = up(pooled(replicas=2))

    assert list(toy.domains()) == [f"rack-{index}-{unit}" for index, unit in product(range(2), range(2))]
    assert claimed(toy) == {
        f"demo-{index}-pool-{unit}-{name}": [f"rack-{index}-{unit}"] * pods
        for index, unit, (name, pods) in product(range(2), range(2), (("leader", 1), ("worker", 2)))
    }


def test_N27_the_same_name_is_the_same_domain_in_replicas_cliques_and_sets() -> None:
    cliques = gpu("a", annotations={NAMED: "rack-$(GROVE_PCSG_INDEX)"}), gpu("b", annotations={NAMED: "rack-1"})
    toy = up(sharing(*cliques, groups=(group("pool", "a", replicas=2),), replicas=2), named("rack-0", "other"))

    assert list(toy.domains()) == ["rack-0", "rack-1"]
    assert claimed(toy) == {
        **{f"demo-{index}-pool-{unit}-a": [f"rack-{unit}"] for index, unit in product(range(2), range(2))},
        **{f"demo-{index}-b": ["rack-1"] for index in range(2)},
        "other-0-frontend": [],
        "other-0-worker": ["rack-0"],
    }


def test_N27_scaling_groups_of_different_sizes_share_the_domains_that_both_have() -> None:
    cliques = gpu("a", annotations={NAMED: EACH}), gpu("b", annotations={NAMED: EACH})
    toy = up(sharing(*cliques, groups=(group("one", "a", replicas=1), group("three", "b", replicas=3))))

    assert claimed(toy) == {
        "demo-0-one-0-a": ["rack-0-0"],
        "demo-0-three-0-b": ["rack-0-0"],
        "demo-0-three-1-b": ["rack-0-1"],
        "demo-0-three-2-b": ["rack-0-2"],
    }


def test_N27_domains_follow_the_scaling_group_and_the_others_stay() -> None:
    toy = up(pooled(units=1, replicas=2))
    before = uids(toy)
    scale_pool(toy, 3)
    settle(toy)
    assert before.items() <= uids(toy).items()
    assert list(toy.domains()) == ["rack-0-0", "rack-0-1", "rack-0-2", "rack-1-0"]
    assert claimed(toy)["demo-0-pool-2-leader"] == ["rack-0-2"]
    scale_pool(toy, 1)
    done = done_to_domains(toy)

    assert (uids(toy), {name for verb, name in done if verb == "delete"}) == (before, {"rack-0-1", "rack-0-2"})


def test_N27_a_domain_is_released_after_the_pods_of_its_replica_of_the_scaling_group() -> None:
    toy = up(pooled(units=2))
    scale_pool(toy, 1)

    def deleted() -> list[str]:
        return [each.id.kind for each in plan_of(toy).operations if str(each.verb) == "delete" and each.id.kind in ("Pod", "ComputeDomain")]

    # The driver of this cluster plays no part until pods are gone: domains are deleted when nothing claims them.
    assert "ComputeDomain" not in deleted()
    (wait,) = [wait for wait in plan_of(toy).pending if wait.id.name == "rack-0-1"]
    assert wait.why.startswith("demo no longer requests it; waits for 3 pods")
    settle(toy)
    assert list(toy.domains()) == ["rack-0-0"]


@pytest.mark.parametrize("name", [EACH, "rack-$(GROVE_PCSG_INDEX)"])
def test_N27_on_a_clique_outside_scaling_groups_the_token_is_rejected(name: str) -> None:
    manifest = sharing(gpu(annotations={NAMED: name}))
    (complaint,) = complaints(manifest)

    assert complaint.startswith(
        f'spec.template.cliques[0].annotations[nvidia.com/computedomain]: Invalid value: "{name}": $(GROVE_PCSG_INDEX)'
    )
    assert "this clique is in no scaling group" in complaint
    assert (complaints(pooled(name)), complaints(pooled(name), flag=False)) == ([], [])
    assert up(manifest).domains() == {}


def test_N27_a_name_with_the_token_must_be_valid_too() -> None:
    assert "DNS-1123 subdomain" in complaints(pooled("Rack-$(GROVE_PCSG_INDEX)"))[0]


@pytest.mark.parametrize(("template", "is_allowed"), [("rack-0-7", False), ("rack-0-0", False), ("rack-5-0", True), ("rack-0-x", True)])
def test_N27_a_second_channel_is_found_for_any_replica_of_the_scaling_group(template: str, is_allowed: bool) -> None:
    claims = {"resourceClaims": [{"name": "extra", "resourceClaimTemplateName": template}]}
    cliques = gpu("a", annotations={NAMED: EACH}, pod_spec={**gpus(), **claims})
    found = complaints(sharing(cliques, groups=(group("pool", "a"),)))

    assert (found == []) == is_allowed
    assert all("a node has one channel" in each for each in found)


def test_N27_reports_count_the_replicas_that_the_scaling_group_has_now() -> None:
    manifest = pooled(units=1, replicas=2)
    toy = up(manifest)
    scale_pool(toy, 2)
    settle(toy)
    (observed,) = toy.world().roots
    requested = requested_by_set(root(), manifest, Nvidia(), scaled_groups([observed]))
    statuses = domain_statuses(observed, plan_of(toy), toy.configuration)

    assert {domain.id.name: (domain.pods, domain.index) for domain in requested} == {
        "rack-0-0": (3, 0),
        "rack-0-1": (3, 0),
        "rack-1-0": (3, 1),
    }
    assert [domain.id.name for domain in requested_by_set(root(), manifest, Nvidia())] == ["rack-0-0", "rack-1-0"]
    assert {status.id.name: (str(status.state), sum((status.pods or {}).values())) for status in statuses} == {
        "rack-0-0": ("joining", 3),
        "rack-0-1": ("joining", 3),
        "rack-1-0": ("joining", 3),
    }


@pytest.mark.parametrize(("name", "pods"), [("rack", {"rack": 9}), ("rack-$(GROVE_PCS_INDEX)", {"rack-0": 6, "rack-1": 3})])
def test_N27_pods_of_scaled_groups_are_counted_in_domains_of_other_names_too(name: str, pods: dict[str, int]) -> None:
    manifest = pooled(name, units=1, replicas=2)
    toy = up(manifest)
    scale_pool(toy, 2)
    requested = requested_by_set(root(), manifest, Nvidia(), scaled_groups(toy.world().roots))

    assert {domain.id.name: domain.pods for domain in requested} == pods


def test_N27_very_large_numbers_of_replicas_are_read_up_to_a_limit() -> None:
    manifest = pooled("rack-$(GROVE_PCSG_INDEX)", units=10**9, replicas=10**9)

    assert len(list(requested_by_set(root(), manifest, Nvidia()))) == 100_000


def test_N27_an_unchanged_set_has_the_same_desired_objects() -> None:
    toy, memo = up(pooled(replicas=2)), Memo()
    (observed,) = toy.world().roots
    first, again = (BLUEPRINTS[0].desire(observed, toy.now, toy.configuration, memo).graph.parts[1:] for _ in range(2))

    assert len(first) == 3 and all(one is other for one, other in zip(first, again, strict=True))


def test_N27_the_set_is_deleted_with_all_its_domains() -> None:
    toy = up(pooled(replicas=2))
    toy.delete(root())
    settle(toy)

    assert toy.objects == {}


def test_N27_podcliquesets_without_the_token_read_no_scaling_groups() -> None:
    toy = up(podcliqueset("demo", gpu("a", annotations={NAMED: "rack"}), groups=(group("pool", "a"),)), flag=False)
    scale_pool(toy, 3)
    settle(toy)

    assert list(toy.domains()) == ["rack"] and len(claimed(toy)) == 3
