"""The children of a PodCliqueSet: names, labels, owners, environment variables."""

from typing import Any

from engine import world
from engine.guard import Limits
from engine.memo import Memo
from engine.operation import Operation, body_of
from engine.proposal import propose
from engine.tick import plan_all
from engine.verb import Verb
from resources.base.labels import SET_FINALIZER
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import CONFIGURATION, START, Toy

DEFAULTS = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "simple1"}


def simple1(**over: Any) -> dict[str, Any]:
    """Four cliques, two of them in a scaling group; a standalone clique and the group have autoscalers."""
    cliques = (clique("pca", 3, autoScalingConfig={"maxReplicas": 5}), clique("pcb", 2), clique("pcc", 2), clique("pcd", 2))
    manifest = podcliqueset("simple1", *cliques, groups=(group("sga", "pcb", "pcc", scaleConfig={"maxReplicas": 6}, **over),))
    manifest["metadata"]["labels"] = {"app": "simple1", "grove.io/private": "x"}
    kubectl = "kubectl.kubernetes.io/last-applied-configuration"
    manifest["metadata"]["annotations"] = {"team": "inference", "grove.io/secret": "y", kubectl: "{}"}
    return manifest


def created(manifest: dict[str, Any]) -> dict[str, Operation]:
    """The operations that create the set in an empty cluster, by `<kind>/<name>`."""
    (plan,) = plan_all(BLUEPRINTS, propose(world.empty(), [manifest]), START, CONFIGURATION, Memo(), Limits()).plans
    assert plan.problems == ()
    assert {operation.verb for operation in plan.operations} == {Verb.CREATE}
    return {f"{operation.id.kind}/{operation.id.name}": operation for operation in plan.operations}


def of_kind(operations: dict[str, Operation], kind: str) -> list[str]:
    """The sorted names of one kind."""
    return sorted(operation.id.name for operation in operations.values() if operation.id.kind == kind)


def test_every_name_is_a_function_of_its_parents() -> None:
    made = created(simple1())

    assert of_kind(made, "ServiceAccount") == ["simple1"]
    assert of_kind(made, "Role") == of_kind(made, "RoleBinding") == ["grove.io:pcs:simple1"]
    assert of_kind(made, "Secret") == ["simple1-ic-sat"]
    assert of_kind(made, "Service") == of_kind(made, "PodGang") == ["simple1-0"]
    assert of_kind(made, "HorizontalPodAutoscaler") == ["simple1-0-pca", "simple1-0-sga"]
    assert of_kind(made, "PodCliqueScalingGroup") == ["simple1-0-sga"]
    assert of_kind(made, "PodClique") == ["simple1-0-pca", "simple1-0-pcd", "simple1-0-sga-0-pcb", "simple1-0-sga-0-pcc"]
    assert len(of_kind(made, "Pod")) == 9


def test_group_replicas_beyond_the_minimum_have_scaled_gangs_counted_from_zero() -> None:
    made = created(simple1(replicas=3, min_available=1))

    assert of_kind(made, "PodGang") == ["simple1-0", "simple1-0-sga-0", "simple1-0-sga-1"]
    assert [pod_group["name"] for pod_group in body_of(made["PodGang/simple1-0"])["spec"]["podgroups"]] == [
        "simple1-0-pca",
        "simple1-0-pcd",
        "simple1-0-sga-0-pcb",
        "simple1-0-sga-0-pcc",
    ]
    assert [pod_group["name"] for pod_group in body_of(made["PodGang/simple1-0-sga-0"])["spec"]["podgroups"]] == [
        "simple1-0-sga-1-pcb",
        "simple1-0-sga-1-pcc",
    ]


def test_a_gang_copies_the_sets_metadata_without_what_belongs_to_grove_or_kubectl() -> None:
    metadata = body_of(created(simple1())["PodGang/simple1-0"])["metadata"]

    assert metadata["labels"] == {
        "app": "simple1",
        **DEFAULTS,
        "app.kubernetes.io/component": "podgang",
        "grove.io/scheduler-name": "default-scheduler",
    }
    assert metadata["annotations"] == {"team": "inference"}


def test_a_gang_refers_to_its_pods_before_they_exist() -> None:
    made = created(simple1())
    gang = made["PodGang/simple1-0"]
    listed = [reference["name"] for pod_group in body_of(gang)["spec"]["podgroups"] for reference in pod_group["podReferences"]]

    assert sorted(listed) == of_kind(made, "Pod")
    assert all(gang.key in operation.after for operation in made.values() if operation.id.kind == "Pod")


