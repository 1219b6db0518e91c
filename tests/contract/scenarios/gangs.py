"""Gangs: the kinds by which kube-scheduler schedules them, of a server that has them switched on."""

from typing import Any

from tests.contract.scenario import Scenario, Step
from tests.contract.scenarios.bodies import PODS, pod
from tests.contract.scenarios.kinds import made

BETA = "scheduling.k8s.io/v1beta1"
ALPHA = "scheduling.k8s.io/v1alpha3"
POD_GROUPS = f"/apis/{BETA}/namespaces/{{ns}}/podgroups"
WORKLOADS = f"/apis/{BETA}/namespaces/{{ns}}/workloads"
COMPOSITES = f"/apis/{ALPHA}/namespaces/{{ns}}/compositepodgroups"


def gang(minimum: int, **fields: Any) -> dict[str, Any]:
    """The spec of a PodGroup that is a gang."""
    return {"schedulingPolicy": {"gang": {"minCount": minimum}}, **fields}


def bundle(minimum: int, **fields: Any) -> dict[str, Any]:
    """The spec of a CompositePodGroup, or a template of one."""
    return {"schedulingPolicy": {"gang": {"minGroupCount": minimum}}, **fields}


def topology(*keys: str) -> dict[str, Any]:
    """Constraints to one value of each of these node labels."""
    return {"schedulingConstraints": {"topology": [{"key": key} for key in keys]}}


def group(name: str, spec: dict[str, Any], /) -> dict[str, Any]:
    """A PodGroup."""
    return made(BETA, "PodGroup", name, spec=spec)


def composite(name: str, spec: dict[str, Any], /) -> dict[str, Any]:
    """A CompositePodGroup."""
    return made(ALPHA, "CompositePodGroup", name, spec=spec)


def workload(name: str, /, **spec: Any) -> dict[str, Any]:
    """A Workload."""
    return made(BETA, "Workload", name, spec=spec)


def reference(workload_name: str, template: str) -> dict[str, Any]:
    """The field by which a group refers to its template."""
    return {"workloadRef": {"workloadName": workload_name, "templateName": template}}


def _refused(title: str, spec: dict[str, Any]) -> Step:
    return Step(title, "POST", POD_GROUPS, group("refused", spec))


def _changed(title: str, path: str, spec: dict[str, Any]) -> Step:
    return Step(title, "PATCH", path, {"spec": spec}, "merge")


POD_GROUPS_MADE = Scenario(
    "gangs-pod-groups",
    (
        Step("a gang", "POST", POD_GROUPS, group("g", gang(2))),
        Step("pods on their own", "POST", POD_GROUPS, group("basic", {"schedulingPolicy": {"basic": {}}})),
        Step(
            "all of it",
            "POST",
            POD_GROUPS,
            group(
                "full",
                gang(
                    3, **topology("example.com/rack"), **reference("w", "t"), priority=5, disruptionMode={"all": {}}, priorityClassName="p"
                ),
            ),
        ),
        Step("what is behind other gates is dropped", "POST", POD_GROUPS, group("dropped", gang(1, preemptionPolicy="Never"))),
        _refused("no minimum", gang(0)),
        _refused("a negative minimum", gang(-1)),
        _refused("no policy", {"schedulingPolicy": {}}),
        _refused("two policies", {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}),
        _refused("two modes", gang(1, disruptionMode={"single": {}, "all": {}})),
        _refused("no mode", gang(1, disruptionMode={})),
        _refused("two keys", gang(1, **topology("a", "b"))),
        _refused("an empty key", gang(1, **topology(""))),
        _refused("a bad key", gang(1, **topology("a b"))),
        _refused("a parent without a workload", gang(1, parentCompositePodGroupName="c")),
        _refused("bad names", gang(1, parentCompositePodGroupName="C", **reference("W", "a.b"), priorityClassName="P")),
        _refused("a reference to nothing", gang(1, **reference("", ""))),
        _refused("a high priority", gang(1, priority=1_000_000_001)),
        _changed("the minimum may change", f"{POD_GROUPS}/g", gang(1)),
        _changed("not to nothing", f"{POD_GROUPS}/g", gang(0)),
        _changed("the policy stays", f"{POD_GROUPS}/g", {"schedulingPolicy": {"gang": None, "basic": {}}}),
        _changed("also that of single pods", f"{POD_GROUPS}/basic", {"schedulingPolicy": {"basic": None, "gang": {"minCount": 1}}}),
        _changed("no constraint is added", f"{POD_GROUPS}/g", topology("example.com/rack")),
        _changed("none is changed", f"{POD_GROUPS}/full", topology("example.com/zone")),
        _changed(
            "nothing else changes",
            f"{POD_GROUPS}/full",
            {"disruptionMode": {"all": None, "single": {}}, "priority": 6, "priorityClassName": "q", "workloadRef": None},
        ),
    ),
)

