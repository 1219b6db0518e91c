"""R1–R39: automatic domains, one for each replica (docs/behaviour)."""

from pathlib import Path
from typing import Any

import pytest

from engine.errors import Forbidden
from engine.operation import body_of
from enginectl.base.exit_codes import Exit
from providers.fabrics.nvidia.fabric import Nvidia, configured
from providers.fabrics.nvidia.names import AUTO, NAMED
from resources import settings
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.enginectl import test_requirements as fitness
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.laws.fabric_worlds import scale, settle
from tests.laws.rack import DRIVERS_FINALIZER, Rack
from tests.mnnvl.asking import OFF, annotations, ask, claimed, complaints, events, uids, up
from tests.mnnvl.sets import OURS, auto, computedomain, gpu, gpus, said

FIRST = ROOT / "examples" / "01-first-gang"
DEMO = kinds.PODCLIQUESET.id("default", "demo")
PLAIN = podcliqueset("demo", gpu())
AT = "metadata.annotations.grove.io/auto-mnnvl"
OTHER_VALUES = ("true", "false", "", "Enabled", "DISABLED", " enabled", "enabled ")


def resized(toy: Rack, replicas: int) -> list[str]:
    """The domains after scaling."""
    scale(toy, DEMO, replicas)
    settle(toy)
    return sorted(toy.domains())


def pods_by_index(toy: Rack) -> dict[str, int]:
    """Replica -> how many pods it has."""
    found: dict[str, int] = {}
    for id in toy.pods():
        index = toy.objects[id]["metadata"]["labels"]["grove.io/podcliqueset-replica-index"]
        found[index] = found.get(index, 0) + 1
    return found


def test_R1_by_default_a_set_with_gpus_gets_no_annotation_no_domain_and_no_claim() -> None:
    default = settings.read({})[0]
    toy = up(PLAIN, flag=configured(default).auto)

    assert annotations(PLAIN, flag=configured(default).auto) == {}
    assert (toy.domains(), claimed(toy)) == ({}, {"demo-0-worker": []})
    assert AUTO not in toy.objects[DEMO]["metadata"].get("annotations", {})


@pytest.mark.parametrize("value", [True, False])
def test_R2_the_configuration_switches_it_on_and_off(value: bool) -> None:
    read, warnings = settings.read({"network": {"autoMNNVLEnabled": value}})

    assert (configured(read).auto, warnings) == (value, ())


@pytest.mark.parametrize("command", ["sync", "run"])
def test_R3_automatic_domains_without_the_crd_prevent_the_start(plain_box: Box, engine: Engine, tmp_path: Path, command: str) -> None:
    answer = engine(command, "--config", fitness.configured(tmp_path, auto=True))

    assert answer.code == Exit.PREFLIGHT
    assert "ComputeDomain CRD (computedomains.resource.nvidia.com) is not installed" in answer.err


