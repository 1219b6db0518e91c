"""Placement: a set can ask to keep the pods of each of its domains in one NVLink clique (N31)."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from engine.paths import get
from engine.verb import Verb
from providers.fabrics.nvidia.names import NAMED, NVLINK_CLIQUE_LABEL
from providers.registry import SCHEDULERS
from resources.admission.admit import admit
from resources.admission.request import Act, Decision, Request
from resources.base import kinds
from resources.base.labels import DOMAIN_PLACEMENT
from tests.builders import clique, group
from tests.laws.fabric_worlds import settle
from tests.laws.rack import Rack
from tests.laws.toy import CONFIGURATION
from tests.mnnvl.asking import ask, complaints, plan_of, root, sharing, up
from tests.mnnvl.sets import OPTED_OUT, auto, gpu, gpus, said

LABEL = "engine.grove.io/computedomain"
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
MAP = "hall"
Body = dict[str, Any]


def placing(manifest: Body, value: str = "required", **more: str) -> Body:
    """The set, asking to keep its domains together."""
    return said(manifest, {**(manifest["metadata"].get("annotations") or {}), DOMAIN_PLACEMENT: value, **more})


def term(domain: str) -> Body:
    return {"labelSelector": {"matchLabels": {LABEL: domain}}, "topologyKey": NVLINK_CLIQUE_LABEL}


def pods(toy: Rack) -> dict[str, Body]:
    """The pods by clique and index."""
    bodies = [toy.objects[id] for id in toy.pods()]
    return {f"{_label(body, 'grove.io/podclique')}/{_label(body, 'grove.io/podclique-pod-index')}": body for body in bodies}


def _label(body: Body, key: str) -> str:
    return str(body["metadata"]["labels"].get(key, ""))


def terms(pod: Body, field: str = REQUIRED) -> list[Body]:
    return list(get(pod, ("spec", "affinity", "podAffinity", field), ()))


def warnings(manifest: Body, **more: Any) -> list[str]:
    return [warning for warning in ask(manifest, **more).warnings if DOMAIN_PLACEMENT in warning.lower()]


def annotate(toy: Rack, value: str | None) -> None:
    """Change what the live set asks for."""
    toy.write(root(), {"metadata": {"annotations": {DOMAIN_PLACEMENT: value}}})


def changes(toy: Rack) -> list[tuple[Verb, str]]:
    """What the next pass does, statuses aside."""
    return sorted((one.verb, one.id.kind) for one in plan_of(toy).operations if one.verb is not Verb.STATUS)


def test_N31_required_every_pod_of_a_domain_must_be_in_the_nvlink_clique_of_the_others_and_no_other_pod() -> None:
    toy = up(placing(auto(2, gpu(replicas=2), clique("frontend"))))

    assert {name: (_label(pod, LABEL), terms(pod)) for name, pod in pods(toy).items()} == {
        **{f"demo-{i}-worker/{k}": (f"demo-{i}", [term(f"demo-{i}")]) for i in range(2) for k in range(2)},
        **{f"demo-{i}-frontend/0": ("", []) for i in range(2)},
    }


def test_N31_preferred_is_a_term_of_the_largest_weight() -> None:
    (pod,) = pods(up(placing(auto(), "preferred"))).values()

    assert terms(pod) == []
    assert terms(pod, PREFERRED) == [{"weight": 100, "podAffinityTerm": term("demo-0")}]


@pytest.mark.parametrize("value", [None, "Required", "", "yes"])
def test_N31_without_being_asked_there_is_no_affinity_and_no_label(value: str | None) -> None:
    toy = up(auto() if value is None else placing(auto(), value))
    (pod,) = pods(toy).values() if toy.pods() else [{"metadata": {"labels": {}}, "spec": {}}]

    assert (_label(pod, LABEL), "affinity" in pod["spec"]) == ("", False)


def test_N31_pods_of_a_shared_domain_are_one_group_across_cliques_groups_replicas_and_sets() -> None:
    cliques = (gpu("a", annotations={NAMED: "rack"}), gpu("b", annotations={NAMED: "rack"}), gpu("c", annotations={NAMED: "other"}))
    one = placing(sharing(*cliques, name="one", replicas=2, groups=(group("g", "b", replicas=2),)))
    silent = sharing(gpu("a", annotations={NAMED: "rack"}), name="silent")
    toy = up(one, silent)
    of = {name: (_label(pod, LABEL), [one["labelSelector"]["matchLabels"][LABEL] for one in terms(pod)]) for name, pod in pods(toy).items()}

    assert {name: found for name, found in of.items() if found[0] == "rack"}.keys() == {
        *(f"one-{i}-a/0" for i in range(2)),
        *(f"one-{i}-g-{j}-b/0" for i in range(2) for j in range(2)),
    }
    assert of["one-0-c/0"] == ("other", ["other"]) and of["silent-0-a/0"] == ("", [])
    assert all([label] == terms for label, terms in of.values() if label)


def test_N31_the_users_affinity_is_kept_and_extended() -> None:
    own = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "zone"}
    node = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}}
    pod_affinity: Body = {REQUIRED: [own], PREFERRED: [{"weight": 1, "podAffinityTerm": own}]}
    affinity = {"nodeAffinity": node, "podAffinity": pod_affinity}
    toy = up(placing(auto(1, gpu(pod_spec={**gpus(), "affinity": affinity}))))
    (pod,) = pods(toy).values()

    assert pod["spec"]["affinity"] == {**affinity, "podAffinity": {**pod_affinity, REQUIRED: [own, term("demo-0")]}}


def test_N31_long_names_have_values_of_63_characters_that_differ() -> None:
    names = [f"{'a' * 70}-{number}" for number in range(3)] + ["a" * 63, "rack.example"]
    cliques = [gpu(f"c{number}", annotations={NAMED: name}) for number, name in enumerate(names)]
    values = [_label(pod, LABEL) for pod in pods(up(placing(sharing(*cliques)))).values()]

    assert len(set(values)) == len(names) and all(0 < len(value) <= 63 for value in values)
    assert {"a" * 63, "rack.example"} < set(values)
    assert sum("_" in value for value in values) == 3


def test_N31_asking_on_a_live_set_labels_its_pods_replaces_none_and_applies_to_new_ones() -> None:
    toy = up(auto(1, gpu(replicas=2)))
    uids = {name: pod["metadata"]["uid"] for name, pod in pods(toy).items()}
    annotate(toy, "required")
    planned = changes(toy)
    settle(toy)
    asked = pods(toy)
    toy.delete(next(id for id in toy.pods() if _label(toy.objects[id], "grove.io/podclique-pod-index") == "1"))
    settle(toy)
    replaced = pods(toy)

    assert set(planned) == {(Verb.PATCH, "Pod")}
    assert {name: pod["metadata"]["uid"] for name, pod in asked.items()} == uids
    assert [(_label(pod, LABEL), terms(pod)) for pod in asked.values()] == [("demo-0", []), ("demo-0", [])]
    assert terms(replaced["demo-0-worker/1"]) == [term("demo-0")] and terms(replaced["demo-0-worker/0"]) == []


def test_N31_pods_keep_their_label_when_the_set_asks_no_longer() -> None:
    toy = up(placing(auto(1, gpu(replicas=2))))
    annotate(toy, None)
    settle(toy)

    assert [_label(pod, LABEL) for pod in pods(toy).values()] == ["demo-0", "demo-0"]
    assert changes(toy) == []


def test_N31_neither_the_gangs_nor_the_cliques_carry_the_annotation_or_the_affinity() -> None:
    toy = up(placing(auto()))

    for id, body in toy.objects.items():
        if id.kind in ("PodGang", "PodClique", "ComputeDomain", "Service"):
            assert DOMAIN_PLACEMENT not in str(body) and LABEL not in str(body), id


def bound(*, key: str, side: str = "required", at: str = "set", scheduler: str = "kai-scheduler") -> Rack:
    """A set that asks, with a constraint on a level with this node label."""
    constraint: Body = {"topologyName": MAP, "pack": {side: "island"}}
    worker = gpu(pod_spec={**gpus(), "schedulerName": scheduler}, labels={"kai.scheduler/queue": "q"})
    manifest = auto(1, worker)
    template = manifest["spec"]["template"]
    (template if at == "set" else template["cliques"][0])["topologyConstraint"] = constraint
    toy = Rack()
    schedulers = {name: SCHEDULERS[name] for name in ("default-scheduler", "kai-scheduler")}
    toy.configuration = replace(toy.configuration, topology=True, schedulers=schedulers)
    levels = [{"domain": "island", "key": key}]
    kind = kinds.TOPOLOGY_BINDING
    toy.put({"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": MAP}, "spec": {"levels": levels}})
    toy.put(placing(manifest))
    settle(toy)
    return toy


@pytest.mark.parametrize(
    ("how", "added"),
    [
        ({"key": NVLINK_CLIQUE_LABEL}, False),
        ({"key": NVLINK_CLIQUE_LABEL, "at": "clique"}, False),
        ({"key": "zone"}, True),
        ({"key": NVLINK_CLIQUE_LABEL, "side": "preferred"}, True),
        ({"key": NVLINK_CLIQUE_LABEL, "scheduler": "default-scheduler"}, True),
    ],
)
def test_N31_a_topology_constraint_that_the_scheduler_observes_does_it_alone(how: Mapping[str, str], added: bool) -> None:
    (pod,) = pods(bound(**how)).values()

    assert (bool(terms(pod)), bool(_label(pod, LABEL))) == (added, added)


@pytest.mark.parametrize("value", ["Required", "", "true", "one"])
def test_N31_other_values_are_rejected_with_the_allowed_ones(value: str) -> None:
    issue = f'metadata.annotations.{DOMAIN_PLACEMENT}: Invalid value: "{value}": must be "required" or "preferred"'

    assert complaints(placing(auto(), value)) == [issue]
    assert complaints(placing(auto(), value), old=auto()) == [issue]
    assert complaints(placing(auto(2), value), old=placing(auto(), value)) == []


def test_N31_it_can_be_added_changed_and_removed() -> None:
    versions = [auto(), placing(auto()), placing(auto(), "preferred"), auto()]

    assert [complaints(new, old=old) for old, new in zip(versions, versions[1:], strict=False)] == [[], [], []]


def test_N31_in_another_place_or_spelling_it_has_no_effect_and_causes_a_warning() -> None:
    misplaced = sharing(gpu(annotations={NAMED: "rack", DOMAIN_PLACEMENT: "required"}), groups=(group("g", "worker"),))
    misplaced["spec"]["template"]["podCliqueScalingGroups"][0]["annotations"] = {DOMAIN_PLACEMENT: "required"}
    spelled = said(auto(), {**auto()["metadata"]["annotations"], "engine.grove.io/Domain-Placement": "required"})

    assert warnings(misplaced) == [
        f"spec.template.{place}.annotations[{DOMAIN_PLACEMENT}] has no effect: it is read from metadata.annotations"
        for place in ("podCliqueScalingGroups[0]", "cliques[0]")
    ]
    assert len(warnings(spelled)) == 1 and warnings(spelled)[0].endswith(f"has no effect: the annotation is {DOMAIN_PLACEMENT}")
    assert warnings(placing(auto())) == []


def test_N31_without_a_domain_it_has_no_effect_and_causes_a_warning() -> None:
    text = f"metadata.annotations[{DOMAIN_PLACEMENT}] has no effect: no clique joins a domain that can be kept together"

    assert warnings(placing(said(auto(), OPTED_OUT))) == [text]
    assert warnings(placing(auto(1, clique("frontend")))) == [text]


def on(scheduler: str, pod_spec: Body) -> Decision:
    """The decision about a set that asks, whose pods have this scheduler."""
    manifest = placing(auto(1, gpu(pod_spec={**pod_spec, "schedulerName": scheduler}, labels={"kai.scheduler/queue": "q"})))
    configuration = replace(CONFIGURATION, schedulers=SCHEDULERS)
    return admit(Request(Act.CREATE, root(), manifest, None), configuration)


def test_N31_a_scheduler_that_may_ignore_affinity_causes_a_warning() -> None:
    found = {name: [text for text in on(name, gpus()).warnings if DOMAIN_PLACEMENT in text] for name in SCHEDULERS}

    assert {name for name, texts in found.items() if texts} == {"lpx-scheduler"}
    assert found["lpx-scheduler"][0].startswith(f"metadata.annotations[{DOMAIN_PLACEMENT}] may have no effect: lpx-scheduler")


def test_N31_a_required_affinity_to_other_pods_besides_causes_a_warning() -> None:
    own = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "zone"}
    decision = on("default-scheduler", {**gpus(), "affinity": {"podAffinity": {REQUIRED: [own]}}})

    assert any("places a pod only beside pods that match all of them" in warning for warning in decision.warnings)
