"""The children of a PodCliqueSet: names, labels, owners, order of variables."""

from typing import Any

from engine import world
from engine.guard import Limits
from engine.memo import Memo
from engine.operation import Operation
from engine.tick import plan_all
from engine.verb import Verb
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import SETUP, START

DEFAULTS = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "simple1"}


def simple1(**over: Any) -> dict[str, Any]:
    """Four cliques, two of them in a group; one of the others scales by itself, and so does the group."""
    cliques = (clique("pca", 3, autoScalingConfig={"maxReplicas": 5}), clique("pcb", 2), clique("pcc", 2), clique("pcd", 2))
    manifest = podcliqueset("simple1", *cliques, groups=(group("sga", "pcb", "pcc", scaleConfig={"maxReplicas": 6}, **over),))
    manifest["metadata"]["labels"] = {"app": "simple1", "grove.io/private": "x"}
    kubectl = "kubectl.kubernetes.io/last-applied-configuration"
    manifest["metadata"]["annotations"] = {"team": "inference", "grove.io/secret": "y", kubectl: "{}"}
    return manifest


def created(manifest: dict[str, Any]) -> dict[str, Operation]:
    """What a plan makes from nothing, by kind and name."""
    (plan,) = plan_all(BLUEPRINTS, world.propose(world.empty(), [manifest]), START, SETUP, Memo(), Limits()).plans
    assert plan.problems == ()
    assert {operation.verb for operation in plan.operations} == {Verb.CREATE}
    return {f"{operation.id.kind}/{operation.id.name}": operation for operation in plan.operations}


def of_kind(made: dict[str, Operation], kind: str) -> list[str]:
    """The names of one kind, in order."""
    return sorted(operation.id.name for operation in made.values() if operation.id.kind == kind)


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


def test_group_replicas_beyond_the_minimum_get_gangs_counted_from_zero() -> None:
    made = created(simple1(replicas=3, min_available=1))

    assert of_kind(made, "PodGang") == ["simple1-0", "simple1-0-sga-0", "simple1-0-sga-1"]
    assert [one["name"] for one in made["PodGang/simple1-0"].body["spec"]["podgroups"]] == [
        "simple1-0-pca",
        "simple1-0-pcd",
        "simple1-0-sga-0-pcb",
        "simple1-0-sga-0-pcc",
    ]
    assert [one["name"] for one in made["PodGang/simple1-0-sga-0"].body["spec"]["podgroups"]] == [
        "simple1-0-sga-1-pcb",
        "simple1-0-sga-1-pcc",
    ]


def test_a_gang_mirrors_the_sets_metadata_but_not_what_is_groves_or_kubectls_own() -> None:
    metadata = created(simple1())["PodGang/simple1-0"].body["metadata"]

    assert metadata["labels"] == {
        "app": "simple1",
        **DEFAULTS,
        "app.kubernetes.io/component": "podgang",
        "grove.io/scheduler-name": "default-scheduler",
    }
    assert metadata["annotations"] == {"team": "inference"}


def test_a_gang_lists_its_pods_by_name_before_they_are_made() -> None:
    made = created(simple1())
    gang = made["PodGang/simple1-0"]
    listed = [reference["name"] for one in gang.body["spec"]["podgroups"] for reference in one["podReferences"]]

    assert sorted(listed) == of_kind(made, "Pod")
    assert all(gang.key in operation.after for operation in made.values() if operation.id.kind == "Pod")


def test_the_labels_of_a_pod_in_a_scaled_gang() -> None:
    made = created(simple1(replicas=2))
    clique_hash = made["PodClique/simple1-0-sga-1-pcb"].body["metadata"]["labels"]["grove.io/pod-template-hash"]
    pods = [one.body for one in made.values() if one.id.kind == "Pod" and one.id.name.startswith("simple1-0-sga-1-pcb")]
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
        "grove.io/pod-template-hash": clique_hash,
    }