def test_R4_with_the_crd_a_command_starts(box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", FIRST, "--config", fitness.configured(tmp_path, auto=True)).code == Exit.DONE


def test_R5_without_automatic_domains_the_crd_is_not_required(plain_box: Box, engine: Engine, tmp_path: Path) -> None:
    answer = engine("sync", "-f", FIRST, "--no-wait", "--config", fitness.configured(tmp_path, auto=False))

    assert (answer.code, "ComputeDomain" in answer.err) == (Exit.DONE, False)


@pytest.mark.parametrize(
    "spec", [gpus(), gpus("1", kind="requests"), {"containers": [{"name": "a", "image": "b"}], "initContainers": gpus()["containers"]}]
)
def test_R6_a_new_set_with_a_gpu_container_gets_the_annotation(spec: dict[str, Any]) -> None:
    assert annotations(podcliqueset("demo", clique("cpu"), gpu(pod_spec=spec))) == {AUTO: "enabled"}


@pytest.mark.parametrize("spec", [gpus("0"), gpus(resource="amd.com/gpu"), gpus(resource="nvidia.com/mig-1g.5gb"), None])
def test_R7_a_new_set_without_a_gpu_container_does_not_get_the_annotation(spec: dict[str, Any] | None) -> None:
    manifest = podcliqueset("demo", clique("worker", pod_spec=spec))
    toy = up(manifest)

    assert (annotations(manifest), toy.domains()) == ({}, {})
    assert AUTO not in toy.objects[DEMO]["metadata"].get("annotations", {})


def test_R8_each_replica_has_one_domain_in_the_namespace_of_the_set() -> None:
    toy = up(auto(2, gpu("prefill", 2), gpu("decode", 2)))

    assert sorted(toy.domains()) == ["demo-0", "demo-1"]
    assert {body["metadata"]["namespace"] for body in toy.domains().values()} == {"default"}


def test_R9_gpu_pods_of_standalone_cliques_and_of_groups_claim_the_domain_of_their_replica() -> None:
    toy = up(auto(2, gpu("alone"), gpu("member"), groups=(group("pool", "member", replicas=2),)))

    assert claimed(toy) == {
        "demo-0-alone": ["demo-0"],
        "demo-0-pool-0-member": ["demo-0"],
        "demo-0-pool-1-member": ["demo-0"],
        "demo-1-alone": ["demo-1"],
        "demo-1-pool-0-member": ["demo-1"],
        "demo-1-pool-1-member": ["demo-1"],
    }


def test_R10_only_gpu_pods_claim_and_only_their_gpu_containers_use_it() -> None:
    sidecar = {"containers": [*gpus()["containers"], {"name": "sidecar", "image": "example/sidecar:1"}]}
    toy = up(auto(1, gpu(pod_spec=sidecar), clique("frontend")))
    (worker,) = [toy.objects[id] for id in toy.pods() if "worker" in id.name]

    assert claimed(toy) == {"demo-0-frontend": [], "demo-0-worker": ["demo-0"]}
    assert {one["name"]: (one.get("resources") or {}).get("claims") for one in worker["spec"]["containers"]} == {
        "main": [{"name": "mnnvl-claim"}],
        "sidecar": None,
    }


def test_R11_an_automatic_domain_cannot_be_customised() -> None:
    wishful = said(PLAIN, {AUTO: "enabled", "grove.io/computedomain-num-nodes": "4"})
    toy = up(wishful)

    assert toy.domains()["demo-0"]["spec"] == {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "demo-0"}}}
    assert any(NAMED in line for line in complaints(auto(1, gpu(annotations={NAMED: "mine"}))))


def test_R12_the_domains_of_a_set_are_listed_by_its_label_and_no_others() -> None:
    toy = up(auto(2), auto(1, name="demo-1"))
    listed = {
        part: sorted(name for name, body in toy.domains().items() if body["metadata"]["labels"]["app.kubernetes.io/part-of"] == part)
        for part in ("demo", "demo-1")
    }

    assert listed == {"demo": ["demo-0", "demo-1"], "demo-1": ["demo-1-0"]}


def test_R13_a_set_with_automatic_domains_has_the_annotation() -> None:
    toy = up(PLAIN)

    assert toy.objects[DEMO]["metadata"]["annotations"] == {AUTO: "enabled"}


def test_R14_a_set_that_opts_out_keeps_its_annotation_and_gets_no_domain() -> None:
    manifest = said(podcliqueset("demo", gpu(), groups=(group("pool", "worker"),)), {AUTO: "disabled"})
    toy = up(manifest)
    objects = [str(body) for id, body in toy.objects.items() if id != DEMO]

    assert annotations(manifest) == {AUTO: "disabled"}
    assert toy.domains() == {} and not [text for text in objects if "mnnvl" in text]


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("value", OTHER_VALUES)
def test_R15_any_other_value_is_rejected(value: str, flag: bool) -> None:
    (message,) = complaints(said(PLAIN, {AUTO: value}), flag=flag)

    assert message == f'{AT}: Invalid value: "{value}": must be "enabled" or "disabled"'