def test_the_labels_of_a_pod_in_a_scaled_gang() -> None:
    made = created(simple1(replicas=2))
    clique_hash = body_of(made["PodClique/simple1-0-sga-1-pcb"])["metadata"]["labels"]["grove.io/pod-template-hash"]
    pods = [
        body_of(operation)
        for operation in made.values()
        if operation.id.kind == "Pod" and operation.id.name.startswith("simple1-0-sga-1-pcb")
    ]
    (labels,) = [pod["metadata"]["labels"] for pod in pods if pod["spec"]["hostname"] == "simple1-0-sga-1-pcb-1"]

    assert labels == {
        **DEFAULTS,
        "app.kubernetes.io/name": "simple1-0-sga-1-pcb",
        "app.kubernetes.io/component": "pcsg-podclique",
        "grove.io/podclique": "simple1-0-sga-1-pcb",
        "grove.io/podgang": "simple1-0-sga-0",
        "grove.io/base-podgang": "simple1-0",
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/podcliquescalinggroup": "simple1-0-sga",
        "grove.io/podcliquescalinggroup-replica-index": "1",
        "grove.io/podclique-pod-index": "1",
        "grove.io/podcliquescalinggroup-pod-index": "1",
        "grove.io/pod-template-hash": clique_hash,
    }


def test_our_variables_come_first_and_override_the_users() -> None:
    manifest = simple1()
    container = manifest["spec"]["template"]["cliques"][1]["spec"]["podSpec"]["containers"][0]
    shadowing = [{"name": name, "value": "mine"} for name in ("GROVE_PCS_NAME", "GROVE_PCSG_NAME", "GROVE_PCSG_POD_INDEX")]
    container["env"] = [*shadowing, {"name": "MODE", "value": "$(GROVE_PCS_NAME)"}]
    made = created(manifest)
    pod = next(body_of(operation) for operation in made.values() if operation.id.kind == "Pod" and "-pcb-" in operation.id.name)

    env = pod["spec"]["containers"][0]["env"]
    assert [variable["name"] for variable in env] == [
        "GROVE_PCSG_POD_INDEX",
        "GROVE_PCS_NAME",
        "GROVE_PCS_INDEX",
        "GROVE_PCLQ_NAME",
        "GROVE_HEADLESS_SERVICE",
        "GROVE_PCLQ_POD_INDEX",
        "GROVE_PCSG_NAME",
        "GROVE_PCSG_TEMPLATE_NUM_PODS",
        "GROVE_PCSG_INDEX",
        "MODE",
    ]
    assert [variable.get("value") for variable in env] == [
        None,
        "simple1",
        "0",
        "simple1-0-sga-0-pcb",
        "simple1-0.default.svc.cluster.local",
        None,
        None,
        "4",
        None,
        "$(GROVE_PCS_NAME)",
    ]


def test_only_pods_of_a_scaled_gang_have_a_scheduling_gate() -> None:
    pods = [body_of(operation) for operation in created(simple1(replicas=2)).values() if operation.id.kind == "Pod"]

    gated = {
        pod["spec"]["subdomain"] + "/" + pod["metadata"]["labels"]["grove.io/podgang"] for pod in pods if pod["spec"].get("schedulingGates")
    }
    assert gated == {"simple1-0/simple1-0-sga-0"}


def test_each_child_is_owned_by_its_parent() -> None:
    made = created(simple1())
    owners = {
        operation.id.kind + "/" + operation.id.name: [reference.owner.id.kind for reference in operation.owners]
        for operation in made.values()
    }

    assert owners["PodClique/simple1-0-pca"] == ["PodCliqueSet"]
    assert owners["PodClique/simple1-0-sga-0-pcb"] == ["PodCliqueScalingGroup"]
    assert owners["PodGang/simple1-0"] == ["PodCliqueSet"]
    assert all(kinds == ["PodClique"] for name, kinds in owners.items() if name.startswith("Pod/"))
    assert owners["PodCliqueSet/simple1"] == []


