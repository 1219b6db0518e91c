"""N24, N25: the domains of a live set are those that its objects record; edits of the annotations are faults (docs/behaviour)."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.ids import ResourceId
from engine.memo import Memo
from engine.verb import Verb
from providers.fabrics.nvidia.names import AUTO, GROUP, NAMED
from resources.base import kinds, labels
from tests.builders import clique, group, podcliqueset
from tests.laws.fabric_worlds import pass_, scale, settle
from tests.laws.rack import Rack
from tests.mnnvl.asking import claimed, done_to_domains, plan_of, root, sharing, uids, up
from tests.mnnvl.sets import auto, computedomain, gpu, gpus, named, said

DEMO = root()
STAYS = "it has no effect: it stays as recorded until the set is deleted and created again"
AT_MODE = "metadata.annotations.grove.io/auto-mnnvl"
AT_NAME = "spec.template.cliques[0].annotations[nvidia.com/computedomain]"


def annotate(toy: Rack, mode: str | None) -> None:
    """A user changes the mode of the stored set, and no webhook objects."""
    toy.write(DEMO, {"metadata": {"annotations": {AUTO: mode}}})


def edit(toy: Rack, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """A user changes each clique of the stored template, and no webhook objects."""
    body = toy.objects[DEMO]
    cliques = [change(dict(entry)) for entry in body["spec"]["template"]["cliques"]]
    generation = body["metadata"]["generation"] + 1
    toy.write(DEMO, {"metadata": {"generation": generation}, "spec": {"template": {"cliques": cliques}}})


def rename(toy: Rack, name: str | None, *cliques: str) -> None:
    """A user changes the domain name of some cliques; None removes it."""

    def renamed(entry: dict[str, Any]) -> dict[str, Any]:
        if cliques and entry["name"] not in cliques:
            return entry
        others = {key: value for key, value in (entry.get("annotations") or {}).items() if key != NAMED}
        return {**entry, "annotations": {**others, **({NAMED: name} if name else {})}}

    edit(toy, renamed)


def new_image(entry: dict[str, Any]) -> dict[str, Any]:
    """The clique with another image."""
    containers = [{**container, "image": "example/model:2"} for container in entry["spec"]["podSpec"]["containers"]]
    return {**entry, "spec": {**entry["spec"], "podSpec": {**entry["spec"]["podSpec"], "containers": containers}}}


def images(toy: Rack) -> set[str]:
    """The images of all pods."""
    return {container["image"] for id in toy.pods() for container in toy.objects[id]["spec"]["containers"]}


def pod_uids(toy: Rack) -> set[str]:
    """The uids of all pods."""
    return {toy.objects[id]["metadata"]["uid"] for id in toy.pods()}


def replace_pods(toy: Rack) -> None:
    """Every pod is deleted, one after the other, and created again."""
    for id in toy.pods():
        toy.delete(id)
        settle(toy)


def remove(toy: Rack, *ids: ResourceId) -> None:
    """Objects are deleted together, by force, as if they had never been there."""
    for id in ids:
        toy.delete(id)
        if id in toy.objects:
            toy.write(id, {"metadata": {"finalizers": None}})


def podcliques(toy: Rack, prefix: str = "demo") -> list[ResourceId]:
    """The PodCliques whose names begin so."""
    return sorted(id for id in toy.objects if id.kind == "PodClique" and id.name.startswith(prefix))


def condition(toy: Rack) -> dict[str, Any] | None:
    """The condition about ignored annotations."""
    conditions = (toy.objects[DEMO].get("status") or {}).get("conditions") or ()
    return next((entry for entry in conditions if entry["type"] == "FabricAnnotationsIgnored"), None)


EDITS = {
    "removed": (None, f"{AT_MODE}: Forbidden: annotation {AUTO} cannot be removed after PodCliqueSet creation; {STAYS}"),
    "changed": (
        "disabled",
        f'{AT_MODE}: Invalid value: "disabled": annotation {AUTO} is immutable and cannot be changed from "enabled" to "disabled"; {STAYS}',
    ),
}


@pytest.mark.parametrize("edited", EDITS)
def test_N24_N25_a_set_with_automatic_domains_keeps_them_whatever_its_annotation_becomes(edited: str) -> None:
    toy = up(auto(2, gpu(replicas=2), clique("frontend")))
    before, pods = uids(toy), pod_uids(toy)
    mode, fault = EDITS[edited]
    annotate(toy, mode)
    settle(toy)

    assert (uids(toy), pod_uids(toy)) == (before, pods)
    assert plan_of(toy).faults == (fault,)
    replace_pods(toy)
    assert claimed(toy)["demo-0-worker"] == ["demo-0"] * 2 and claimed(toy)["demo-1-worker"] == ["demo-1"] * 2
    assert claimed(toy)["demo-0-frontend"] == []


def test_N24_new_replicas_of_a_set_with_domains_get_theirs() -> None:
    toy = up(auto(1, gpu("c0"), groups=(group("g", "c0", replicas=1),)))
    annotate(toy, None)
    scale(toy, DEMO, 3)
    scale(toy, kinds.SCALING_GROUP.id("default", "demo-0-g"), 2)
    settle(toy)

    assert sorted(toy.domains()) == ["demo-0", "demo-1", "demo-2"]
    assert {name: set(templates) for name, templates in claimed(toy).items()} == {
        "demo-0-g-0-c0": {"demo-0"},
        "demo-0-g-1-c0": {"demo-0"},
        "demo-1-g-0-c0": {"demo-1"},
        "demo-2-g-0-c0": {"demo-2"},
    }


def test_N24_the_mode_cannot_be_added_to_a_running_set() -> None:
    toy = up(sharing(gpu(), clique("frontend"), replicas=2))
    annotate(toy, "enabled")
    settle(toy)
    replace_pods(toy)

    assert (toy.domains(), set(sum(claimed(toy).values(), []))) == ({}, set())
    assert plan_of(toy).faults == (f"{AT_MODE}: Forbidden: annotation {AUTO} cannot be added after PodCliqueSet creation; {STAYS}",)


def test_N24_another_name_moves_no_pod_and_starts_no_rollout() -> None:
    toy = up(named("rack-a", replicas=2))
    before, pods = uids(toy), pod_uids(toy)
    rename(toy, "rack-b", "worker")
    settle(toy)

    assert (uids(toy), pod_uids(toy)) == (before, pods)
    changed = f'Invalid value: "rack-b": annotation {NAMED} is immutable and cannot be changed from "rack-a" to "rack-b"'
    assert plan_of(toy).faults == (f"{AT_NAME}: {changed}; {STAYS}",)
    replace_pods(toy)
    assert claimed(toy)["demo-0-worker"] == ["rack-a"]


@pytest.mark.parametrize(("before", "after"), [("rack-$(GROVE_PCS_INDEX)", "rack-0"), ("rack-0", "rack-$(GROVE_PCS_INDEX)")])
def test_N24_the_annotation_of_the_podcliques_says_whether_each_replica_has_its_own_domain(before: str, after: str) -> None:
    toy = up(named(before))
    expected = [before.replace("$(GROVE_PCS_INDEX)", str(index)) for index in range(2)]
    rename(toy, after, "worker")
    scale(toy, DEMO, 2)
    settle(toy)

    assert [claimed(toy)[f"demo-{index}-worker"] for index in range(2)] == [[name] for name in expected]


def test_N24_names_cannot_be_added_or_removed_while_pods_run() -> None:
    toy = up(sharing(gpu("in", annotations={NAMED: "rack"}), gpu("out")))
    rename(toy, None, "in")
    rename(toy, "rack", "out")
    settle(toy)
    replace_pods(toy)

    assert claimed(toy) == {"demo-0-in": ["rack"], "demo-0-out": []}
    assert [fault.split(": ")[1] for fault in plan_of(toy).faults] == ["Forbidden", "Forbidden"]


def test_N24_the_name_of_a_user_s_domain_is_recorded_although_its_template_has_another_name() -> None:
    toy = Rack()
    toy.put(computedomain("mine", "channel"))
    toy.put(named("mine"))
    settle(toy)
    rename(toy, "other", "worker")
    settle(toy)
    replace_pods(toy)

    assert (sorted(toy.domains()), claimed(toy)["demo-0-worker"]) == (["mine"], ["channel"])


def test_N24_an_edited_annotation_of_a_podclique_does_not_count_against_its_claim() -> None:
    toy = up(named("rack-a"))
    toy.write(kinds.PODCLIQUE.id("default", "demo-0-worker"), {"metadata": {"annotations": {NAMED: "rack-b"}}})
    assert plan_of(toy).faults == ()
    rename(toy, "rack-b", "worker")
    settle(toy)
    replace_pods(toy)

    assert (sorted(toy.domains()), claimed(toy)["demo-0-worker"]) == (["rack-a"], ["rack-a"])


def test_N24_another_edit_at_the_same_time_is_rolled_out_and_the_membership_stays() -> None:
    toy = up(auto(2, gpu()))
    before = uids(toy)
    annotate(toy, "disabled")
    edit(toy, new_image)
    settle(toy)

    assert (images(toy), uids(toy)) == ({"example/model:2"}, before)
    assert claimed(toy) == {"demo-0-worker": ["demo-0"], "demo-1-worker": ["demo-1"]}


def test_N24_gpus_that_are_added_to_a_clique_of_a_set_with_domains_join() -> None:
    toy = up(auto(1, gpu(), clique("frontend")))
    annotate(toy, None)
    edit(toy, lambda entry: {**entry, "spec": {**entry["spec"], "podSpec": {**entry["spec"]["podSpec"], **gpus()}}})
    settle(toy)

    assert claimed(toy) == {"demo-0-frontend": ["demo-0"], "demo-0-worker": ["demo-0"]}


def test_N24_podcliques_deleted_by_hand_come_back_into_the_domain_of_their_siblings() -> None:
    toy = up(sharing(gpu("a", annotations={NAMED: "rack"}), gpu("b", annotations={NAMED: "rack"})))
    rename(toy, "rack-b")
    settle(toy)
    remove(toy, *podcliques(toy, "demo-0-a"), *(id for id in toy.pods() if id.name.startswith("demo-0-a")))
    settle(toy)

    assert claimed(toy) == {"demo-0-a": ["rack"], "demo-0-b": ["rack"]}


@pytest.mark.parametrize("replicas", [1, 2])
def test_N24_when_all_podcliques_of_a_replica_are_deleted_the_rest_records(replicas: int) -> None:
    toy = up(auto(replicas, gpu()))
    annotate(toy, None)
    remove(toy, *podcliques(toy, "demo-0"), *(id for id in toy.pods() if id.name.startswith("demo-0")))
    settle(toy)

    assert claimed(toy) == {f"demo-{index}-worker": [f"demo-{index}"] for index in range(replicas)}


def test_N24_podcliques_that_disagree_because_of_an_earlier_release_all_join() -> None:
    toy = up(auto(1, gpu("a"), gpu("b")))
    outside = kinds.PODCLIQUE.id("default", "demo-0-a")
    toy.write(outside, {"spec": {"podSpec": {**gpus(), "resourceClaims": None}}})
    annotate(toy, None)
    settle(toy)
    replace_pods(toy)

    assert claimed(toy) == {"demo-0-a": ["demo-0"], "demo-0-b": ["demo-0"]}


def test_N24_a_user_s_own_claim_of_the_engine_s_name_is_no_membership() -> None:
    own = {**gpus(), "resourceClaims": [{"name": "mnnvl-claim", "resourceClaimTemplateName": "mine"}]}
    toy = Rack()
    toy.put(computedomain("mine"))
    toy.live()
    toy.put(sharing(gpu(pod_spec=own)))
    settle(toy)

    assert (plan_of(toy).faults, claimed(toy)) == ((), {"demo-0-worker": ["mine"]})


def test_N24_a_set_without_objects_is_as_its_annotations_say() -> None:
    toy = up(auto(1))
    scale(toy, DEMO, 0)
    settle(toy)
    annotate(toy, "disabled")
    scale(toy, DEMO, 1)
    settle(toy)

    assert (toy.domains(), claimed(toy), plan_of(toy).faults) == ({}, {"demo-0-worker": []}, ())


def test_N24_R19_a_set_that_is_made_anew_is_as_its_annotations_say() -> None:
    toy = up(auto(1))
    annotate(toy, None)
    toy.delete(DEMO)
    settle(toy)
    toy.put(said(auto(1), {AUTO: "disabled"}))
    settle(toy)

    assert (toy.domains(), claimed(toy), plan_of(toy).faults) == ({}, {"demo-0-worker": []}, ())


def test_N25_the_fault_is_a_warning_event_and_a_condition_until_the_annotation_is_put_back() -> None:
    toy = up(auto(1))
    annotate(toy, None)
    settle(toy)

    (alarm,) = plan_of(toy).alarms
    state = condition(toy)
    assert alarm.reason == "ComputeDomainAnnotationIgnored" and alarm.text == EDITS["removed"][1]
    assert state is not None and (state["status"], state["reason"], state["message"]) == ("True", alarm.reason, alarm.text)
    annotate(toy, "enabled")
    settle(toy)
    assert (condition(toy), plan_of(toy).alarms) == (None, ())


def test_N25_the_engine_does_not_write_the_annotations_of_a_set() -> None:
    toy = up(named("rack-a"))
    rename(toy, "rack-b", "worker")
    annotate(toy, None)
    specified = toy.objects[DEMO]
    settle(toy)

    stored = toy.objects[DEMO]
    assert (stored["spec"], stored["metadata"]["annotations"]) == (specified["spec"], specified["metadata"]["annotations"])


def test_N25_everything_else_is_done_for_a_set_with_such_a_fault() -> None:
    toy = up(auto(1))
    annotate(toy, None)
    scale(toy, DEMO, 2)

    plan = plan_of(toy)
    assert "demo-1" in {operation.id.name for operation in plan.operations if operation.verb is Verb.CREATE}
    assert plan.problems == () and len(plan.faults) == 1


def test_N24_a_pass_over_an_unchanged_set_computes_nothing_again_and_a_changed_pod_changes_no_record() -> None:
    toy = up(auto(2, gpu()))
    annotate(toy, None)
    settle(toy)
    memo = Memo()
    before = toy.plans(memo)
    assert toy.plans(memo)[0] is before[0]
    toy.write(toy.pods()[0], {"metadata": {"labels": {"some": "thing"}}})

    assert toy.plans(memo)[0].faults == before[0].faults


def test_N24_an_interrupted_first_pass_leaves_a_set_that_is_whole_in_the_end() -> None:
    toy = Rack()
    toy.put(auto(1, gpu("a"), gpu("b")))
    for operation in plan_of(toy).operations:
        toy.call(operation)
        if operation.id.kind == "PodClique":
            break
    annotate(toy, "disabled")
    for _ in range(3):
        pass_(toy)
    settle(toy)

    assert len({bool(templates) for templates in claimed(toy).values()}) == 1
    assert labels.SET_FINALIZER in toy.objects[DEMO]["metadata"]["finalizers"]
    assert done_to_domains(toy, passes=2) == []


def regroup(toy: Rack, of_set: str | None = "", of_groups: dict[str, str | None] | None = None, **of_cliques: str | None) -> None:
    """A user changes the annotation for groups on the set, on scaling groups and on cliques; None removes it, "" leaves the set's."""
    if of_set != "":
        toy.write(DEMO, {"metadata": {"annotations": {GROUP: of_set}}})
    template = toy.objects[DEMO]["spec"]["template"]
    lists = (("cliques", of_cliques), ("podCliqueScalingGroups", of_groups or {}))
    for field, values in lists:
        entries = [dict(entry) for entry in template.get(field) or ()]
        for entry in entries:
            if entry["name"] in values:
                others = {key: value for key, value in (entry.get("annotations") or {}).items() if key != GROUP}
                value = values[entry["name"]]
                entry["annotations"] = {**others, **({GROUP: value} if value else {})}
        toy.write(DEMO, {"spec": {"template": {field: entries}}})