@pytest.mark.parametrize("flag", [True, False])
def test_R16_it_cannot_be_added(flag: bool) -> None:
    messages = complaints(auto(1), flag=flag, old=PLAIN)

    assert messages == [f"{AT}: Forbidden: annotation grove.io/auto-mnnvl cannot be added after PodCliqueSet creation"]


@pytest.mark.parametrize(("old", "new"), [("enabled", "disabled"), ("disabled", "enabled")])
def test_R17_it_cannot_be_changed(old: str, new: str) -> None:
    messages = complaints(said(PLAIN, {AUTO: new}), old=said(PLAIN, {AUTO: old}))

    why = f'annotation grove.io/auto-mnnvl is immutable and cannot be changed from "{old}" to "{new}"'
    assert messages == [f'{AT}: Invalid value: "{new}": {why}']


def test_R18_it_cannot_be_removed() -> None:
    messages = complaints(PLAIN, old=auto(1))

    assert messages == [f"{AT}: Forbidden: annotation grove.io/auto-mnnvl cannot be removed after PodCliqueSet creation"]


@pytest.mark.parametrize(("first", "then"), [("enabled", "disabled"), ("disabled", "enabled")])
def test_R19_a_deleted_set_can_be_created_again_with_the_other_value(first: str, then: str) -> None:
    toy = up(said(PLAIN, {AUTO: first}))
    toy.delete(DEMO)
    settle(toy)
    assert toy.objects == {}
    assert ask(said(PLAIN, {AUTO: then})).allowed
    toy.put(said(PLAIN, {AUTO: then}))
    settle(toy)

    assert list(toy.domains()) == (["demo-0"] if then == "enabled" else [])


def test_R20_an_existing_set_never_gets_the_annotation_and_its_new_replicas_no_domain() -> None:
    toy = up(PLAIN, flag=False)
    toy.configuration = Rack.configuration
    settle(toy)
    scale(toy, DEMO, 3)
    settle(toy)

    assert (toy.domains(), pods_by_index(toy)) == ({}, {"0": 1, "1": 1, "2": 1})
    assert AUTO not in toy.objects[DEMO]["metadata"].get("annotations", {})


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {**PLAIN["spec"], "replicas": 4}},
        {"spec": podcliqueset("demo", gpu(pod_spec=gpus("4")))["spec"]},
        {"metadata": {"name": "demo"}},
    ],
)
def test_R21_an_existing_set_can_be_changed_and_gets_no_domain(change: dict[str, Any]) -> None:
    old = {**PLAIN, "metadata": {**PLAIN["metadata"], "finalizers": ["grove.io/podcliqueset.grove.io"]}}
    decision = ask({**old, **change}, old=old)

    assert decision.allowed and decision.body is not None
    assert AUTO not in (decision.body["metadata"].get("annotations") or {})


def test_R22_scaling_out_creates_domains_and_does_not_change_the_others() -> None:
    toy = up(auto(2))
    before = uids(toy)

    assert resized(toy, 4) == ["demo-0", "demo-1", "demo-2", "demo-3"]
    assert {name: uid for name, uid in uids(toy).items() if name in before} == before


@pytest.mark.parametrize("count", [1, 2, 3])
def test_R23_scaling_in_deletes_exactly_the_domains_of_the_removed_replicas(count: int) -> None:
    toy = up(auto(4))
    before = uids(toy)

    assert resized(toy, count) == [f"demo-{index}" for index in range(count)]
    assert uids(toy).items() <= before.items()


def test_R24_a_set_scaled_to_zero_has_no_domain() -> None:
    toy = up(auto(3))

    assert (resized(toy, 0), toy.pods()) == ([], [])


