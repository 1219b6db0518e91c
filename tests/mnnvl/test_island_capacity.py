"""Island capacity: previews say which domains cannot be in one NVLink clique, and preflight says the same (N30)."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.observed import Unlisted, live
from engine.runtime.provider import Observation, Scope
from enginectl.actions.facts import FactReader, capacities_and_room
from providers.fabrics.nvidia import inspection as nvidia
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, NAMED
from providers.snapshot import Snapshot
from resources.domains.capacity import NodeCapacity, island_notes
from resources.ports.checks import CheckResult
from resources.preview.forecasting import Needs
from tests.mnnvl.asking import root, sharing
from tests.mnnvl.sets import OPTED_OUT, auto, gpu, said
from tests.mnnvl.test_placement import placing
from tests.providers.fabrics.objects import claim, inventory, node
from tests.providers.fabrics.test_nvidia_checks import found, site

NVIDIA = Nvidia(auto=True)
APART = "its pods will not all reach one another over NVLink"
PENDING = "the pods that do not fit stay Pending"
Body = dict[str, Any]


def cluster(*sizes: int, **taken: str) -> NodeCapacity:
    """NVLink cliques of these sizes: nodes a0, a1, …, b0, …; some taken by a domain."""
    islands = {f"{letter}{number}": letter for letter, size in zip("abcdef", sizes, strict=False) for number in range(size)}
    return NodeCapacity(frozenset(islands), taken, islands)


def notes(manifests: list[Body], capacity: NodeCapacity | None, uids: Mapping[str, str] | None = None) -> dict[str, list[str]]:
    sets = [(root(manifest["metadata"]["name"]), manifest) for manifest in manifests]
    known = {COMPUTE_DOMAIN.id("default", name): uid for name, uid in (uids or {}).items()}
    return {id.name: list(listed) for id, listed in island_notes(NVIDIA, sets, capacity, known).items()}


def workers(count: int, replicas: int = 1, name: str = "demo") -> Body:
    return auto(replicas, gpu(replicas=count), name=name)


def test_N30_a_domain_that_needs_more_nodes_than_a_clique_can_have_has_a_note_whatever_is_known_of_nodes() -> None:
    text = f"ComputeDomain demo-0 needs 19 nodes of one NVLink clique, and a domain can have at most 18 of one; {APART}"

    assert notes([workers(19)], None) == notes([workers(19)], cluster(36)) == {"demo": [text]}
    assert notes([workers(18)], None) == notes([workers(18)], cluster(36)) == {}


def test_N30_the_largest_clique_that_the_labels_of_nodes_show_is_the_limit() -> None:
    assert notes([workers(5)], cluster(4, 3)) == {
        "demo": [f"ComputeDomain demo-0 needs 5 nodes of one NVLink clique, and the largest has 4; {APART}"]
    }
    assert notes([workers(4)], cluster(4, 3)) == {}


def test_N30_the_free_nodes_of_one_clique_must_suffice() -> None:
    taken = cluster(4, 4, a0="uid-x", a1="uid-x", b3="uid-y")

    assert notes([workers(3)], taken) == {}
    assert notes([workers(4)], taken) == {
        "demo": [f"ComputeDomain demo-0 needs 4 nodes of one NVLink clique: at most 3 are free in one; {APART}"]
    }


def test_N30_the_nodes_of_a_running_domain_are_its_own_and_new_pods_must_join_them() -> None:
    running = cluster(4, 4, a0="uid-demo-0", a1="uid-demo-0", a2="uid-x")
    uids = {"demo-0": "uid-demo-0"}

    assert notes([workers(2)], running, uids) == notes([workers(3)], running, uids) == {}
    assert notes([workers(4)], running, uids) == {
        "demo": [
            f"ComputeDomain demo-0 needs 4 nodes of one NVLink clique: at most 3 of the one that it is in are free or its own; {APART}"
        ]
    }


def test_N30_a_domain_that_is_split_already_has_no_note_its_status_says_so() -> None:
    assert notes([workers(2)], cluster(2, 2, a0="u", b0="u"), {"demo-0": "u"}) == {}


def test_N30_domains_compete_for_cliques_the_largest_first_each_in_the_smallest_that_suffices() -> None:
    assert notes([workers(2, name="small"), workers(4, name="large")], cluster(2, 4)) == {}
    assert notes([workers(3, name="small"), workers(4, name="large")], cluster(2, 4)) == {
        "small": [
            "ComputeDomain small-0 needs 3 nodes of one NVLink clique: at most 2 are free in one when the larger domains have theirs; "
            + APART
        ]
    }


def test_N30_replicas_count_as_domains_of_their_own_and_share_a_note() -> None:
    (note,) = notes([workers(4, 5)], cluster(4, 4))["demo"]

    assert note.startswith("each of the ComputeDomains demo-2, demo-3, demo-4 needs 4 nodes of one NVLink clique: at most 0 are free")


def test_N30_a_shared_domain_is_counted_once_with_the_pods_of_all_its_sets() -> None:
    sets = [sharing(gpu("w", 2, annotations={NAMED: "rack"}), name=name) for name in ("one", "two")]
    text = f"ComputeDomain rack needs 4 nodes of one NVLink clique, and the largest has 3; {APART}"

    assert notes(sets, cluster(3, 3)) == {"one": [text], "two": [text]}
    assert notes(sets, cluster(4)) == {}


def test_N30_where_placement_is_required_the_pods_stay_pending() -> None:
    assert notes([placing(workers(5))], cluster(4))["demo"][0].endswith(f"the largest has 4; {PENDING}")
    assert notes([placing(workers(5), "preferred")], cluster(4))["demo"][0].endswith(APART)


def test_N30_without_a_label_on_any_node_required_pods_stay_pending() -> None:
    unlabelled, unknown = NodeCapacity(frozenset({"n1", "n2"}), {}, {}), NodeCapacity(frozenset({"n1", "n2"}))
    text = "no node has the label nvidia.com/gpu.clique: with engine.grove.io/domain-placement: required its pods stay Pending"

    assert notes([placing(workers(2))], unlabelled) == {"demo": [text]}
    assert notes([placing(workers(2))], unknown) == notes([workers(2)], unlabelled) == {}


@pytest.mark.parametrize("manifest", [said(auto(), OPTED_OUT), workers(1), workers(500, 0)])
def test_N30_sets_without_domains_of_several_pods_have_no_note(manifest: Body) -> None:
    assert notes([manifest], cluster(1)) == {}


class Watched(Snapshot):
    """A cluster that records what is listed, and may refuse to list nodes."""

    listed: list[str] = []
    refuses = False

    async def observe(self, scope: Scope) -> Observation:
        """What there is of the kinds."""
        names = [kind.name for kind in scope.references]
        self.listed.extend(names)
        if self.refuses and "Node" in names:
            return Observation((), (), {"Node": Unlisted("nodes is forbidden", is_forbidden=True)}, [])
        return await super().observe(scope)


@pytest.mark.anyio
async def test_N30_nodes_are_listed_once_and_a_cluster_that_refuses_it_is_as_if_their_labels_were_not_known() -> None:
    objects = (inventory("a0"), inventory("b0"), claim("p", "a0"), node("a0", clique="a"), node("b0", clique="b"))
    Watched.listed, Watched.refuses = [], False
    known, _ = await capacities_and_room(FactReader(Watched(objects)), Needs(fabrics=(NVIDIA,)))
    Watched.refuses = True
    refused, _ = await capacities_and_room(FactReader(Watched(objects)), Needs(fabrics=(NVIDIA,)))

    assert Watched.listed.count("Node") == 2
    assert known == {NVIDIA.kind.key: NodeCapacity(frozenset({"a0", "b0"}), {"a0": "uid-demo-0"}, {"a0": "a", "b0": "b"})}
    assert refused == {NVIDIA.kind.key: NodeCapacity(frozenset({"a0", "b0"}), {"a0": "uid-demo-0"})}


def test_N30_preflight_has_the_same_notes() -> None:
    check = found(site(sets=(live(_stored(workers(3))),)))["nodes of one NVLink clique for each domain"]
    sound = found(site())["nodes of one NVLink clique for each domain"]

    assert check.finding == f"default/demo: ComputeDomain demo-0 needs 3 nodes of one NVLink clique, and the largest has 1; {APART}"
    assert (check.outcome, sound.outcome) == (CheckResult.BAD, CheckResult.GOOD)


def test_N30_preflight_without_the_nodes_cannot_judge_it() -> None:
    check = found(site({nvidia.NVLINK_NODES: "nodes is forbidden"}))["nodes of one NVLink clique for each domain"]

    assert (check.outcome, check.finding) == (CheckResult.UNKNOWN, "cannot be judged: nodes is forbidden")


def _stored(manifest: Body) -> Body:
    return {**manifest, "metadata": {**manifest["metadata"], "uid": "uid-demo"}}
