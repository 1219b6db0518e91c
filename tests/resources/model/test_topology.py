"""Topology: how constraints reach the gangs, and how the set reports constraints without effect."""

from typing import Any

import pytest

from engine import world
from engine.guard import Limits
from engine.memo import Memo
from engine.observed import Unlisted, live
from engine.tick import plan_all
from engine.verb import Verb
from providers.schedulers.kube import KubeScheduler
from resources.base import kinds, labels
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import START, Toy

ON = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler", topology=True)
ZONE, RACK, HOST = "topology.kubernetes.io/zone", "example.com/rack", "kubernetes.io/hostname"
KEYS = {"zone": ZONE, "rack": RACK, "host": HOST}


def binding(*domains: str) -> dict[str, Any]:
    """A binding with these levels."""
    levels = [{"domain": domain, "key": KEYS[domain]} for domain in domains]
    return {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", "metadata": {"name": "t"}, "spec": {"levels": levels}}


def pack(name: str = "", **sides: str) -> dict[str, Any]:
    """A constraint."""
    return {"pack": sides} | ({"topologyName": name} if name else {})


def s(whole: Any = None, part: Any = None, leaf: Any = None) -> dict[str, Any]:
    """A set with a clique and a group of two cliques, of whose three replicas two are in the base gang; with constraints."""
    leader = clique("l") | ({"topologyConstraint": leaf} if leaf else {})
    pool = group("g", "l", "w", replicas=3, min_available=2, **({"topologyConstraint": part} if part else {}))
    return podcliqueset("s", clique("r"), leader, clique("w"), groups=(pool,), **({"topologyConstraint": whole} if whole else {}))


class Racks(Toy):
    """A toy cluster with topology enabled."""

    configuration = ON

    def gang(self, name: str) -> dict[str, Any]:
        """The spec of a gang without its pods, with the name of its binding."""
        body = self.objects[kinds.PODGANG.id("default", name)]
        groups = [{key: one[key] for key in one if key not in ("podReferences", "minReplicas")} for one in body["spec"]["podgroups"]]
        return {**body["spec"], "podgroups": groups, "name": body["metadata"].get("annotations", {}).get("grove.io/topology-name")}

    def condition(self) -> tuple[str, str, str] | None:
        """The condition TopologyLevelsUnavailable of the set."""
        status = self.objects[kinds.PODCLIQUESET.id("default", "s")].get("status", {})
        found = [one for one in status.get("conditions", ()) if one["type"] == "TopologyLevelsUnavailable"]
        return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else None


def up(manifest: dict[str, Any], *bindings: dict[str, Any], settings: Configuration = ON) -> Racks:
    """A cluster in which the set is deployed. It has our finalizer: as a new set it would be rejected for invalid constraints."""
    toy = Racks()
    toy.configuration = settings
    known = {**manifest, "metadata": {**manifest["metadata"], "finalizers": [labels.SET_FINALIZER]}}
    for body in (*bindings, known):
        toy.put(body)
    toy.settle()
    return toy


def required(key: str) -> dict[str, Any]:
    """A constraint of a gang."""
    return {"packConstraint": {"required": key}}


def test_constraints_of_the_set_and_of_a_group_reach_base_and_scaled_gangs() -> None:
    toy = up(s(whole=pack("t", required="zone"), part=pack(required="rack")), binding("zone", "rack"))

    names = ["s-0-r", "s-0-g-0-l", "s-0-g-0-w", "s-0-g-1-l", "s-0-g-1-w"]
    assert toy.gang("s-0") == {
        "name": "t",
        "podgroups": [{"name": name} for name in names],
        "topologyConstraint": required(ZONE),
        "topologyConstraintGroupConfigs": [
            {"name": "s-0-g-0", "podGroupNames": ["s-0-g-0-l", "s-0-g-0-w"], "topologyConstraint": required(RACK)},
            {"name": "s-0-g-1", "podGroupNames": ["s-0-g-1-l", "s-0-g-1-w"], "topologyConstraint": required(RACK)},
        ],
    }
    assert toy.gang("s-0-g-0") == {
        "name": "t",
        "podgroups": [{"name": "s-0-g-2-l"}, {"name": "s-0-g-2-w"}],
        "topologyConstraint": required(RACK),
    }
    assert toy.condition() == ("False", "AllClusterTopologyLevelsAvailable", "All topology levels are available")


def test_a_scaled_gang_of_a_group_without_constraint_has_the_constraint_of_the_set() -> None:
    toy = up(s(whole=pack("t", preferred="zone")), binding("zone"))

    assert toy.gang("s-0-g-0")["topologyConstraint"] == {"packConstraint": {"preferred": ZONE}}
    assert "topologyConstraintGroupConfigs" not in toy.gang("s-0")


def test_the_constraint_of_a_clique_is_that_of_its_pod_group_and_its_binding_is_used_for_all() -> None:
    toy = up(s(part=pack(required="rack"), leaf=pack("t", required="host", preferred="rack")), binding("rack", "host"))

    leader = {"packConstraint": {"required": HOST, "preferred": RACK}}
    assert [one.get("topologyConstraint") for one in toy.gang("s-0")["podgroups"]] == [None, leader, None, leader, None]
    assert [one.get("topologyConstraint") for one in toy.gang("s-0-g-0")["podgroups"]] == [leader, None]
    assert "topologyConstraint" not in toy.gang("s-0")
    assert toy.gang("s-0")["name"] == "t"


def test_the_deprecated_pack_domain_means_required() -> None:
    toy = up(s(whole={"topologyName": "t", "packDomain": "zone"}), binding("zone"))

    assert toy.gang("s-0")["topologyConstraint"] == required(ZONE)


@pytest.mark.parametrize(
    ("manifest", "bindings", "condition", "note"),
    [
        (
            s(whole=pack("t", required="zone", preferred="host"), part=pack(required="rack")),
            [binding("zone")],
            ("True", "ClusterTopologyLevelsUnavailable", "Unavailable topology domains: [host rack]"),
            "spec.template.podCliqueScalingGroups[0].topologyConstraint: domain rack has no effect: "
            "ClusterTopologyBinding t has no such level",
        ),
        (
            s(whole=pack("t", required="zone")),
            [],
            ("Unknown", "ClusterTopologyNotFound", "ClusterTopologyBinding resource not found"),
            "topology constraints have no effect: ClusterTopologyBinding t: not found",
        ),
        (
            s(whole=pack(required="zone")),
            [binding("zone")],
            ("Unknown", "TopologyNameMissing", "PodCliqueSet topology constraints must include topologyName"),
            "topology constraints have no effect: none of them has a topologyName",
        ),
        (s(), [], ("False", "AllClusterTopologyLevelsAvailable", "No topology constraints defined"), ""),
    ],
)
def test_a_constraint_without_effect_is_reported_in_a_condition_and_a_note(
    manifest: dict[str, Any], bindings: list[dict[str, Any]], condition: tuple[str, str, str], note: str
) -> None:
    toy = up(manifest, *bindings)

    assert toy.condition() == condition
    notes = toy.plans()[0].notes
    assert (note in notes) if note else (notes == ())


def test_only_a_domain_that_is_no_level_is_left_out() -> None:
    toy = up(s(whole=pack("t", required="zone", preferred="host"), part=pack(required="rack")), binding("zone"))

    assert toy.gang("s-0")["topologyConstraint"] == required(ZONE)
    assert toy.gang("s-0")["topologyConstraintGroupConfigs"][0] == {"name": "s-0-g-0", "podGroupNames": ["s-0-g-0-l", "s-0-g-0-w"]}
    assert "topologyConstraint" not in toy.gang("s-0-g-0")
    assert toy.gang("s-0-g-0")["name"] is None


def test_if_topology_is_disabled_gangs_have_no_constraints_and_the_condition_is_unknown() -> None:
    off = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler")
    toy = up(s(whole=pack("t", required="zone")), binding("zone"), settings=off)
    plain = up(s(), binding("zone"), settings=off)

    assert "topologyConstraint" not in toy.gang("s-0") and toy.gang("s-0")["name"] is None
    message = "Topology constraints are defined but Topology Aware Scheduling is disabled"
    assert toy.condition() == ("Unknown", "TopologyAwareSchedulingDisabled", message)
    assert plain.condition() is None
    assert kinds.TOPOLOGY_BINDING not in BLUEPRINTS[0].references(off)


def test_gangs_follow_changes_of_the_binding() -> None:
    toy = up(s(whole=pack("t", required="zone")), binding("zone"))
    id = kinds.TOPOLOGY_BINDING.id("", "t")
    toy.write(id, {"spec": {"levels": [{"domain": "zone", "key": "example.com/hall"}]}})
    toy.settle()
    assert toy.gang("s-0")["topologyConstraint"] == required("example.com/hall")

    toy.write(id, {"spec": {"levels": [{"domain": "rack", "key": RACK}]}})
    toy.settle()
    assert toy.condition() == ("True", "ClusterTopologyLevelsUnavailable", "Unavailable topology domains: [zone]")

    del toy.objects[id]
    toy.settle()
    assert toy.condition() == ("Unknown", "ClusterTopologyNotFound", "ClusterTopologyBinding resource not found")


def test_a_binding_that_could_not_be_listed_does_not_count_as_missing() -> None:
    toy = up(s(whole=pack("t", required="zone")), binding("zone"))
    lives = [live(body) for body in toy.objects.values()]
    roots = [one for one in lives if one.id.kind == "PodCliqueSet"]
    children = [one for one in lives if one.id.kind not in ("PodCliqueSet", "ClusterTopologyBinding")]
    observed = world.assemble(BLUEPRINTS, roots, children, {"ClusterTopologyBinding": Unlisted("403")})
    (plan,) = plan_all(BLUEPRINTS, observed, START, ON, Memo(), Limits()).plans
    assert plan.operations == ()

    without_children = world.assemble(BLUEPRINTS, roots, [], {"ClusterTopologyBinding": Unlisted("403")})
    (plan,) = plan_all(BLUEPRINTS, without_children, START, ON, Memo(), Limits()).plans
    assert not any(one.verb is Verb.CREATE and one.id.kind in ("PodGang", "Pod") for one in plan.operations)
    assert {held.id.kind for held in plan.deferred} >= {"PodGang", "Pod"}