def test_R25_every_domain_is_created_with_our_finalizer() -> None:
    toy = Rack()
    toy.put(auto(2))
    (plan,) = toy.plans()
    made = [body_of(operation)["metadata"]["finalizers"] for operation in plan.operations if operation.id.kind == "ComputeDomain"]

    assert made == [[OURS], [OURS]]


def test_R26_a_domain_deleted_by_a_user_is_terminating_while_it_is_in_use() -> None:
    toy = up(auto(2))
    before = uids(toy)
    toy.delete(toy.domain("demo-1"))
    settle(toy)

    assert uids(toy) == before
    assert toy.domains()["demo-1"]["metadata"]["deletionTimestamp"]
    assert toy.domains()["demo-1"]["metadata"]["finalizers"] == [OURS]
    assert pods_by_index(toy) == {"0": 1, "1": 1}


@pytest.mark.parametrize("how", ["deleted", "scaled in"])
def test_R27_a_terminating_domain_is_removed_with_its_replica_or_its_set(how: str) -> None:
    toy = up(auto(2))
    toy.delete(toy.domain("demo-1"))
    settle(toy)
    if how == "deleted":
        toy.delete(DEMO)
        settle(toy)
    else:
        resized(toy, 1)

    assert list(toy.domains()) == ([] if how == "deleted" else ["demo-0"])


def test_R28_the_domains_of_a_set_are_deleted_with_the_set() -> None:
    toy = up(auto(3), auto(1, name="other"))
    toy.delete(DEMO)
    settle(toy)

    assert list(toy.domains()) == ["other-0"]


def test_R29_the_event_of_a_created_domain_has_its_name() -> None:
    toy = Rack()
    toy.put(auto(1))
    (plan,) = toy.plans()

    assert events(plan) == [(False, "ComputeDomainCreated", "ComputeDomain demo-0 created")]


def test_R30_the_event_of_a_failed_create_has_the_replica() -> None:
    toy = Rack()
    toy.put(auto(2))
    (plan,) = toy.plans()

    message = "Failed to create ComputeDomain for replica {}: no such right"
    failed = [(True, "ComputeDomainFailed", message.format(index)) for index in (0, 1)]
    assert [event for event in events(plan, Forbidden("no such right")) if event[0]] == failed


def test_R31_pods_wait_until_their_domain_could_be_created_and_the_create_is_retried() -> None:
    toy = Rack()
    toy.put(auto(1))
    for _ in range(5):
        (plan,) = toy.plans()
        assert ("create", "demo-0") in [(str(one.verb), one.id.name) for one in plan.operations]
        toy.apply(one for one in plan.operations if one.id.kind != "ComputeDomain")
        toy.live()
        assert toy.pods() == []
    settle(toy)

    assert claimed(toy) == {"demo-0-worker": ["demo-0"]}


@pytest.mark.parametrize("status", [None, {"status": "NotReady"}])
def test_R32_pods_never_wait_for_a_domain_s_status(status: dict[str, Any] | None) -> None:
    toy = Rack()
    toy.put(auto(1))
    for _ in range(4):
        for plan in toy.plans():
            toy.apply(plan.operations)
        toy.live()
        for id in (toy.domain(name) for name in toy.domains()):
            toy.write(id, {"status": status})

    assert claimed(toy) == {"demo-0-worker": ["demo-0"]}
    assert toy.domains()["demo-0"].get("status") == status


def test_R33_the_status_of_a_set_does_not_mention_domains() -> None:
    toy = up(auto(1))
    status = str(toy.objects[DEMO]["status"]).lower()

    assert "replicas" in status and "computedomain" not in status and "mnnvl" not in status


def test_R34_different_gpus_in_one_set_are_accepted() -> None:
    mixed = auto(1, gpu("old", pod_spec=gpus("4")), gpu("new"), clique("amd", pod_spec=gpus(resource="amd.com/gpu")))
    toy = up(mixed)

    assert ask(mixed).allowed
    assert claimed(toy) == {"demo-0-amd": [], "demo-0-new": ["demo-0"], "demo-0-old": ["demo-0"]}