def test_cliques_and_groups_are_created_with_their_finalizers() -> None:
    made = created(simple1())

    assert body_of(made["PodClique/simple1-0-pca"])["metadata"]["finalizers"] == ["grove.io/podclique.grove.io"]
    assert body_of(made["PodCliqueScalingGroup/simple1-0-sga"])["metadata"]["finalizers"] == ["grove.io/podcliquescalinggroup.grove.io"]
    assert body_of(made["PodCliqueSet/simple1"])["metadata"]["finalizers"] == ["grove.io/podcliqueset.grove.io"]


def test_the_hash_ignores_the_order_of_unordered_lists_and_changes_with_every_edit() -> None:
    def hash_of(volumes: list[str], args: list[str]) -> str:
        pod_spec = {
            "volumes": [{"name": name, "emptyDir": {}} for name in volumes],
            "containers": [{"name": "main", "image": "example/worker:1", "args": args}],
        }
        made = created(podcliqueset("demo", clique("worker", pod_spec=pod_spec)))
        value: str = body_of(made["PodClique/demo-0-worker"])["metadata"]["labels"]["grove.io/pod-template-hash"]
        return value

    plain = hash_of(["a", "b"], ["x", "y"])
    assert hash_of(["b", "a"], ["x", "y"]) == plain
    assert hash_of(["a", "b"], ["y", "x"]) != plain
    assert len(plain) <= 63


def test_for_an_invalid_set_nothing_is_created_and_its_problems_name_the_fields() -> None:
    manifest = simple1()
    manifest["spec"]["template"]["podCliqueScalingGroups"][0]["cliqueNames"].append("nobody")
    manifest["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = "elsewhere"
    (plan,) = plan_all(BLUEPRINTS, propose(world.empty(), [manifest]), START, CONFIGURATION, Memo(), Limits()).plans

    assert plan.operations == ()
    assert plan.problems == (
        'spec.template.podCliqueScalingGroups[0].cliqueNames: Invalid value: "nobody": unidentified PodClique names found; '
        "there are pca, pcb, pcc, pcd",
        'spec.template.cliques[1].spec.podSpec.schedulerName: Invalid value: "default-scheduler, elsewhere": '
        "the schedulerName for all pods have to be the same",
        'spec.template.cliques[0].spec.podSpec.schedulerName: Invalid value: "elsewhere": '
        "schedulerName must be an enabled scheduler backend; "
        "this scheduler is not enabled in OperatorConfiguration; there is default-scheduler",
    )


def test_two_cliques_with_the_same_full_name_are_a_problem_of_that_set_alone() -> None:
    clash = podcliqueset("demo", clique("g-0-a"), clique("a"), groups=(group("g", "a"),))
    clash["metadata"]["finalizers"] = [SET_FINALIZER]  # It was admitted before admission knew of such names.
    toy = Toy()
    for manifest in (clash, podcliqueset("valid")):
        toy.put(manifest)
    plans = toy.plans()

    assert [bool(plan.problems) for plan in plans] == [True, False]
    assert "PodClique/default/demo-0-g-0-a is defined twice" in plans[0].problems[0]
    assert plans[1].operations


def test_too_many_replicas_are_a_problem() -> None:
    manifest = podcliqueset("demo", clique("a", 2), replicas=2_000_000_000)
    (plan,) = plan_all(BLUEPRINTS, propose(world.empty(), [manifest]), START, CONFIGURATION, Memo(), Limits()).plans

    assert plan.operations == ()
    assert plan.problems == (
        "spec.replicas: Invalid value: 2000000000: must not be more than 10000 (limits.set.replicas)",
        "spec: Invalid value: 4000000000: must not have more than 100000 pods in all replicas, with those that autoscalers may add"
        " (limits.set.pods)",
        "spec: Invalid value: 2000000000: must not have more than 10000 PodCliques in all replicas, with those that autoscalers may add"
        " (limits.set.cliques)",
    )


def test_pods_have_the_priority_of_the_set_unless_they_name_one() -> None:
    own = {"containers": [{"name": "main", "image": "example/worker:1"}], "priorityClassName": "mine"}
    made = created(podcliqueset("demo", clique("a"), clique("b", pod_spec=own), priorityClassName="high"))
    priorities = {
        operation.id.name[:8]: body_of(operation)["spec"]["priorityClassName"] for operation in made.values() if operation.id.kind == "Pod"
    }

    assert priorities == {"demo-0-a": "high", "demo-0-b": "mine"}
    assert body_of(made["PodGang/demo-0"])["spec"]["priorityClassName"] == "high"