def grouped() -> Rack:
    """A set with the annotation on all three layers, running."""
    cliques = (gpu("a"), gpu("b", annotations={GROUP: "own"}), gpu("out", annotations={GROUP: "none"}), gpu("m"), clique("cpu"))
    config = {**group("g", "m", replicas=1), "annotations": {GROUP: "inner"}}
    return up(said(podcliqueset("demo", *cliques, groups=(config,), replicas=2), {GROUP: "model"}))


@pytest.mark.parametrize(
    "edits",
    [
        {"of_set": "other"},
        {"of_set": None},
        {"of_set": "none"},
        {"a": "none"},
        {"a": "own"},
        {"b": None},
        {"b": "none"},
        {"b": "other"},
        {"out": None},
        {"out": "model"},
        {"of_groups": {"g": None}},
        {"of_groups": {"g": "other"}},
        {"of_groups": {"g": "none"}, "of_set": None},
        {"m": "own"},
        {"of_set": None, "of_groups": {"g": None}, "a": "own", "b": None, "out": "own", "m": "model"},
    ],
)
def test_N24_groups_stay_as_recorded_whichever_layer_is_edited(edits: dict[str, Any]) -> None:
    toy = grouped()
    before, pods = claimed(toy), pod_uids(toy)
    regroup(toy, **edits)
    settle(toy)

    assert (claimed(toy), pod_uids(toy)) == (before, pods)
    assert plan_of(toy).faults and all(fault.endswith(STAYS) for fault in plan_of(toy).faults)
    replace_pods(toy)
    assert claimed(toy) == before
    scale(toy, DEMO, 3)
    settle(toy)
    assert {name: len(templates) for name, templates in claimed(toy).items() if name.startswith("demo-2")} == {
        name.replace("demo-0", "demo-2"): len(templates) for name, templates in before.items() if name.startswith("demo-0")
    }