def test_R36_an_explicit_enabled_is_accepted_unchanged() -> None:
    assert annotations(auto(1)) == {AUTO: "enabled"}


def test_R37_an_explicit_disabled_is_accepted_while_automatic_domains_are_off() -> None:
    assert annotations(said(PLAIN, {AUTO: "disabled"}), flag=False) == {AUTO: "disabled"}


def test_R38_an_explicit_enabled_is_rejected_while_automatic_domains_are_off() -> None:
    (message,) = complaints(auto(1), flag=False)

    assert message.startswith(f'{AT}: Invalid value: "enabled": MNNVL is not enabled in the operator configuration.')
    assert "network.autoMNNVLEnabled: true" in message and "--config" in message


def test_R39_existing_sets_keep_automatic_domains_after_they_are_switched_off() -> None:
    toy = up(auto(1))
    before = uids(toy)
    toy.configuration = OFF
    assert resized(toy, 2) == ["demo-0", "demo-1"]
    assert uids(toy)["demo-0"] == before["demo-0"]
    assert claimed(toy) == {"demo-0-worker": ["demo-0"], "demo-1-worker": ["demo-1"]}
    toy.put(podcliqueset("other", gpu()))
    settle(toy)
    assert sorted(toy.domains()) == ["demo-0", "demo-1"]
    toy.delete(DEMO)
    settle(toy)

    assert toy.domains() == {}


def test_the_driver_s_finalizer_is_never_removed() -> None:
    toy = up(auto(1))
    toy.driver = False
    toy.delete(DEMO)
    settle(toy)

    assert toy.domains()["demo-0"]["metadata"]["finalizers"] == [OURS, DRIVERS_FINALIZER]


def test_a_domain_created_by_another_operator_of_the_same_api_is_used_without_a_write() -> None:
    toy = Rack()
    root = toy.put(auto(1))
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "demo", "uid": root["metadata"]["uid"]}
    labels = {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "demo",
        "app.kubernetes.io/name": "demo-0",
        "app.kubernetes.io/component": "pcs-computedomain",
        "grove.io/podcliqueset-replica-index": "0",
    }
    theirs = computedomain(
        "demo-0", labels=labels, finalizers=[OURS], ownerReferences=[{**owner, "controller": True, "blockOwnerDeletion": True}]
    )
    theirs["spec"]["channel"]["allocationMode"] = "Single"
    toy.put(theirs)
    toy.live()
    before = toy.domains()["demo-0"]
    settle(toy)

    assert toy.domains()["demo-0"] == before
    assert claimed(toy) == {"demo-0-worker": ["demo-0"]}
    assert isinstance(Rack.configuration.fabrics[0], Nvidia)


@pytest.mark.parametrize("name", ["demo-0-group", "odd"])
def test_a_domain_of_the_set_with_another_name_is_deleted_in_the_same_order(name: str) -> None:
    toy = Rack()
    root = toy.put(auto(1))
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "demo", "uid": root["metadata"]["uid"], "controller": True}
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "demo"}
    toy.put(computedomain(name, labels=labels, finalizers=[OURS], ownerReferences=[owner]))
    settle(toy)
    assert list(toy.domains()) == ["demo-0"]
    toy.delete(DEMO)
    settle(toy)

    assert toy.objects == {}


@pytest.mark.parametrize("name", ["demo-0-group", "odd"])
def test_a_domain_with_another_name_does_not_prevent_the_deletion_of_its_set(name: str) -> None:
    toy = up(auto(1))
    uid = toy.objects[DEMO]["metadata"]["uid"]
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "demo", "uid": uid, "controller": True}
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "demo"}
    toy.put(computedomain(name, labels=labels, finalizers=[OURS], ownerReferences=[owner]))
    toy.delete(DEMO)
    settle(toy)

    assert toy.objects == {}