def test_the_variables_of_a_group_member_come_in_order_and_win_over_the_users() -> None:
    manifest = simple1()
    container = manifest["spec"]["template"]["cliques"][1]["spec"]["podSpec"]["containers"][0]
    container["env"] = [{"name": "GROVE_PCS_NAME", "value": "mine"}, {"name": "MODE", "value": "$(GROVE_PCS_NAME)"}]
    made = created(manifest)
    pod = next(one.body for one in made.values() if one.id.kind == "Pod" and "-pcb-" in one.id.name)

    env = pod["spec"]["containers"][0]["env"]
    assert [variable["name"] for variable in env] == [
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


def test_only_pods_of_a_scaled_gang_are_born_with_a_gate() -> None:
    pods = [one.body for one in created(simple1(replicas=2)).values() if one.id.kind == "Pod"]

    gated = {
        pod["spec"]["subdomain"] + "/" + pod["metadata"]["labels"]["grove.io/podgang"] for pod in pods if pod["spec"].get("schedulingGates")
    }
    assert gated == {"simple1-0/simple1-0-sga-0"}


def test_children_are_owned_along_the_tree() -> None:
    made = created(simple1())
    owners = {operation.id.kind + "/" + operation.id.name: [one.owner.id.kind for one in operation.owners] for operation in made.values()}

    assert owners["PodClique/simple1-0-pca"] == ["PodCliqueSet"]
    assert owners["PodClique/simple1-0-sga-0-pcb"] == ["PodCliqueScalingGroup"]
    assert owners["PodGang/simple1-0"] == ["PodCliqueSet"]
    assert all(kinds == ["PodClique"] for name, kinds in owners.items() if name.startswith("Pod/"))
    assert owners["PodCliqueSet/simple1"] == []


def test_cliques_and_groups_are_born_with_their_finalizers() -> None:
    made = created(simple1())

    assert made["PodClique/simple1-0-pca"].body["metadata"]["finalizers"] == ["grove.io/podclique.grove.io"]
    assert made["PodCliqueScalingGroup/simple1-0-sga"].body["metadata"]["finalizers"] == ["grove.io/podcliquescalinggroup.grove.io"]
    assert made["PodCliqueSet/simple1"].body["metadata"]["finalizers"] == ["grove.io/podcliqueset.grove.io"]


def test_the_hash_knows_no_order_where_order_means_nothing_and_sees_every_edit() -> None:
    def hash_of(volumes: list[str], args: list[str]) -> str:
        pod_spec = {
            "volumes": [{"name": name, "emptyDir": {}} for name in volumes],
            "containers": [{"name": "main", "image": "example/worker:1", "args": args}],
        }
        made = created(podcliqueset("demo", clique("worker", pod_spec=pod_spec)))
        value: str = made["PodClique/demo-0-worker"].body["metadata"]["labels"]["grove.io/pod-template-hash"]
        return value

    plain = hash_of(["a", "b"], ["x", "y"])
    assert hash_of(["b", "a"], ["x", "y"]) == plain
    assert hash_of(["a", "b"], ["y", "x"]) != plain
    assert len(plain) <= 63


def test_a_set_that_cannot_be_understood_says_where_and_makes_nothing() -> None:
    manifest = simple1()
    manifest["spec"]["template"]["podCliqueScalingGroups"][0]["cliqueNames"].append("nobody")
    manifest["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = "elsewhere"
    (plan,) = plan_all(BLUEPRINTS, world.propose(world.empty(), [manifest]), START, SETUP, Memo(), Limits()).plans

    assert plan.operations == ()
    assert plan.problems == (
        'spec.template.podCliqueScalingGroups[0].cliqueNames: Invalid value: "nobody": unidentified PodClique names found',
        'spec.template.cliques[1].spec.podSpec.schedulerName: Invalid value: "default-scheduler, elsewhere": '
        "the schedulerName for all pods have to be the same",
        'spec.template.cliques[0].spec.podSpec.schedulerName: Invalid value: "elsewhere": '
        "schedulerName must be an enabled scheduler backend; this scheduler is not enabled in OperatorConfiguration",
    )


def test_two_cliques_whose_full_names_meet_are_a_fault_of_that_set_alone() -> None:
    clash = podcliqueset("demo", clique("g-0-a"), clique("a"), groups=(group("g", "a"),))
    sound = podcliqueset("sound")
    plans = plan_all(BLUEPRINTS, world.propose(world.empty(), [clash, sound]), START, SETUP, Memo(), Limits()).plans

    assert [bool(plan.problems) for plan in plans] == [True, False]
    assert "PodClique/default/demo-0-g-0-a is wanted twice" in plans[0].problems[0]
    assert plans[1].operations


def test_a_number_that_nobody_can_mean_is_a_fault_not_a_plan() -> None:
    manifest = podcliqueset("demo", clique("a", 2), replicas=2_000_000_000)
    (plan,) = plan_all(BLUEPRINTS, world.propose(world.empty(), [manifest]), START, SETUP, Memo(), Limits()).plans

    assert plan.operations == ()
    assert plan.problems == ("spec.replicas: 2000000000 replicas of 2 pods are more than 100000 pods",)


def test_pods_take_the_priority_of_the_set_unless_they_name_one_themselves() -> None:
    own = {"containers": [{"name": "main", "image": "example/worker:1"}], "priorityClassName": "mine"}
    made = created(podcliqueset("demo", clique("a"), clique("b", pod_spec=own), priorityClassName="high"))
    priorities = {one.id.name[:8]: one.body["spec"]["priorityClassName"] for one in made.values() if one.id.kind == "Pod"}

    assert priorities == {"demo-0-a": "high", "demo-0-b": "mine"}
    assert made["PodGang/demo-0"].body["spec"]["priorityClassName"] == "high"