@pytest.mark.parametrize("mode", ["enabled", "disabled"])
def test_N24_a_mode_that_is_added_moves_no_clique_out_of_its_group(mode: str) -> None:
    toy = grouped()
    before = claimed(toy)
    annotate(toy, mode)
    settle(toy)
    replace_pods(toy)

    assert claimed(toy) == before
    assert plan_of(toy).faults == (f"{AT_MODE}: Forbidden: annotation {AUTO} cannot be added after PodCliqueSet creation; {STAYS}",)


@pytest.mark.parametrize("manifest", [auto(2, gpu("a"), gpu("b")), sharing(gpu("a", annotations={NAMED: "rack"}), gpu("b"))])
def test_N24_groups_cannot_be_added_to_a_running_set(manifest: dict[str, Any]) -> None:
    toy = up(manifest)
    before, pods = claimed(toy), pod_uids(toy)
    annotate(toy, None)
    regroup(toy, "model", a="own")
    settle(toy)
    replace_pods(toy)

    assert claimed(toy) == before and pods
    assert plan_of(toy).faults


def test_N24_a_name_that_is_added_moves_no_clique_out_of_its_group() -> None:
    toy = grouped()
    before, pods = claimed(toy), pod_uids(toy)
    rename(toy, "rack", "a", "b")
    settle(toy)

    assert (claimed(toy), pod_uids(toy)) == (before, pods)