_STATUS = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled", "message": ""}
POD_GROUPS_IN_USE = Scenario(
    "gangs-in-use",
    (
        Step("a gang", "POST", POD_GROUPS, group("g", gang(2))),
        Step("a pod of it", "POST", PODS, pod(schedulingGroup={"podGroupName": "g"})),
        Step("it stays of it", "PATCH", f"{PODS}/a", {"spec": {"schedulingGroup": {"podGroupName": "h"}}}, "merge"),
        Step("no other pod joins", "POST", PODS, pod("b")),
        Step("later", "PATCH", f"{PODS}/b", {"spec": {"schedulingGroup": {"podGroupName": "g"}}}, "merge"),
        Step("a group of no name", "POST", PODS, pod("c", schedulingGroup={})),
        Step("a group of a bad name", "POST", PODS, pod("c", schedulingGroup={"podGroupName": "G"})),
        Step(
            "its status",
            "PATCH",
            f"{POD_GROUPS}/g/status",
            {"spec": gang(7), "status": {"conditions": [{**_STATUS, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}},
            "merge",
        ),
        Step("it is not applied twice", "PATCH", f"{POD_GROUPS}/g?fieldManager=me&force=true", group("g", gang(2)), "apply"),
        Step("deleted with a pod of it, it stays", "DELETE", f"{POD_GROUPS}/g"),
    ),
)

_LEAF = {"name": "l", **gang(1)}
COMPOSITES_MADE = Scenario(
    "gangs-composites",
    (
        Step(
            "a workload",
            "POST",
            WORKLOADS,
            workload("w", compositePodGroupTemplates=[{"name": "b", **bundle(1), "podGroupTemplates": [{**_LEAF, **topology("rack")}]}]),
        ),
        Step(
            "of a controller",
            "POST",
            WORKLOADS,
            workload("flat", controllerRef={"apiGroup": "grove.io", "kind": "PodGang", "name": "x"}, podGroupTemplates=[_LEAF]),
        ),
        Step("of nothing", "POST", WORKLOADS, workload("refused")),
        Step(
            "of both",
            "POST",
            WORKLOADS,
            workload("both", podGroupTemplates=[_LEAF], compositePodGroupTemplates=[{"name": "b", **bundle(1)}]),
        ),
        Step("of no templates below", "POST", WORKLOADS, workload("refused", compositePodGroupTemplates=[{"name": "b", **bundle(1)}])),
        Step("two of one name", "POST", WORKLOADS, workload("refused", podGroupTemplates=[_LEAF, _LEAF])),
        Step(
            "one name on two levels",
            "POST",
            WORKLOADS,
            workload("refused", compositePodGroupTemplates=[{"name": "l", **bundle(1), "podGroupTemplates": [_LEAF]}]),
        ),
        Step("nine", "POST", WORKLOADS, workload("refused", podGroupTemplates=[{**_LEAF, "name": f"l{k}"} for k in range(9)])),
        Step("two priorities", "POST", WORKLOADS, workload("refused", podGroupTemplates=[_LEAF, {"name": "m", **gang(1), "priority": 3}])),
        Step("no minimum", "POST", WORKLOADS, workload("refused", podGroupTemplates=[{"name": "l", **gang(0)}])),
        Step("a bad name", "POST", WORKLOADS, workload("refused", podGroupTemplates=[{"name": "L.l", **gang(1)}])),
        Step("a controller of no kind", "POST", WORKLOADS, workload("refused", controllerRef={"name": "x"}, podGroupTemplates=[_LEAF])),
        _changed("no template is added", f"{WORKLOADS}/flat", {"podGroupTemplates": [_LEAF, {"name": "m", **gang(1)}]}),
        _changed("nor replaced", f"{WORKLOADS}/flat", {"podGroupTemplates": [{"name": "m", **gang(1)}]}),
        _changed("nor constrained", f"{WORKLOADS}/flat", {"podGroupTemplates": [{**_LEAF, **topology("rack")}]}),
        _changed("its minimum", f"{WORKLOADS}/flat", {"podGroupTemplates": [{"name": "l", **gang(2)}]}),
        _changed("its controller", f"{WORKLOADS}/flat", {"controllerRef": {"name": "y"}}),
        Step("a composite", "POST", COMPOSITES, composite("c", bundle(1, **reference("w", "b")))),
        Step("one below it", "POST", COMPOSITES, composite("d", bundle(1, parentCompositePodGroupName="c", **reference("w", "x")))),
        Step("a group below it", "POST", POD_GROUPS, group("g", gang(1, parentCompositePodGroupName="c", **reference("w", "l")))),
        Step("without a workload", "POST", COMPOSITES, composite("refused", bundle(1))),
        Step("without a minimum", "POST", COMPOSITES, composite("refused", bundle(0, **reference("w", "b")))),
        Step("with two keys", "POST", COMPOSITES, composite("refused", bundle(1, **reference("w", "b"), **topology("a", "b")))),
        _changed("its minimum stays", f"{COMPOSITES}/c", bundle(2)),
        _changed("its constraint too", f"{COMPOSITES}/c", topology("rack")),
        Step("it goes at once", "DELETE", f"{COMPOSITES}/c"),
        Step("the workload too", "DELETE", f"{WORKLOADS}/w"),
    ),
)
DISCOVERY = Scenario("gangs-discovery", (Step("the beta", "GET", f"/apis/{BETA}"),))
SCENARIOS = (DISCOVERY, POD_GROUPS_MADE, POD_GROUPS_IN_USE, COMPOSITES_MADE)
